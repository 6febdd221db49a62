// Server-sent events by fetch, which can send a token; one stream a visible tab.
//
// `openStream` reads one stream, reconnects with growing pauses, and goes on after the last id. A hidden tab
// has no stream: it is closed, and when the tab is seen again it goes on where it was. `takeStream` makes a
// stream the one of this tab; the stream that had the place before is closed, and opened again afterwards.
import { errorOf, headers } from "./api.js";

const FIRST_PAUSE = 500;
const LONGEST_PAUSE = 10_000;
const SILENT = 40_000;
/** Characters of one event above which it is not collected any longer: the node sends less. */
const LARGEST = 4 << 20;

/** Splits the text of a stream into events; pure. `push` returns the events that are complete. */
export function eventParser() {
  let rest = "";
  let event = { type: "message", data: [], id: undefined };
  function line(text, found) {
    if (text === "") {
      if (event.data.length || event.id !== undefined) found.push({ ...event, data: event.data.join("\n") });
      event = { type: "message", data: [], id: undefined };
      return;
    }
    const colon = text.indexOf(":");
    const name = colon < 0 ? text : text.slice(0, colon);
    const value = colon < 0 ? "" : text.slice(colon + (text[colon + 1] === " " ? 2 : 1));
    if (name === "event") event.type = value;
    else if (name === "data") event.data.push(value);
    else if (name === "id") event.id = value;
  }
  return {
    push(text) {
      const found = [];
      const lines = (rest + text).split("\n");
      rest = lines.pop();
      if (rest.length > LARGEST) throw new Error("an event of the stream is too large");
      for (const each of lines) line(each.endsWith("\r") ? each.slice(0, -1) : each, found);
      return found;
    },
  };
}

/**
 * Reads a stream of a node until `close`. `url` is a function, so that it can change between connections.
 * `onEvent({type, data, id})`; `onState("connecting" | "open" | "lost" | "hidden" | "refused", error)`.
 */
export function openStream({ url, node, onEvent, onState = () => {}, lastId }) {
  let stopped = false;
  let last = lastId;
  let pause = FIRST_PAUSE;
  let timer = 0;
  let silence = 0;
  let connection = null;

  function heard() {
    clearTimeout(silence);
    silence = setTimeout(() => connection?.abort(), SILENT);
  }

  async function connect() {
    clearTimeout(timer);
    if (stopped) return;
    if (document.hidden) {
      onState("hidden");
      return;
    }
    const mine = new AbortController();
    connection = mine;
    onState("connecting");
    try {
      await follow(mine);
      if (connection === mine) again();
    } catch (error) {
      if (connection !== mine) return;
      if (error.isFinal) onState("refused", error);
      else again(error);
    } finally {
      if (connection === mine) clearTimeout(silence);
    }
  }

  async function follow(mine) {
    const wanted = headers({ Accept: "text/event-stream" }, node);
    if (last !== undefined) wanted["Last-Event-ID"] = last;
    heard();
    const response = await fetch(url(), {
      headers: wanted, signal: mine.signal, credentials: "omit", cache: "no-store", redirect: "error",
    });
    if (!response.ok) throw await errorOf(response, node);
    if (!response.headers.get("Content-Type")?.startsWith("text/event-stream")) {
      throw new Error("the answer is not a stream; a proxy may stand before the node");
    }
    onState("open");
    const parser = eventParser();
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    for (;;) {
      const { done, value } = await reader.read();
      if (done || connection !== mine) return;
      heard();
      pause = FIRST_PAUSE;
      for (const event of parser.push(value)) {
        if (event.id !== undefined) last = event.id;
        if (event.data !== "") onEvent(event);
      }
    }
  }

  function again(error) {
    if (stopped) return;
    onState("lost", error);
    timer = setTimeout(connect, pause * (0.75 + Math.random() / 2));
    pause = Math.min(pause * 2, LONGEST_PAUSE);
  }

  function drop() {
    clearTimeout(timer);
    clearTimeout(silence);
    const mine = connection;
    connection = null;
    mine?.abort();
  }

  function seen() {
    drop();
    pause = FIRST_PAUSE;
    connect();
  }

  document.addEventListener("visibilitychange", seen);
  addEventListener("online", seen);
  connect();
  return {
    close() {
      stopped = true;
      document.removeEventListener("visibilitychange", seen);
      removeEventListener("online", seen);
      drop();
    },
  };
}

const places = [];
let frozen = false;

/**
 * Makes the stream that `open` returns the only one of this tab; returns what gives the place back. `waiting`
 * is called when another one takes the place.
 */
export function takeStream(open, waiting = () => {}) {
  const place = { open, waiting, stream: null };
  const before = places.at(-1);
  if (before) {
    stop(before);
    before.waiting();
  }
  places.push(place);
  start(place);
  return () => {
    const index = places.indexOf(place);
    if (index < 0) return;
    const active = index === places.length - 1;
    places.splice(index, 1);
    stop(place);
    if (active && places.length) start(places.at(-1));
  };
}

/** Closes the stream of this tab until it is called with false; whoever has the place keeps it. */
export function freezeStream(freeze) {
  frozen = freeze;
  const active = places.at(-1);
  if (!active) return;
  if (freeze) stop(active);
  else start(active);
}

function start(place) {
  if (!frozen && !place.stream) place.stream = place.open();
}

function stop(place) {
  place.stream?.close();
  place.stream = null;
}
