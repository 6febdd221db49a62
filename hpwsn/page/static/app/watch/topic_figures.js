// The figures of one topic, asked again every four seconds by all who show them together.
import { useEffect, useState } from "../html.js";
import { get } from "../api.js";
import { state } from "../state.js";

const EVERY = 4000;
const asked = new Map();

async function ask(entry) {
  try {
    const { items } = await get("topics", { node: entry.node, query: { topic: entry.topic } });
    entry.figures = items[0] ?? null;
  } catch {
    // The last figures stay: whoever shows them tells of the connection too.
  }
  for (const listener of entry.listeners) listener(entry.figures);
}

function follow(topic, node, listener) {
  const key = `${node ?? ""} ${topic}`;
  let entry = asked.get(key);
  if (!entry) {
    entry = { topic, node, figures: undefined, listeners: new Set(), timer: 0 };
    asked.set(key, entry);
    entry.timer = setInterval(() => { if (!document.hidden && !state.get().paused) ask(entry); }, EVERY);
    ask(entry);
  }
  entry.listeners.add(listener);
  if (entry.figures !== undefined) listener(entry.figures);
  return () => {
    entry.listeners.delete(listener);
    if (entry.listeners.size) return;
    clearInterval(entry.timer);
    asked.delete(key);
  };
}

/** A topic as the API lists it; null if it does not exist yet, undefined until that is known. */
export function useTopicFigures(topic, node) {
  const [found, setFound] = useState({ topic: null, figures: undefined });
  useEffect(() => (topic ? follow(topic, node, (figures) => setFound({ topic, figures })) : undefined), [topic, node]);
  return found.topic === topic ? found.figures : undefined;
}
