// The definition of a virtual sensor in words, and the order of virtual sensors in lists. Pure.
import { exactSpan, latitudeText, longitudeText } from "./sensor_words.js";

const COMBINED = {
  mean: "Mean", median: "Median", min: "Least value", max: "Greatest value", sum: "Sum", count: "Number of readings",
  last: "Latest value",
};
const SILENCES = {
  skip: "no result", null: "a result without a value", hold: "the value of the result before",
};

/** By state: shape, word, and the rank by which those that run are first. */
export const STATES = {
  running: { shape: "live", word: "Running", rank: 0 },
  idle: { shape: "expired", word: "Idle", rank: 1 },
};
export const stateOf = (item) => STATES[item.state] ?? { shape: "paused", word: item.state, rank: 2 };

/** Which physical sensors are meant. */
export function selectionWords({ kind, tags = [], area }) {
  const which = kind ? `sensors of kind ${kind}` : "all sensors";
  const marked = tags.length ? ` with the tag${tags.length > 1 ? "s" : ""} ${tags.join(", ")}` : "";
  if (!area) return which + marked;
  const [west, south, east, north] = area;
  return `${which}${marked} from ${longitudeText(west)} to ${longitudeText(east)}`
    + ` and ${latitudeText(south)} to ${latitudeText(north)}`;
}

/** The definition as one sentence without a full stop. */
export function definitionWords(item) {
  if (item.service) return `Made of ${item.quantity} by a stream service of its own`;
  return `${COMBINED[item.combine] ?? item.combine} of ${item.quantity} of ${selectionWords(item)},`
    + ` every ${exactSpan(item.every)}`;
}

/** What is done with late readings, silence and disagreement, as [name, words]. */
export function ruleWords({ lateness, quorum, silence, outliers, hysteresis, bands = [] }) {
  return [
    ["Late readings", `taken until ${exactSpan(lateness)} after the end of a window`],
    ["Silence", `${quorum > 1 ? `readings of fewer than ${quorum} sensors give` : "a window without readings gives"}`
      + ` ${SILENCES[silence] ?? silence}`],
    ["Outliers", outliers === undefined ? "kept"
      : `dropped beyond ${outliers} median absolute deviations from the median`],
    ...(bands.length ? [["Hysteresis", hysteresis ? `a state ends ${hysteresis} beyond its band` : "none"]] : []),
  ];
}

/** The selection of a virtual sensor as a query of GET /sensors. */
export const memberQuery = ({ kind, tags, area }) => ({ kind, tag: tags, area: area?.join(",") });

const VALUES = {
  state: (item) => stateOf(item).rank, name: (item) => item.name, members: (item) => item.members ?? -1,
  late: (item) => item.late ?? -1, refused: (item) => item.refused ?? -1,
};
const compare = (left, right) => (left < right ? -1 : Number(left > right));

/** Virtual sensors sorted by "state" (those that run first), "-members" and so on; the name decides. */
export function sortedVirtual(items, sort) {
  const value = VALUES[sort.replace(/^-/, "")] ?? VALUES.state;
  const sign = sort.startsWith("-") ? -1 : 1;
  return [...items].sort((left, right) => sign * compare(value(left), value(right))
    || compare(left.name, right.name) || compare(left.key, right.key));
}
