// One physical sensor, read again and again while it is open, with the values of its last reading.
import { useEffect, useState } from "../html.js";
import { get } from "../api.js";
import { state } from "../state.js";
import { readOne } from "../watch/log_pages.js";

const EVERY = 2000;

export const sensorPath = (id) => `sensors/${encodeURIComponent(id)}`;
export const sensorTopic = ({ kind, id }) => `sensors:${kind}:${id}`;

/** The fields of the last event of a topic; null if there is none, or it cannot be read. */
async function lastEvent(topic, node) {
  try {
    const { items } = await get("topics", { node, query: { topic } });
    const offset = items[0]?.topic === topic ? items[0].last?.offset : undefined;
    const line = offset === undefined ? null : await readOne(topic, node, offset);
    const data = line && JSON.parse(line).data;
    return data && typeof data === "object" ? data : null;
  } catch {
    return null;
  }
}

/**
 * The sensor `listed` as {item, values, gone, error}, from its node; `values` are the fields of its last reading. A
 * sensor that is not listed any more stays, with `gone`.
 */
export function useOneSensor(listed) {
  const [found, setFound] = useState({ item: null, values: null, gone: false, error: null });
  const known = Boolean(listed);
  const [id, node] = [listed?.id, listed?.at];
  useEffect(() => {
    if (!known) {
      setFound((before) => ({ ...before, gone: true }));
      return undefined;
    }
    let stopped = false;
    let timer = 0;
    let last = null;
    async function look(first) {
      if (first === true || !(document.hidden || state.get().paused)) {
        let patch;
        try {
          const item = { ...await get(sensorPath(id), { node }), at: node };
          const seen = item.state.last_seen;
          const values = seen && seen !== last ? await lastEvent(sensorTopic(item), node) : undefined;
          last = seen;
          patch = { item, gone: false, error: null, ...(values !== undefined && { values }) };
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
  }, [known, id, node]);
  return found;
}
