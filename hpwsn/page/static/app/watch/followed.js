// The events that somebody watches: the newest 500, those that came while it was paused, and rates. Pure.

/** Rows that are kept. */
export const MOST = 500;
/** Seconds over which the rate is taken. */
const WINDOW = 10;
const SHORTEST = 4;

/** A list of events with the newest first, at `now` in ms. */
export function createFollowed(now) {
  const counts = new Map();
  let rows = [];
  let held = [];
  let paused = false;
  let missed = 0;
  let skipped = 0;
  let newest = 0;

  function counted(number, at) {
    const second = Math.floor(at / 1000);
    counts.set(second, (counts.get(second) ?? 0) + number);
    for (const each of counts.keys()) if (each <= second - WINDOW - 1) counts.delete(each);
  }

  return {
    /** Adds an event unless it is there already, as after a reconnection. */
    add(event, at) {
      if (event.offset <= newest) return false;
      newest = event.offset;
      counted(1, at);
      if (paused) {
        missed += 1;
        held = [event, ...held].slice(0, MOST);
      } else rows = [event, ...rows].slice(0, MOST);
      return true;
    },
    /** Adds events from before the first one, with the newest first. */
    precede(events) {
      newest = Math.max(newest, ...events.map((event) => event.offset));
      rows = [...rows, ...events.filter((each) => !rows.some((row) => row.offset === each.offset))].slice(0, MOST);
    },
    /** The offset of the newest event that came; 0 before the first. */
    newest: () => newest,
    skip(number, at) {
      skipped += number;
      counted(number, at);
    },
    pause() {
      paused = true;
    },
    resume() {
      paused = false;
      rows = [...held, ...rows].slice(0, MOST);
      held = [];
      missed = 0;
    },
    /** What is shown now: rows, whether it is paused and how many came since, how many were skipped, events/s. */
    view(at) {
      const second = Math.floor(at / 1000);
      let sum = 0;
      for (const [each, number] of counts) if (each >= second - WINDOW && each < second) sum += number;
      const seconds = Math.min(WINDOW, Math.max(SHORTEST, second - Math.floor(now / 1000)));
      return { rows, paused, missed, skipped, rate: sum / seconds };
    },
  };
}
