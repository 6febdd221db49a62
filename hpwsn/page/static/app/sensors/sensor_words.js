// The words, shapes and order of physical sensors in lists and on the map: state, place, quantities, spans. Pure.
import { milliseconds } from "../format.js";

/** By state: shape, word, and the rank by which the worst is first. */
export const STATES = {
  silent: { shape: "retrying", word: "Silent", rank: 0 },
  never: { shape: "expired", word: "Never reported", rank: 1 },
  stopped: { shape: "paused", word: "Told to stop", rank: 2 },
  reporting: { shape: "live", word: "Reporting", rank: 3 },
};

/** The name of a sensor's state. One that is told to stop is not silent. */
export function stateOf({ state, wanted }) {
  if (wanted === false) return "stopped";
  if (!state.last_seen) return "never";
  return state.silent ? "silent" : "reporting";
}

/** Seconds without rounding: "500 ms", "90 s", "5 min", "2 h", "1 d". */
export function exactSpan(seconds) {
  if (seconds < 1) return `${Number((seconds * 1000).toPrecision(6))} ms`;
  for (const [size, unit] of [[86400, "d"], [3600, "h"], [60, "min"]]) {
    if (seconds % size === 0) return `${seconds / size} ${unit}`;
  }
  return `${Number(seconds.toPrecision(6))} s`;
}

const degrees = (value) => String(Number(Math.abs(value).toFixed(5)));

/** A longitude or a latitude as text: "116.38° E", "33.9° S". */
export const longitudeText = (value) => `${degrees(value)}°${value < 0 ? " W" : value > 0 ? " E" : ""}`;
export const latitudeText = (value) => `${degrees(value)}°${value < 0 ? " S" : value > 0 ? " N" : ""}`;

/** A range as text; either end may be missing. */
export function rangeText(low, high) {
  const [hasLow, hasHigh] = [low, high].map((each) => each !== null && each !== undefined);
  if (hasLow && hasHigh) return low === high ? `${low}` : `${low} to ${high}`;
  if (hasLow) return `${low} or more`;
  return hasHigh ? `${high} or less` : "any value";
}

/** The quantities of a sensor as one text: "temperature degC, humidity percent". */
export const quantitiesText = (item) => Object.entries(item.quantities).map(([name, { unit }]) => (
  `${name} ${unit}`.trim())).join(", ");

const VALUES = {
  state: (item) => STATES[item.word].rank, id: (item) => item.id, kind: (item) => item.kind,
  last: (item) => milliseconds(item.state.last_seen) ?? 0,
  interval: (item) => item.state.interval ?? item.interval ?? 0,
};

const compare = (left, right) => (left < right ? -1 : Number(left > right));
const numbers = new Intl.Collator("en", { numeric: true });

/** Sensors sorted by "state" (the worst first), "-last" and so on; the id decides, with numbers by their size. */
export function sortedSensors(items, sort) {
  const value = VALUES[sort.replace(/^-/, "")] ?? VALUES.state;
  const sign = sort.startsWith("-") ? -1 : 1;
  return [...items].sort((left, right) => sign * (value === VALUES.id
    ? numbers.compare(left.id, right.id) : compare(value(left), value(right)))
    || numbers.compare(left.id, right.id) || compare(left.key, right.key));
}

/** Whether a sensor has a text in its id, kind, tags, owner, gateway or quantities; `wanted` is in lower case. */
export function hasText(item, wanted) {
  if (!wanted) return true;
  const { id, kind, tags, owner = "", gateway = "", quantities } = item;
  return [id, kind, owner, gateway, ...tags, ...Object.keys(quantities)].some((each) => (
    each.toLowerCase().includes(wanted)));
}
