// All items of a list of the API from some nodes, page by page: the map needs all sensors. The first time they are
// shown as they come; then all are read again, the more rarely the more there are.
import { useCallback, useEffect, useRef, useState } from "../html.js";
import { get } from "../api.js";
import { state } from "../state.js";

const PAGE = 1000;
const EVERY = 2500;
/** Items of one node that are read; the page says if there are more. */
export const MOST = 20_000;
const NONE = [];

async function readAll({ path, query, node, most, read }, onPage) {
  const items = [];
  let after;
  let total;
  do {
    const limit = Math.min(PAGE, most - items.length);
    const answer = await read(path, { node, query: { ...query, limit, after } });
    for (const item of answer.items) items.push({ ...item, at: node });
    total = answer.total ?? items.length;
    after = answer.next ?? undefined;
    onPage({ node, items, total, done: !after });
  } while (after && items.length < most);
  return { node, items, total };
}

function joined(answers) {
  const good = answers.filter((answer) => answer?.items);
  return {
    items: good.length === 1 ? good[0].items : good.flatMap((answer) => answer.items),
    total: good.reduce((sum, answer) => sum + answer.total, 0),
  };
}

/** What is shown after a page: a list that was complete stays until the next one is. */
function withPages(before, pages, asked) {
  if (before?.asked === asked && before.complete) return before;
  const { items, total } = joined(pages);
  return {
    asked, items: [...items], total, error: null, partial: NONE, updated: Date.now(), complete: false,
  };
}

const UNKNOWN = { items: NONE, total: 0, error: null, partial: NONE, updated: null, complete: false };

/**
 * The items of `path` at the nodes `names` (null: this process alone; undefined: not known yet), at most `most` of a
 * node. As useList gives them: {items, total, loading, error, partial, updated, interval, refresh}; `complete` once
 * each node has answered to the end. `read(path, options)` gets a page.
 */
export function useAllItems({ path, names, query, most = MOST, read = get }) {
  const [found, setFound] = useState(null);
  const known = names !== undefined;
  const wanted = JSON.stringify([path, names ?? null, query ?? null]);
  const now = useRef({ wanted: null, turn: 0, most });
  now.current.wanted = wanted;
  now.current.most = most;
  const interval = useRef(EVERY);

  const load = useCallback(async () => {
    if (!known) return;
    const asked = wanted;
    now.current.turn += 1;
    const mine = now.current.turn;
    const current = () => now.current.wanted === asked && now.current.turn === mine;
    const nodes = names ?? [undefined];
    const pages = nodes.map(() => null);
    const show = (patch) => setFound((before) => ({
      ...(before?.asked === asked ? before : UNKNOWN), asked, ...patch,
    }));
    const answers = await Promise.all(nodes.map(async (node, index) => {
      try {
        return await readAll({ path, query, node, most: now.current.most, read }, (page) => {
          pages[index] = page;
          if (current()) setFound((before) => withPages(before, pages, asked));
        });
      } catch (error) {
        return { node, error };
      }
    }));
    if (!current()) return;
    const bad = answers.filter((answer) => answer.error);
    const all = joined(answers);
    interval.current = EVERY * Math.max(1, Math.ceil(all.items.length / PAGE));
    if (nodes.length && bad.length === nodes.length) show({ error: bad[0].error, partial: NONE });
    else show({ ...all, error: null, partial: bad, updated: Date.now(), complete: true });
  }, [wanted, known]);

  useEffect(() => {
    let stopped = false;
    let timer = 0;
    let first = true;
    async function loop() {
      if (!document.hidden && (first || !state.get().paused)) await load();
      first = false;
      if (!stopped) timer = setTimeout(loop, interval.current);
    }
    loop();
    return () => {
      stopped = true;
      clearTimeout(timer);
    };
  }, [load, most]);

  const fresh = found?.asked === wanted ? found : null;
  // What may not be seen any more is not shown either.
  const refused = fresh?.error?.status === 403 && { items: NONE, total: 0 };
  return { ...UNKNOWN, ...fresh, ...refused, loading: !fresh, interval: interval.current, refresh: load };
}
