// One subscription, pull point or dead letter, read again and again while it is open, from the node that has it.
import { useCallback, useEffect, useRef, useState } from "../html.js";
import { get } from "../api.js";
import { state } from "../state.js";

const EVERY = 1000;

/**
 * The readers of one item by its id at a node; null if it is not there. Lists are asked, since a browser reports an
 * answer 404 as an error of the page.
 */
export const READERS = {
  async subscription(id, node) {
    const found = await get("subscriptions", { node, query: { q: id, limit: 2 } });
    return found.items.find((item) => item.id === id) ?? null;
  },
  async pullPoint(id, node) {
    try {
      return await get(`pullpoints/${encodeURIComponent(id)}`, { node });
    } catch (error) {
      if (error.status === 404) return null;
      throw error;
    }
  },
  async deadLetter(id, node) {
    if (!/^\d{1,17}$/.test(id) || !Number(id)) return null;
    const found = await get("deadletters", { node, query: { after: Number(id) - 1, limit: 1 } });
    if (String(found.items[0]?.id) !== String(Number(id))) return null;
    return get(`deadletters/${id}`, { node });
  },
};

/** The item of the first node that has it, with the node as `at`; null if none has; an error if some did not say. */
async function find(read, id, nodes) {
  let failure = null;
  const answers = await Promise.all(nodes.map(async (node) => {
    try {
      const item = await read(id, node);
      return item && { ...item, at: node };
    } catch (error) {
      failure = error;
      return null;
    }
  }));
  const found = answers.find(Boolean);
  if (!found && failure) throw failure;
  return found ?? null;
}

/**
 * The item `id` as {item, gone, error, refresh, leave}. `names` are the nodes that may have it, null for this process
 * alone. An item that vanishes, or that the page removed (`leave`), stays with `gone`. `every` is the pause in ms, 0 to
 * read it once.
 */
export function useOne(kind, id, names, every = EVERY) {
  const [found, setFound] = useState({ id, item: null, gone: false, error: null });
  const where = useRef(null);
  const asked = useRef(id);
  const left = useRef(null);
  asked.current = id;
  const nodes = JSON.stringify(names ?? [undefined]);

  const load = useCallback(async () => {
    const all = JSON.parse(nodes).map((name) => name ?? undefined);
    const known = where.current?.id === id ? [where.current.at] : all;
    if (!known.length || left.current === id) return;
    let patch;
    try {
      const item = await find(READERS[kind], id, known);
      if (item) where.current = { id, at: item.at };
      patch = item ? { item, gone: false, error: null } : { gone: true, error: null };
    } catch (error) {
      patch = { error };
    }
    if (asked.current !== id || left.current === id) return;
    setFound((before) => ({ item: null, gone: false, ...(before.id === id ? before : null), id, ...patch }));
  }, [kind, id, nodes]);

  const leave = useCallback(() => {
    left.current = id;
    setFound((before) => ({ ...before, gone: true, error: null }));
  }, [id]);

  useEffect(() => {
    let timer = 0;
    let stopped = false;
    let first = true;
    async function loop() {
      if (first || !(document.hidden || state.get().paused)) await load();
      first = false;
      if (!stopped && every) timer = setTimeout(loop, every);
    }
    loop();
    return () => {
      stopped = true;
      clearTimeout(timer);
    };
  }, [load, every]);

  const current = found.id === id ? found : { item: null, gone: false, error: null };
  return { item: current.item, gone: current.gone, error: current.error, refresh: load, leave };
}
