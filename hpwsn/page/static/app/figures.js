// The figures of nodes over time: histories of the API, continued with the figures of /cluster.
import { useEffect, useRef, useState } from "./html.js";
import { ApiError, get } from "./api.js";
import { nodesOf, state, useShared } from "./state.js";

export const RANGES = { "5m": 300, "1h": 3600, "24h": 86400 };
export const STEPS = { "5m": 1, "1h": 5, "24h": 60 };
/** Milliseconds after which histories are read again. */
const AGAIN = { "5m": 60_000, "1h": 60_000, "24h": 300_000 };
/** Seconds for which a live figure holds: heartbeats of other nodes bring one every few seconds. */
const HOLDS = 5;

/** The history of a node: the admin node has those of all, a node has its own and asks others that are alive. */
async function asked(node, range, metrics) {
  const query = { range, metrics: metrics.join(",") };
  const { session, cluster } = state.get();
  if (session?.kind === "admin") return get("history", { query: { ...query, node } });
  const known = nodesOf(cluster).find((each) => each.name === node);
  if (known && known.state !== "alive") throw new ApiError(503, `${node} is ${known.state}: it has its history.`);
  return get("history", { node, query });
}

/** The arrays of a figure, moved by `shift` steps, with a value in step `at` and in the `held` steps before it. */
function continued(values, { shift, at, held, several }, value) {
  const [min, mean, max] = [values.min, values.mean, values.max]
    .map((list) => (shift ? [...list.slice(shift), ...Array(shift).fill(null)] : [...list]));
  if (value !== null) {
    for (let step = at - 1; step >= 0 && step >= at - held && mean[step] === null; step -= 1) {
      min[step] = value;
      mean[step] = value;
      max[step] = value;
    }
    // A step that is longer than the pause between two figures has several.
    min[at] = several ? Math.min(min[at] ?? value, value) : value;
    max[at] = several ? Math.max(max[at] ?? value, value) : value;
    mean[at] = several ? mean[at] ?? value : value;
  }
  return { min, mean, max };
}

/** A history of which the end grows by the figures of now (ms by the clock of this browser); null: a gap. */
function grow(history, figures, now) {
  const steps = Object.values(history.series)[0]?.mean.length ?? 0;
  const index = Math.floor((now / 1000 + history.ahead - history.from) / history.step);
  const shift = Math.max(0, index - steps + 1);
  if (index < 0 || shift >= steps || (!shift && !figures)) return history;
  const held = history.step < HOLDS ? Math.floor(HOLDS / history.step) - 1 : 0;
  const place = { shift, at: index - shift, held, several: history.step > 1 };
  const series = {};
  for (const [name, values] of Object.entries(history.series)) {
    series[name] = continued(values, place, figures?.[name] ?? null);
  }
  return { ...history, from: history.from + shift * history.step, series };
}

/** Seconds since 1970, whatever the API writes; `ahead`: seconds that the node's clock is before this one. */
function normal(history, now) {
  const seconds = (at) => (typeof at === "number" ? at : Date.parse(at) / 1000);
  const from = seconds(history.from);
  const steps = Object.values(history.series)[0]?.mean.length ?? 0;
  const last = from + (steps - 1) * history.step;
  const within = now / 1000 >= last - 1 && now / 1000 < last + history.step + 1;
  const ahead = within ? 0 : last + history.step / 2 - now / 1000;
  return { ...history, from, ahead, restarts: (history.restarts ?? []).map(seconds) };
}

/**
 * Histories of some nodes by name: {histories: {name: history}, errors: {name: error}, loaded}. They are read when
 * nodes, range or metrics change, when a node starts or is lost, and again and again; live figures continue them
 * between. The history of a node that does not answer stays, with a gap.
 */
export function useHistories(names, range, metrics) {
  const [found, setFound] = useState({ key: null, histories: {}, errors: {}, loaded: false });
  const cluster = useShared((shared) => shared.cluster);
  const key = `${names.join("\n")}|${range}|${metrics.join(",")}`;
  const wanted = new Set(names);
  const starts = nodesOf(cluster).filter((node) => wanted.has(node.name))
    .map((node) => `${node.name} ${node.state} ${node.since}`).join("\n");
  const current = useRef(key);
  current.current = key;

  useEffect(() => {
    let stopped = false;
    async function load() {
      const histories = {};
      const errors = {};
      await Promise.all(names.map(async (name) => {
        try {
          histories[name] = normal(await asked(name, range, metrics), Date.now());
        } catch (error) {
          errors[name] = error;
        }
      }));
      if (stopped || current.current !== key) return;
      setFound((before) => {
        const kept = before.key === key ? Object.keys(errors).filter((name) => before.histories[name]) : [];
        for (const name of kept) histories[name] = before.histories[name];
        return { key, histories, errors, loaded: true };
      });
    }
    load();
    const timer = setInterval(() => { if (!document.hidden && !state.get().paused) load(); }, AGAIN[range]);
    const seen = () => { if (!document.hidden && !state.get().paused) load(); };
    document.addEventListener("visibilitychange", seen);
    return () => {
      stopped = true;
      clearInterval(timer);
      document.removeEventListener("visibilitychange", seen);
    };
  }, [key, starts]);

  useEffect(() => {
    if (!cluster) return;
    const now = Date.now();
    const figures = Object.fromEntries(nodesOf(cluster).filter((node) => node.state === "alive")
      .map((node) => [node.name, node.figures]));
    setFound((before) => {
      if (!before.loaded) return before;
      const histories = Object.entries(before.histories)
        .map(([name, history]) => [name, grow(history, figures[name] ?? null, now)]);
      return { ...before, histories: Object.fromEntries(histories) };
    });
  }, [cluster]);

  return found.key === key ? found : UNKNOWN;
}

const UNKNOWN = { key: null, histories: {}, errors: {}, loaded: false };

const ADDED = new Set(["published_rate", "delivered_rate", "failed_rate", "waiting", "dead_letters",
  "subscriptions", "pull_points", "journal_bytes", "connections"]);

/** One value of several nodes: rates and counts are added, the worst of the others counts; null without any. */
export function combined(name, values) {
  const known = values.filter((value) => value !== null && value !== undefined);
  if (!known.length) return null;
  return ADDED.has(name) ? known.reduce((sum, value) => sum + value, 0) : Math.max(...known);
}

/** The means of a figure over several histories, step by step, combined. */
export function combinedSeries(name, histories) {
  const lists = histories.map((history) => history.series[name]?.mean ?? []);
  const length = Math.max(0, ...lists.map((list) => list.length));
  return Array.from({ length }, (_, step) => combined(name, lists.map((list) => list[list.length - length + step])));
}
