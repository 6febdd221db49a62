// One subscription, pull point or dead letter, read again and again while it is open, from the node that has it.
import { useCallback, useEffect, useRef, useState } from "../html.js";
import { get } from "../api.js";
import { state } from "../state.js";

const EVERY = 1000;

/** The answer of the first node that has it; the error of the last one if none has. */
async function find(path, names) {
  let last = null;
  const answers = await Promise.all(names.map(async (name) => {
    try {
      return { ...await get(path, { node: name }), at: name };
    } catch (error) {
      if (last === null || error.status !== 404) last = error;
      return null;
    }
  }));
  const found = answers.find(Boolean);
  if (found) return found;
  throw last;
}

/**
 * The item at a path as {item, gone, error, refresh}. `names` are the nodes that may have it, null for this process
 * alone. An item that vanishes stays, with `gone`; `every` is the pause in ms, 0 to read it once.
 */
export function useOne(path, names, every = EVERY) {
  const [found, setFound] = useState({ path, item: null, gone: false, error: null });
  const where = useRef(null);
  const asked = useRef(path);
  asked.current = path;
  const nodes = JSON.stringify(names ?? [undefined]);

  const load = useCallback(async () => {
    const all = JSON.parse(nodes).map((name) => name ?? undefined);
    const known = where.current?.path === path ? [where.current.at] : all;
    if (!known.length) return true;
    try {
      const item = await find(path, known);
      where.current = { path, at: item.at };
      if (asked.current === path) setFound({ path, item, gone: false, error: null });
    } catch (error) {
      const gone = error.status === 404;
      const last = (before) => (before.path === path ? before.item : null);
      if (asked.current === path) {
        setFound((before) => ({ path, item: last(before), gone, error: gone ? null : error }));
      }
      return !gone;
    }
    return true;
  }, [path, nodes]);

  useEffect(() => {
    let timer = 0;
    let stopped = false;
    let first = true;
    async function loop() {
      const goes = !first && (document.hidden || state.get().paused) ? true : await load();
      first = false;
      if (!stopped && every && goes) timer = setTimeout(loop, every);
    }
    loop();
    return () => {
      stopped = true;
      clearTimeout(timer);
    };
  }, [load, every]);

  const current = found.path === path ? found : { item: null, gone: false, error: null };
  return { item: current.item, gone: current.gone, error: current.error, refresh: load };
}
