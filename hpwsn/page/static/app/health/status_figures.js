// The document /status as a flat list of figures, with units by their names. Pure.
import { bytes, count, dateTime, duration, figure } from "../format.js";

const DEEPEST = 8;
const MOST_ENTRIES = 1000;
const NODE = "node";

/** What a figure is, by its path; the first that matches. */
const KINDS = [
  [/(^|[._])(bytes|rss)([._]|$)/, "bytes"],
  [/(^|[._])(seconds|uptime)([._]|$)|^latency\./, "seconds"],
  [/^process\.cpu$/, "share"],
  [/(^|\.)(started|since)$/, "time"],
];
const UNITS = { bytes: "bytes", seconds: "time", share: "% of a core", time: "date", number: "", text: "" };

function kindOf(path, value) {
  if (typeof value !== "number" && typeof value !== "string") return "text";
  const found = KINDS.find(([pattern]) => pattern.test(path))?.[1];
  if (typeof value === "string") return found === "time" ? "time" : "text";
  return found ?? "number";
}

/** A value as a person reads it. */
export function shownFigure(kind, value) {
  if (value === null || value === undefined) return "–";
  switch (kind) {
    case "bytes": return bytes(value);
    case "seconds": return value ? duration(value) : "0 s";
    case "share": return `${figure(value * 100)} %`;
    case "time": return dateTime(value);
    case "number": return Number.isInteger(value) ? count(value) : figure(value);
    default: return typeof value === "boolean" ? (value ? "yes" : "no") : String(value);
  }
}

function* leaves(value, path) {
  const entries = value !== null && typeof value === "object" ? Object.entries(value) : null;
  if (!entries) yield [path, value];
  else if (!entries.length) yield [path, "none"];
  else if (path.length >= DEEPEST || entries.length > MOST_ENTRIES) yield [path, `${entries.length} entries`];
  else for (const [name, inner] of entries) yield* leaves(inner, [...path, name]);
}

/**
 * The figures of a /status as [{path, group, name, value, kind, shown, unit}], sorted by group and in the node's
 * order within it; what stands at the top comes first, as the group "node".
 */
export function statusFigures(status) {
  const found = [];
  for (const [path, value] of leaves(status, [])) {
    const id = path.join(".");
    const kind = kindOf(id, value);
    found.push({
      path: id, group: path.length > 1 ? path[0] : NODE, name: path.length > 1 ? path.slice(1).join(".") : id,
      value, kind, shown: shownFigure(kind, value), unit: UNITS[kind],
    });
  }
  const rank = ({ group }) => (group === NODE ? "" : group);
  return found.sort((left, right) => (rank(left) < rank(right) ? -1 : Number(rank(left) > rank(right))));
}

/** Whether a figure has a text in its path or value. */
export const matches = (each, text) => `${each.path} ${each.shown}`.toLowerCase().includes(text.trim().toLowerCase());
