// One service, asked for again and again while its panel is open.
import { useEffect, useState } from "../html.js";
import { get } from "../api.js";
import { state } from "../state.js";

const EVERY = 2000;

export const servicePath = (uri) => `streams/${encodeURIComponent(uri)}`;

/**
 * The service as {item, gone, error}, from the node `listed.at`. A service that is not listed any more stays, with
 * `gone`. Each answer is another object.
 */
export function useService(uri, listed) {
  const [found, setFound] = useState({ item: null, gone: false, error: null });
  const known = listed !== undefined;
  const node = listed?.at;
  useEffect(() => {
    if (!known) {
      setFound((before) => ({ ...before, gone: true }));
      return undefined;
    }
    let stopped = false;
    let timer = 0;
    async function look(first) {
      if (first || !(document.hidden || state.get().paused)) {
        let patch;
        try {
          patch = { item: { ...await get(servicePath(uri), { node }), at: node }, gone: false, error: null };
        } catch (error) {
          patch = error.status === 404 ? { gone: true, error: null } : { error };
        }
        if (!stopped) setFound((before) => ({ ...before, ...patch }));
      }
      if (!stopped) timer = setTimeout(look, EVERY);
    }
    look(true);
    return () => {
      stopped = true;
      clearTimeout(timer);
    };
  }, [uri, known, node]);
  return found;
}
