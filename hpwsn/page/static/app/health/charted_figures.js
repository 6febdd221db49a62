// The figures that have charts: titles, units, tones, and axes that are the same for all nodes.
import { count, figure, niceCeiling, scaledBytes } from "../format.js";

const RATE = { kind: "rate", unit: "/s" };
const BYTES = { kind: "bytes" };
const SECONDS = { kind: "seconds" };
const quantiles = (name) => [
  { metric: `${name}_p50`, label: "p50", tone: "soft" }, { metric: `${name}_p99`, label: "p99", tone: "accent", band: true },
];
const one = (metric, tone = "accent") => [{ metric, label: "mean", tone, band: true }];

/**
 * By the name in the address: `title`, `kind` of unit, `series` of metrics, and `line`, the threshold of an alert
 * that docs/monitoring.md gives as the default of a setting, in the units of the API.
 */
export const CHARTED = [
  { id: "published_rate", title: "Published", ...RATE, series: one("published_rate") },
  { id: "delivered_rate", title: "Delivered", ...RATE, series: one("delivered_rate") },
  { id: "failed_rate", title: "Failed", ...RATE, series: one("failed_rate", "warn") },
  { id: "accept", title: "Accept latency", ...SECONDS, series: quantiles("accept") },
  { id: "deliver", title: "Delivery latency", ...SECONDS, series: quantiles("deliver") },
  { id: "waiting", title: "Waiting", kind: "count", series: one("waiting") },
  { id: "dead_letters", title: "Dead letters", kind: "count", series: one("dead_letters", "bad") },
  { id: "subscriptions", title: "Subscriptions", kind: "count", series: one("subscriptions") },
  { id: "pull_points", title: "Pull points", kind: "count", series: one("pull_points") },
  { id: "topics", title: "Topics", kind: "count", series: one("topics") },
  { id: "journal_bytes", title: "Journal", ...BYTES, series: one("journal_bytes") },
  {
    id: "cpu", title: "CPU", kind: "share", unit: "%", series: one("cpu"),
    line: { value: 0.95, words: "alert from 95 %, unless monitoring.cpu_percent is another value" },
  },
  { id: "memory", title: "Memory", ...BYTES, series: one("memory") },
  { id: "connections", title: "Connections", kind: "count", series: one("connections") },
  { id: "threads", title: "Threads", kind: "count", series: one("threads") },
  { id: "files", title: "Open files", kind: "count", series: one("files") },
];

/** The metrics of some charts. */
export const metricsOf = (charts) => charts.flatMap((chart) => chart.series.map((each) => each.metric));

/** The factor and name of the unit of a chart with an axis up to `top`. */
export function unitOf({ kind, unit = "" }, top) {
  if (kind === "share") return { factor: 100, unit };
  if (kind === "bytes") {
    const scaled = scaledBytes(top);
    return { factor: top ? scaled.value / top : 1, unit: scaled.unit };
  }
  if (kind === "seconds") {
    if (top >= 1) return { factor: 1, unit: "s" };
    return top >= 0.001 ? { factor: 1e3, unit: "ms" } : { factor: 1e6, unit: "µs" };
  }
  return { factor: 1, unit };
}

/** A value in the unit of its chart. */
export function shownValue({ kind }, value, { factor }) {
  if (value === null || value === undefined) return "–";
  return kind === "count" && Number.isInteger(value) ? count(value) : figure(value * factor);
}

/** The end of the axis of each chart, over the histories of all nodes, by id; in the units of the API. */
export function topsOf(charts, histories) {
  const all = Object.values(histories);
  return Object.fromEntries(charts.map((chart) => {
    let greatest = 0;
    for (const { metric } of chart.series) {
      for (const history of all) {
        for (const value of history.series[metric]?.max ?? []) if (value > greatest) greatest = value;
      }
    }
    return [chart.id, axisEnd(chart, greatest)];
  }));
}

/** The next 1, 2, 5 × 10ⁿ in the unit that is shown; a chart without a value ends at 1 of a usual unit. */
function axisEnd({ kind }, greatest) {
  if (!greatest) return { share: 0.01, bytes: 1e6, seconds: 1e-3 }[kind] ?? 1;
  return niceCeiling(greatest);
}

/** The times of a history's steps, in seconds since 1970. */
export const timesOf = (history) => {
  const steps = Object.values(history.series)[0]?.mean.length ?? 0;
  return Array.from({ length: steps }, (_, step) => history.from + step * history.step);
};

/** The index of the last step with a value in any of the series; -1 without one. */
export const lastKnown = (lists) => Math.max(-1, ...lists.map((list) => list.findLastIndex((value) => value !== null)));
