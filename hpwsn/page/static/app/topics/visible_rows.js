// The rows of the tree from top to bottom: what is open, what a search found, what chips leave, and the row in
// which somebody types a name. Pure.
import { ancestorsOf, childOf, parentOf, stepsOf } from "./topic_names.js";

/** Filters by chips. A topic passes with any topic below it, so the way to each match stays. */
export const FILTERS = ["subscribers", "traffic"];
const PASSES = {
  subscribers: (item) => item.subscribers_below > 0,
  traffic: (item) => item.rate_below > 0,
};
/** A name for a new topic is typed after so many topics at most; otherwise right below the parent. */
const NEAR = 12;

/** Matches of a search by level: each topic above a match is in it too. */
export function levelsOfMatches(topics) {
  const levels = new Map();
  const known = new Set();
  for (const topic of topics) {
    for (const each of [...ancestorsOf(topic), topic]) {
      if (known.has(each)) continue;
      known.add(each);
      const parent = parentOf(each);
      if (!levels.has(parent)) levels.set(parent, []);
      levels.get(parent).push(each);
    }
  }
  return levels;
}

/**
 * The rows of a tree: {key, topic, level, position, size, expanded}. `expanded` is undefined for a topic without
 * topics below it. `search` is {matches, levels, open, closed}, or null; `filters` are names of chips.
 */
export function rowsOf(tree, { search = null, filters = [] } = {}) {
  const rows = [];
  const passes = (topic) => {
    const item = tree.items.get(topic);
    return item !== undefined && filters.every((name) => item.unread || PASSES[name](item));
  };
  const walk = (topics, level, total) => {
    const shown = topics.filter(passes);
    shown.forEach((topic, index) => {
      const below = childrenOf(tree, topic, search);
      const item = tree.items.get(topic);
      rows.push({
        key: topic, topic, level, position: index + 1, size: filters.length ? shown.length : total ?? shown.length,
        expanded: item.children > 0 || below?.topics.length ? Boolean(below) : undefined,
      });
      if (below) walk(below.topics, level + 1, below.total);
    });
  };
  const roots = search ? { topics: search.levels.get("") ?? [] } : tree.levels.get("");
  if (roots) walk(usualFirst(roots.topics), 1, roots.total);
  return rows;
}

/** Roots with those of the usual namespace first; the node lists them by namespace. */
const usualFirst = (roots) => [
  ...roots.filter((topic) => !topic.startsWith("{")), ...roots.filter((topic) => topic.startsWith("{")),
];

/** The topics shown below one, or null if it is closed. */
function childrenOf(tree, topic, search) {
  if (!search) return tree.expanded.has(topic) ? tree.levels.get(topic) ?? { topics: [] } : null;
  if (search.closed.has(topic)) return null;
  if (search.open.has(topic)) return tree.levels.get(topic) ?? { topics: [] };
  const found = search.levels.get(topic);
  return found ? { topics: found } : null;
}

/** The rows with the one in which a name is typed: in place of the renamed topic, or as the new topic. */
export function withDraft(rows, draft) {
  if (!draft) return rows;
  const level = stepsOf(draft.parent).length + 1;
  const typed = { key: "draft", draft, level, position: 1, size: 1 };
  const place = draft.kind === "rename" ? rows.findIndex((row) => row.topic === draft.topic) : -1;
  if (place >= 0) return rows.toSpliced(place, 1, { ...rows[place], ...typed, topic: draft.topic });
  const above = draft.parent ? rows.findIndex((row) => row.topic === draft.parent) : -1;
  if (draft.parent && above < 0) return [typed, ...rows];
  let end = above + 1;
  while (end < rows.length && rows[end].level >= level) end += 1;
  return rows.toSpliced(end - above - 1 > NEAR ? above + 1 : end, 0, typed);
}

/** The topic that a draft makes of a text. */
export const draftedTopic = (draft, text) => childOf(draft.parent, text);
