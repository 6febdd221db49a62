// The crosshair that charts share: one time under the cursor for all charts of a group, by mouse or keyboard.
import { createStore, useStore } from "../store.js";

const PAGE = 10;
const groups = new Map();

/** The store {time, by} of a group: seconds since 1970 or null, and the chart whose mouse moved it or null. */
export function crosshairOf(group) {
  if (!groups.has(group)) groups.set(group, createStore({ time: null, by: null }));
  return groups.get(group);
}

/** The time under the crosshair of a group; null without one. */
export const useCrosshair = (group) => useStore(crosshairOf(group), (found) => found.time);

/** The index of the time that is nearest to `time` in ascending `times`; -1 if there are none. Pure. */
export function nearestIndex(times, time) {
  if (!times.length || time === null) return -1;
  let low = 0;
  let high = times.length - 1;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (times[middle] < time) low = middle + 1;
    else high = middle;
  }
  return low > 0 && time - times[low - 1] <= times[low] - time ? low - 1 : low;
}

/** The index to which a key moves from `index` (-1: no crosshair); undefined for other keys. Pure. */
export function movedIndex(key, index, length) {
  const last = length - 1;
  const from = index < 0 ? last : index;
  const to = {
    ArrowLeft: index < 0 ? last : from - 1, ArrowRight: index < 0 ? last : from + 1,
    PageUp: from - PAGE, PageDown: from + PAGE, Home: 0, End: last,
  }[key];
  return to === undefined ? undefined : Math.max(0, Math.min(last, to));
}
