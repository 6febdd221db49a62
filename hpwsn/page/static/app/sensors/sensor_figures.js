// The figures of sensors in /status, summed over nodes: from the live stream of the node that serves the page, asked
// of all others.
import { useEffect, useMemo, useState } from "../html.js";
import { get } from "../api.js";
import { state, useShared } from "../state.js";

const EVERY = 4000;
const SUMMED = ["physical", "virtual", "running", "on_demand", "wanted", "readings"];

/** The sums of some `sensors` of /status, with `rejected` by reason and their number as `rejections`; pure. */
export function summed(all) {
  const found = { ...Object.fromEntries(SUMMED.map((name) => [name, 0])), rejected: {}, rejections: 0 };
  for (const each of all) {
    for (const name of SUMMED) found[name] += each[name] ?? 0;
    for (const [reason, number] of Object.entries(each.rejected ?? {})) {
      found.rejected[reason] = (found.rejected[reason] ?? 0) + number;
      found.rejections += number;
    }
  }
  return found;
}

/** The figures of the nodes `names`, or of this process alone for null; null until one has answered. */
export function useSensorFigures(names) {
  const own = useShared(({ session }) => (session?.kind === "node" ? session.node : null));
  const live = useShared((shared) => shared.live.status?.sensors);
  const [others, setOthers] = useState({});
  const asked = (names ?? []).filter((name) => name !== own);
  const key = JSON.stringify(asked);
  useEffect(() => {
    if (key === "[]") return undefined;
    let stopped = false;
    let timer = 0;
    async function look() {
      if (!document.hidden && !state.get().paused) {
        const found = await Promise.all(JSON.parse(key).map(async (node) => {
          const answer = await get("status", { node }).catch(() => null);
          return [node, answer?.sensors ?? null];
        }));
        if (!stopped) setOthers(Object.fromEntries(found));
      }
      if (!stopped) timer = setTimeout(look, EVERY);
    }
    look();
    return () => {
      stopped = true;
      clearTimeout(timer);
    };
  }, [key]);
  return useMemo(() => {
    const withOwn = names === null || names?.includes(own);
    const all = [...(withOwn && live ? [live] : []), ...asked.map((name) => others[name]).filter(Boolean)];
    return all.length ? summed(all) : null;
  }, [JSON.stringify(names ?? null), own, live, others]);
}
