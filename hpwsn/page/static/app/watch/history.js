// Pages of earlier events of a topic, from the end of the log or from an offset, the newest first.
import { useCallback, useEffect, useRef, useState } from "../html.js";
import { state } from "../state.js";
import { readEvent } from "./events.js";
import { countEvents, lastEvents, logEnds, readEvents } from "./log_pages.js";

const PAGE = 100;
/** Events among which a filter looks at once, and how many such steps are done for a page. */
const SEARCHED = 1000;
const STEPS = 5;
const EVERY = 5000;

/** The page of events up to an offset: {events, next}; `next` is where the page before ends, null at the beginning. */
async function pageBefore({ topic, node, filter, upto, oldest }) {
  const events = [];
  let end = upto;
  for (let step = 0; step < STEPS && events.length < PAGE; step += 1) {
    const { after, events: number } = await lastEvents(topic, node, filter ? SEARCHED : PAGE, { upto: end, oldest });
    const lines = number ? await readEvents(topic, node, { after, upto: end, filter }) : [];
    events.push(...lines.reverse().map((line) => readEvent(line)));
    end = after;
    if (after < oldest || !number) return { events, next: null };
  }
  return { events, next: end };
}

/** How many events came after the end of the log as it was read. */
function useNewer(topic, node, end) {
  const [newer, setNewer] = useState(0);
  useEffect(() => {
    setNewer(0);
    if (end === undefined) return undefined;
    let current = true;
    async function look() {
      if (document.hidden || state.get().paused) return;
      try {
        const number = await countEvents(topic, node, end);
        if (current) setNewer(number);
      } catch {
        // It is counted again later.
      }
    }
    const timer = setInterval(look, EVERY);
    return () => {
      current = false;
      clearInterval(timer);
    };
  }, [topic, node, end]);
  return newer;
}

/**
 * The events up to the offset `from`, or up to the end of the log: {events, ends, next, newer, loading, error,
 * more(), restart()}. `ends` is of logEnds, `next` where the next page ends, null if there is none; `newer` counts
 * what came since.
 */
export function useHistory({ topic, node, filter, from }) {
  const [found, setFound] = useState({ events: [], ends: null, next: null, loading: true, error: null });
  const turn = useRef(0);

  const load = useCallback(async (before) => {
    turn.current += before ? 0 : 1;
    const mine = turn.current;
    setFound((now) => ({ ...now, ...(before ? {} : { events: [], next: null }), loading: true, error: null }));
    try {
      const ends = before?.ends ?? await logEnds(topic, node);
      const upto = before?.next ?? Math.min(from ?? Infinity, ends.end);
      const page = await pageBefore({ topic, node, filter, upto, oldest: ends.oldest });
      if (turn.current !== mine) return;
      const events = [...(before?.events ?? []), ...page.events];
      setFound({ events, ends, next: page.next, loading: false, error: null });
    } catch (error) {
      if (turn.current === mine) setFound((now) => ({ ...now, loading: false, error }));
    }
  }, [topic, node, filter, from]);

  useEffect(() => {
    load(null);
    return () => { turn.current += 1; };
  }, [load]);

  const newer = useNewer(topic, node, found.ends?.end);
  const more = useCallback(() => {
    if (!found.loading && !found.error && found.next !== null) load(found);
  }, [found, load]);
  return { ...found, newer, more, restart: () => load(null) };
}
