// The log of a topic from its end: where the last events begin, and pages of events. HEAD tells places and counts.
import { eventsPath, request } from "../api.js";
import { CUT, linesOf } from "./events.js";

/** Offsets before the end in which the last events are looked for first. */
const FIRST_LOOK = 2000;
const WIDER = 32;

/** The answer to HEAD; the words of an error are those of GET, since the answer to HEAD has no body. */
async function ask(topic, node, query) {
  try {
    return await request("HEAD", eventsPath(topic), { node, query });
  } catch (error) {
    if (error.status) await request("GET", eventsPath(topic), { node, query: { max: 1 } });
    throw error;
  }
}

async function measure(topic, node, query) {
  const { headers } = await ask(topic, node, query);
  const number = (name) => (headers.has(name) ? Number(headers.get(name)) : null);
  const [end, oldest] = [number("Hpwsn-After"), number("Hpwsn-Oldest")];
  return { end, oldest, events: number("Hpwsn-Waiting"), upto: number("Hpwsn-Upto") };
}

/** Where the log ends now, and the oldest offset that is kept: {end, oldest}. */
export const logEnds = (topic, node) => measure(topic, node, {});

/** How many events of the topic lie after an offset. */
export const countEvents = async (topic, node, after) => (await measure(topic, node, { after })).events;

/**
 * The offset after which the last `count` events up to `upto` lie: {after, events}, with less events if there are not
 * so many from `oldest` on.
 */
export async function lastEvents(topic, node, count, { upto, oldest }) {
  const first = Math.max(0, oldest - 1);
  for (let span = FIRST_LOOK; ; span *= WIDER) {
    const after = Math.max(first, upto - span);
    const { events } = after < upto ? await measure(topic, node, { after, upto }) : { events: 0 };
    if (events > count) {
      const place = await measure(topic, node, { after, upto, max: events - count });
      return { after: place.upto, events: count };
    }
    if (events === count || after === first) return { after, events };
  }
}

/** The events after an offset up to another one that match, as JSON texts with the oldest first. */
export async function readEvents(topic, node, { after, upto, filter, dialect, payload, signal }) {
  const found = [];
  let from = after;
  while (from < upto) {
    const query = { after: from, upto, max: 1000, cut: CUT, payload, filter, dialect };
    const response = await request("GET", eventsPath(topic), { node, query, signal });
    found.push(...linesOf(await response.text()));
    const next = Number(response.headers.get("Hpwsn-After"));
    if (!(next > from)) break;
    from = next;
  }
  return found;
}

/** One event as JSON; `payload` is "raw" for the stored XML, `cut` false for all of it. Null if it is not kept. */
export async function readOne(topic, node, offset, { payload, cut = true } = {}) {
  const query = { after: offset - 1, upto: offset, payload, cut: cut ? CUT : undefined };
  const response = await request("GET", eventsPath(topic), { node, query });
  return linesOf(await response.text())[0] ?? null;
}
