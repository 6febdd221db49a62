// The events of a topic as a file with an event on each line, as the API writes them.
import { saveText } from "./downloads.js";
import { lastEvents, readEvents } from "./log_pages.js";

const MOST = 100_000;
const LARGEST = 64e6;
const STEP = 1000;

/**
 * Saves the newest events up to `from` or the end of the log, at most 100,000 or 64 MB. Returns {events, whole}.
 * `onProgress` gets their number from time to time.
 */
export async function downloadEvents({ topic, node, filter, ends, from, signal, onProgress }) {
  const upto = Math.min(from ?? Infinity, ends.end);
  const { after } = await lastEvents(topic, node, MOST, { upto, oldest: ends.oldest });
  const parts = [];
  let events = 0;
  let size = 0;
  let end = upto;
  while (end > after && size < LARGEST) {
    signal.throwIfAborted();
    const page = await lastEvents(topic, node, STEP, { upto: end, oldest: after + 1 });
    const lines = await readEvents(topic, node, { after: page.after, upto: end, filter, signal });
    const text = lines.map((line) => `${line}\n`).join("");
    parts.unshift(text);
    events += lines.length;
    size += text.length;
    end = page.after;
    onProgress(events);
  }
  saveText(`${topic}.ndjson`, parts, "application/x-ndjson");
  return { events, whole: end <= after && after < ends.oldest };
}
