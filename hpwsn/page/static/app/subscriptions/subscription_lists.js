// The lists that the address asks for: subscriptions with the numbers of the chips, and pull points.
import { useMemo } from "../html.js";
import { useAddress } from "../address.js";
import { count } from "../format.js";
import { useList } from "../parts/lists.js";
import { useKept } from "./rows.js";
import { bySort } from "./subscription_table.js";

export const DEFAULT_SORT = "-waiting";

const OF_THE_API = new Set(["live", "retrying", "paused", "expired"]);
const SLOWER = 10_000;
const NONE = [];

const keyed = (items) => items.map((item) => ({ ...item, key: `${item.at ?? ""} ${item.id}` }));
const byId = (left, right) => (left.id < right.id ? -1 : 1);

/** The question that the address asks: of the API `query`, and what only the page filters. */
export function useQuestion() {
  const { q = "", state = "", sort = DEFAULT_SORT, topic, id } = useAddress((found) => found.query);
  return { q, state, sort, topic, id, points: state === "pullpoints", behind: state === "waiting" };
}

/** The list that the address asks for, and the numbers of the chips. */
export function useSubscriptions({ q, state, sort, topic, points, behind }, names) {
  // Those that wait are the first by -waiting; the API has no such state.
  const asked = behind ? DEFAULT_SORT : sort;
  const order = useMemo(() => bySort(asked), [asked]);
  const list = useKept(useList({
    path: "subscriptions", nodes: points || names === undefined ? NONE : names, order,
    query: { q, topic, sort: asked, state: OF_THE_API.has(state) ? state : undefined },
  }), !points && names !== undefined);
  const complete = !points && asked === DEFAULT_SORT && !OF_THE_API.has(state);
  const first = useList({
    path: "subscriptions", nodes: complete || names === undefined ? NONE : names, order: bySort(DEFAULT_SORT),
    query: { q, topic, sort: DEFAULT_SORT }, every: SLOWER,
  });
  const worst = complete ? list : first;
  const waiting = worst.items.filter((item) => item.waiting > 0).length;
  const items = useMemo(() => {
    const found = keyed(behind ? list.items.filter((item) => item.waiting > 0) : list.items);
    return behind && sort !== asked ? found.sort(bySort(sort)) : found;
  }, [list.items, behind, sort, asked]);
  const counts = points ? first.counts : list.counts;
  const more = waiting > 0 && waiting === worst.items.length && waiting < worst.total;
  return {
    // All that wait come first: after the first that does not, there are no more.
    list: behind && items.length < list.items.length ? { ...list, more: undefined } : list,
    items, counts, all: Object.values(counts).reduce((sum, value) => sum + value, 0),
    waiting: more ? `${count(waiting)}+` : count(waiting),
  };
}

/** The pull points that have the text in their id, name or address. */
export function usePullPoints({ q, points }, names) {
  const list = useKept(useList({
    path: "pullpoints", query: {}, nodes: !points || names === undefined ? NONE : names, order: byId,
  }), points && names !== undefined);
  const wanted = q.trim().toLowerCase();
  const items = useMemo(() => keyed(list.items).filter((point) => (
    !wanted || [point.id, point.name, point.reference].some((text) => text?.toLowerCase().includes(wanted))
  )), [list.items, wanted]);
  return { list, items };
}

