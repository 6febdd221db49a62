// The results of a virtual sensor that its plot shows, the bands that hold a value, and the axis. Pure.
import { roundValues } from "./map_view.js";

const SHORTEST = 300;
const LONGEST = 7 * 86_400;
const RESULTS = 60;
/** Results that are kept, whatever the span. */
const KEPT = 4000;
/** How far a bound of a band may be beyond the values, in their span, to be on the axis. */
const NEAR = 3;

/** Seconds that the plot of a virtual sensor shows: about sixty results, five minutes at least. */
export const spanOf = (every) => Math.min(LONGEST, Math.max(SHORTEST, RESULTS * every));

/** A result from an event of the topic {offset, data}; null for anything else. Times are seconds since 1970. */
export function resultOf({ offset, data }) {
  const time = Date.parse(data?.time) / 1000;
  if (!Number.isFinite(time)) return null;
  const value = typeof data.value === "number" && Number.isFinite(data.value) ? data.value : null;
  const states = Array.isArray(data.states) ? data.states.filter((each) => typeof each === "string") : [];
  const text = (name) => (typeof data[name] === "string" ? data[name] : "");
  return {
    offset, time, value, states, unit: text("unit"), text: text("text"), changed: data.changed === true,
    count: data.count, sensors: data.sensors,
  };
}

/** A buffer of results in the order of their times; one that comes twice is kept once. */
export function resultBuffer(span) {
  let results = [];
  const known = new Set();
  return {
    add(event) {
      const found = resultOf(event);
      if (!found || known.has(found.offset)) return;
      known.add(found.offset);
      let index = results.length;
      while (index > 0 && results[index - 1].time > found.time) index -= 1;
      results.splice(index, 0, found);
    },
    /** Drops what is older than the span, before `now`. */
    prune(now) {
      const first = results.findIndex((each) => each.time >= now - span);
      const gone = Math.max(first < 0 ? results.length : first, results.length - KEPT);
      for (const each of results.slice(0, gone)) known.delete(each.offset);
      if (gone) results = results.slice(gone);
    },
    results: () => results,
  };
}

/** Results as {times, values} of a chart; there is a gap where a result is missing. */
export function seriesOf(results, every) {
  const [times, values] = [[], []];
  for (const { time, value } of results) {
    if (times.length && time - times.at(-1) > 1.5 * every) {
      times.push(times.at(-1) + every);
      values.push(null);
    }
    times.push(time);
    values.push(value);
  }
  return { times, values };
}

/** The last time at which a result had other states than the one before; null if none is known. */
export function lastChange(results) {
  return results.findLast((each) => each.changed)?.time ?? null;
}

/** The y axis {low, high, ticks} for some values, with the nearest bounds of bands below and above them. */
export function axisOf(values, bands) {
  if (!values.length) return { low: 0, high: 1, ticks: [0, 0.5, 1] };
  let [low, high] = [Math.min(...values), Math.max(...values)];
  const span = Math.max(high - low, Math.abs(high) * 0.2, Math.abs(low) * 0.2, 1e-6);
  const bounds = bands.flatMap((band) => [band.low, band.high]).filter((each) => typeof each === "number");
  const below = bounds.filter((each) => each <= low && low - each <= NEAR * span);
  const above = bounds.filter((each) => each >= high && each - high <= NEAR * span);
  if (below.length) low = Math.max(...below);
  if (above.length) high = Math.min(...above);
  const margin = (high - low || Math.abs(high) * 0.1 || 1) * 0.08;
  const ticks = roundValues(low - margin, high + margin, 5);
  return { low: low - margin, high: high + margin, ticks };
}
