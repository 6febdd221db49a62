// Follows a topic by the stream of this tab: from now on, with what came shortly before, and after each interruption
// from the last event. The node sends at most 50 events a second and tells how many it skipped.
import { useCallback, useEffect, useRef, useState } from "../html.js";
import { ApiError, eventsPath, urlOf } from "../api.js";
import { milliseconds } from "../format.js";
import { openStream, takeStream } from "../stream.js";
import { announce } from "../parts/toasts.js";
import { CUT, readEvent, wordsOf } from "./events.js";
import { createFollowed } from "./followed.js";
import { lastEvents, logEnds, readEvents } from "./log_pages.js";

/** Events a second that the node sends at most. */
export const MOST_RATE = 50;
/** How many earlier events are shown, and of how many a filter may choose them. */
const EARLIER = 20;
const EARLIER_SEARCHED = 500;
const DRAW = 100;
const AGAIN = 1500;
const LONGEST_WORDS = 200;

async function readEarlier({ topic, node, filter }, { end, oldest }) {
  const { after } = await lastEvents(topic, node, filter ? EARLIER_SEARCHED : EARLIER, { upto: end, oldest });
  const lines = await readEvents(topic, node, { after, upto: end, filter });
  return lines.slice(-EARLIER).reverse().map((line) => readEvent(line));
}

/**
 * Follows until `close`; tells `followed` what comes, and `onState(name, error)` how the connection is. Of what was
 * published before the stream begins, it shows what is after the offset `newest` and the time `since`, and on request
 * what is `earlier`, too.
 */
function follow({ topic, node, filter, earlier, since, newest }, followed, { onChange, onState }) {
  let last;
  let stopped = false;
  let timer = 0;
  let release = () => {};

  function onEvent({ type, data, id }) {
    if (id !== undefined) last = id;
    const now = Date.now();
    if (type === "skipped") followed.skip(JSON.parse(data).skipped, now);
    else {
      const event = readEvent(data);
      if (followed.add(event, now) && !followed.view(now).paused) announce(wordsOf(event).slice(0, LONGEST_WORDS));
    }
    onChange();
  }

  const open = () => openStream({
    url: () => urlOf(eventsPath(topic), { node, query: { max_rate: MOST_RATE, cut: CUT, filter } }),
    node, onEvent, onState, lastId: last,
  });

  // Until the end of the log is known, an interruption of the stream could miss events.
  async function begin() {
    let ends;
    try {
      ends = await logEnds(topic, node);
    } catch (error) {
      if (stopped) return;
      onState(error.isFinal ? "refused" : "lost", error);
      if (!error.isFinal) timer = setTimeout(begin, AGAIN);
      return;
    }
    if (stopped) return;
    last = String(ends.end);
    release = takeStream(open, () => onState("waiting"));
    const events = await readEarlier({ topic, node, filter }, ends).catch(() => []);
    if (stopped) return;
    const marked = events.map((event) => ({ ...event, earlier: milliseconds(event.time) < since }));
    followed.precede(earlier ? marked : marked.filter((event) => !event.earlier && event.offset > newest));
    onChange();
  }

  begin();
  return () => {
    stopped = true;
    clearTimeout(timer);
    release();
  };
}

/**
 * The events of a topic as they come: {rows, rate, skipped, paused, missed, connection, error, lostAt, pause(),
 * resume(), retry(), fromNow()}. `connection` is "connecting", "open", "lost" (since `lostAt`), "refused", "hidden" or
 * "waiting". With another filter all rows go; earlier events are shown only for the filter that was there first.
 * `fromNow` returns a function to call just before another filter is set: no event since `fromNow` is missed then. For
 * another topic, use another element.
 */
export function useFollowed(topic, node, filter) {
  const followed = useRef(null);
  const start = useRef({ filter, since: Date.now(), newest: 0 });
  const [connection, setConnection] = useState({ name: "connecting", error: null, lostAt: null });
  const [turn, setTurn] = useState(0);
  const [view, setView] = useState(null);
  const drawing = useRef(0);

  const draw = useCallback(() => {
    drawing.current = 0;
    setView(followed.current.view(Date.now()));
  }, []);
  const later = useCallback(() => {
    if (!drawing.current) drawing.current = setTimeout(draw, DRAW);
  }, [draw]);

  useEffect(() => {
    const from = start.current ?? { since: Date.now(), newest: followed.current.newest() };
    const earlier = from.filter === filter && !followed.current;
    start.current = null;
    followed.current = createFollowed(Date.now());
    let lost = false;
    setView(followed.current.view(Date.now()));
    const onState = (name, error) => {
      if (name === "connecting" && lost) return;
      const told = error instanceof ApiError ? error : null;
      setConnection(({ lostAt }) => ({ name, error: told, lostAt: name === "lost" ? lostAt ?? Date.now() : null }));
      if (name === "lost" && !lost) announce("Connection lost");
      if (name === "open" && lost) announce("Connected again");
      lost = name === "lost";
    };
    const stop = follow({ ...from, topic, node, filter, earlier }, followed.current, { onChange: later, onState });
    const timer = setInterval(() => { if (!document.hidden) draw(); }, 1000);
    return () => {
      stop();
      clearInterval(timer);
      clearTimeout(drawing.current);
      drawing.current = 0;
    };
  }, [topic, node, filter, turn]);

  return {
    ...(view ?? { rows: [], paused: false, missed: 0, skipped: 0, rate: 0 }),
    connection: connection.name, error: connection.error, lostAt: connection.lostAt,
    pause: () => { followed.current.pause(); draw(); },
    resume: () => { followed.current.resume(); draw(); },
    retry: () => setTurn((number) => number + 1),
    fromNow: () => {
      const from = { since: Date.now(), newest: followed.current.newest() };
      return () => { start.current = from; };
    },
  };
}
