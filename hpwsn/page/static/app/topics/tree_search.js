// Searches the names and descriptions of all topics of a node.
import { useEffect, useState } from "../html.js";
import { get } from "../api.js";
import { counted } from "../format.js";
import { announce } from "../parts/toasts.js";
import { levelsOfMatches } from "./visible_rows.js";

const PAUSE = 150;
const MOST = 1000;

const empty = (text) => ({
  text, matches: new Set(), levels: new Map(), total: 0, open: new Set(), closed: new Set(), error: null,
});

/**
 * The topics that have a text, or null: {text, matches, levels, total, open, closed, error}. Topics above a match
 * are in `levels` too. The search is made again when `revision` changes.
 */
export function useTreeSearch(tree, text, revision) {
  const [found, setFound] = useState(null);
  useEffect(() => {
    if (!text) {
      setFound(null);
      return undefined;
    }
    let current = true;
    const timer = setTimeout(async () => {
      try {
        const { items, total } = await get("topics", { node: tree.node, query: { q: text, limit: MOST } });
        if (!current) return;
        items.forEach((item) => tree.put(item));
        const topics = items.map((item) => item.topic);
        const levels = levelsOfMatches(topics);
        for (const each of levels.values()) tree.name(each);
        const matches = new Set(topics);
        const fresh = { matches, levels, total, error: null };
        setFound((before) => ({ ...(before?.text === text ? before : empty(text)), ...fresh }));
        announce(`${counted(total, "topic")} found`);
      } catch (error) {
        if (current) setFound({ ...empty(text), error });
      }
    }, found && found.text !== text ? PAUSE : 0);
    return () => {
      current = false;
      clearTimeout(timer);
    };
  }, [tree, text, revision]);

  /** Opens or closes a topic among the results: first what was found below it, then all that is below it. */
  function toggle(topic, expanded) {
    const open = new Set(found.open);
    const closed = new Set(found.closed);
    if (expanded) closed.add(topic);
    else if (!closed.delete(topic) || !found.levels.has(topic)) {
      open.add(topic);
      tree.open(topic);
    }
    setFound({ ...found, open, closed });
  }
  return [text ? found : null, toggle];
}
