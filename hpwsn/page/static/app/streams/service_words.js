// The words, shapes and order of stream services in lists: state, rates of the last batch, what a row shows.
import { figure } from "../format.js";

/** By state: shape, word, and the rank by which the worst is first. */
export const STATES = {
  failed: { shape: "dead", word: "Failed", rank: 0 },
  silent: { shape: "retrying", word: "Silent", rank: 1 },
  restarting: { shape: "retrying", word: "Restarting", rank: 2 },
  starting: { shape: "retrying", word: "Starting", rank: 3 },
  stopping: { shape: "paused", word: "Stopping", rank: 4 },
  running: { shape: "live", word: "Running", rank: 5 },
  stopped: { shape: "expired", word: "Stopped", rank: 6 },
};

/** Unread events of one service from which a node alerts, unless monitoring.service_lag is another value. */
export const LAG_ALERT = 100_000;
const NUMERIC = /^(tinyint|smallint|int|integer|bigint|long|short|byte|float|double|real|decimal|number)\b/i;

export const stateOf = (item) => STATES[item.state] ?? { shape: "paused", word: item.state, rank: 3 };

/** Rows per second in and out of the last batch; null if the job has told none. */
export function ratesOf({ figures = {}, state }) {
  if (figures.batch_seconds === undefined || state === "stopped") return { rowsIn: null, rowsOut: null };
  const { batch_seconds: seconds, rows_in: rows = 0, rows_out: published = 0 } = figures;
  const rowsIn = figures.rows_per_second ?? (seconds ? rows / seconds : 0);
  return { rowsIn, rowsOut: rows ? (rowsIn * published) / rows : 0 };
}

/** The duration of the last batch in words. */
export function batchOf({ figures = {} }) {
  return figures.batch_seconds === undefined ? "–" : `${figure(figures.batch_seconds)} s`;
}

/** Whether the node itself runs the job of a service. */
export const isAgents = (item) => item.created !== undefined;

/** The attributes that are numbers, those with a constraint first. */
export function numericFields({ attributes = {}, constraints = {} }) {
  const names = Object.keys(attributes).filter((name) => NUMERIC.test(attributes[name]));
  return [...names.filter((name) => name in constraints), ...names.filter((name) => !(name in constraints))];
}

const VALUES = {
  state: (item) => stateOf(item).rank, uri: (item) => item.uri, topic: (item) => item.topic,
  lag: (item) => item.lag ?? -1, in: (item) => ratesOf(item).rowsIn ?? -1, out: (item) => ratesOf(item).rowsOut ?? -1,
  batch: (item) => item.figures?.batch_seconds ?? -1, requests: (item) => item.total ?? -1,
};

/** Services sorted by "state" (the worst first), "-lag" and so on; the greatest lag and then the URI decide. */
export function sorted(items, sort) {
  const value = VALUES[sort.replace(/^-/, "")] ?? VALUES.state;
  const sign = sort.startsWith("-") ? -1 : 1;
  const compare = (left, right) => (left < right ? -1 : Number(left > right));
  return [...items].sort((left, right) => sign * compare(value(left), value(right))
    || compare(right.lag ?? -1, left.lag ?? -1) || compare(left.key, right.key));
}
