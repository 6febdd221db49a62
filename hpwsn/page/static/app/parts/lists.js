// Long lists: only the rows in sight are elements; lists from pages of one or several nodes; their states.
import { html, useCallback, useEffect, useLayoutEffect, useReducer, useRef, useState } from "../html.js";
import { get } from "../api.js";
import { clock } from "../format.js";
import { state, useShared, wordsOf } from "../state.js";
import { Button, Text } from "./controls.js";

const OVERSCAN = 8;
const SPARE = 2;
const PAGE = 100;
const LARGEST_PAGE = 1000;
const REFRESH = 2000;
const SLOW = 150;

/**
 * The rows of a list of equal rows to have as elements: those in sight in the element of `ref`, and some beside them.
 * They stay the same until fewer than SPARE are left beside them, since each change renders the list again.
 */
export function useWindow(ref, total, height) {
  const [range, setRange] = useState([0, 40]);
  const look = useCallback(() => {
    const element = ref.current;
    if (!element) return;
    const box = element.getBoundingClientRect();
    let top = 0;
    let bottom = innerHeight;
    for (let outer = element.parentElement; outer && outer !== document.body; outer = outer.parentElement) {
      if (outer.scrollHeight > outer.clientHeight && getComputedStyle(outer).overflowY !== "visible") {
        const frame = outer.getBoundingClientRect();
        top = Math.max(top, frame.top);
        bottom = Math.min(bottom, frame.bottom);
      }
    }
    const first = Math.max(0, Math.floor((top - box.top) / height));
    const last = Math.min(total, Math.max(first, Math.ceil((bottom - box.top) / height)));
    const enough = ([from, to]) => from <= Math.max(0, first - SPARE) && to >= Math.min(total, last + SPARE);
    setRange((before) => (enough(before) ? before
      : [Math.max(0, first - OVERSCAN), Math.min(total, last + OVERSCAN)]));
  }, [total, height]);
  useLayoutEffect(look);
  useEffect(() => {
    let frame = 0;
    const later = () => {
      cancelAnimationFrame(frame);
      frame = requestAnimationFrame(look);
    };
    document.addEventListener("scroll", later, { capture: true, passive: true });
    addEventListener("resize", later);
    return () => {
      cancelAnimationFrame(frame);
      document.removeEventListener("scroll", later, { capture: true });
      removeEventListener("resize", later);
    };
  }, [look]);
  return [Math.min(range[0], total), Math.min(range[1], total)];
}

/**
 * The body of a table of which only rows in sight are elements. `row(item, index)` gives a <tr> with
 * `aria-rowindex` index + 2 (the head is row 1); `height` is that of a row in pixels, borders included.
 */
export function VirtualRows({ items, height, row, columns, onEnd, ...rest }) {
  const ref = useRef(null);
  const [first, last] = useWindow(ref, items.length, height);
  useEffect(() => {
    if (onEnd && last >= items.length) onEnd();
  }, [last, items.length, onEnd]);
  const space = (rows) => rows > 0 && html`<tr class="space" role="presentation" aria-hidden="true" style=${{ height: `${rows * height}px` }}><td colspan=${columns}></td></tr>`;
  return html`<tbody ref=${ref} ...${rest}>
    ${space(first)}
    ${items.slice(first, last).map((item, index) => row(item, first + index))}
    ${space(items.length - last)}
  </tbody>`;
}

const compare = (left, right) => {
  if (left === right) return 0;
  if (left === null || left === undefined) return -1;
  if (right === null || right === undefined) return 1;
  return left < right ? -1 : 1;
};

/**
 * A list of the API over some nodes, in pages, merged and refreshed. `nodes` are names; null means this
 * process alone. `order(left, right)` sorts the items of several nodes. Returns {items, total, counts, loading,
 * error, partial: [{node, error}], updated, more(), refresh()}; items have the field `at`, the node asked.
 */
export function useList({ path, query, nodes, order, every = REFRESH }) {
  const [found, setFound] = useState(null);
  const wanted = JSON.stringify([path, query, nodes]);
  const now = useRef(null);
  const limit = useRef(PAGE);
  const loaded = useRef(false);
  const interval = useRef(every);
  now.current = wanted;

  const load = useCallback(async () => {
    const asked = wanted;
    const from = nodes ?? [undefined];
    const answers = await Promise.all(from.map((node) => readPages(path, query, node, limit.current)));
    if (now.current !== asked) return;
    setFound((before) => merged(answers, { asked, order, before }));
  }, [wanted]);

  useEffect(() => {
    limit.current = PAGE;
    let stopped = false;
    let timer = 0;
    async function loop() {
      if (!document.hidden && !(state.get().paused && loaded.current)) await load();
      loaded.current = true;
      // Long lists take longer to send than they stay new.
      interval.current = every * Math.max(1, limit.current / LARGEST_PAGE);
      if (!stopped && every) timer = setTimeout(loop, interval.current);
    }
    loaded.current = false;
    loop();
    return () => {
      stopped = true;
      clearTimeout(timer);
    };
  }, [load, every]);

  const more = useCallback(() => {
    if (!found || found.asked !== wanted || found.items.length >= found.total) return;
    if (limit.current > found.items.length) return;
    limit.current = found.items.length + (found.items.length < LARGEST_PAGE ? PAGE * 4 : LARGEST_PAGE);
    load();
  }, [found, load, wanted]);

  let fresh = found?.asked === wanted ? found : null;
  // What may not be seen any more is not shown either.
  if (fresh?.error?.status === 403) fresh = { ...fresh, items: [], total: null, counts: {} };
  return {
    items: fresh?.items ?? [], total: fresh?.total ?? null, counts: fresh?.counts ?? {}, loading: !fresh,
    error: fresh?.error ?? null, partial: fresh?.partial ?? [], updated: fresh?.updated ?? null, more, refresh: load,
    interval: interval.current,
  };
}

async function readPages(path, query, node, wanted) {
  const items = [];
  let after;
  let answer;
  try {
    do {
      const limit = Math.min(LARGEST_PAGE, wanted - items.length);
      answer = await get(path, { node, query: { ...query, limit, after } });
      items.push(...answer.items.map((item) => ({ ...item, at: node })));
      after = answer.next ?? undefined;
    } while (after && items.length < wanted);
    return { node, items, total: answer.total ?? items.length, counts: answer.counts ?? {} };
  } catch (error) {
    return { node, error };
  }
}

function merged(answers, { asked, order, before }) {
  const good = answers.filter((answer) => !answer.error);
  const bad = answers.filter((answer) => answer.error);
  const kept = before?.asked === asked ? before : null;
  if (!good.length && bad.length) {
    return { items: [], total: 0, counts: {}, updated: null, ...kept, asked, error: bad[0].error, partial: [] };
  }
  const items = good.flatMap((answer) => answer.items);
  if (good.length > 1 && order) items.sort(order);
  const counts = {};
  for (const answer of good) {
    for (const [name, value] of Object.entries(answer.counts)) counts[name] = (counts[name] ?? 0) + value;
  }
  const total = good.reduce((sum, answer) => sum + answer.total, 0);
  return { asked, items, total, counts, error: null, partial: bad, updated: Date.now() };
}

/** A comparison by a sort such as "-waiting", with the id as the last word. */
export function byField(sort, name = "id") {
  const descending = sort.startsWith("-");
  const field = sort.replace(/^-/, "");
  return (left, right) => {
    const found = compare(left[field], right[field]) || compare(left[name], right[name]);
    return descending ? -found : found;
  };
}

/**
 * What stands in place of a list's rows, or above them: loading, error, not allowed, empty, no match, stale,
 * partial. `empty` are words or elements: what would be here, and what fills it. `onClear` clears the filters.
 */
export function ListState({ list, filtered, empty, onClear, dead = [] }) {
  const paused = useShared((shared) => shared.paused);
  useShared((shared) => shared.heard);
  const { loading, error, items, updated, partial } = list;
  if (loading) return html`<${Loading} />`;
  const notes = [];
  if (error) {
    if (error.status === 403) return html`<${Notice} kind="not-allowed">${wordsOf(error)}<//>`;
    const since = updated && html` Not updated since ${clock(updated / 1000)}.`;
    notes.push(html`<p class="note bad" role="alert" key="error"><span>${wordsOf(error)}${since}</span>
      <${Button} onClick=${list.refresh}>Try again<//></p>`);
  } else if (!paused && updated && list.interval && Date.now() - updated > 4 * list.interval) {
    notes.push(html`<p class="note" key="stale">Not updated since ${clock(updated / 1000)}.</p>`);
  }
  for (const node of dead) notes.push(html`<p class="note" key=${`dead ${node}`}><${Text}>${node}<//> is dead: what it has is not listed.</p>`);
  for (const each of partial) {
    notes.push(html`<p class="note" key=${`partial ${each.node}`}><${Text}>${each.node}<//> is not listed: ${wordsOf(each.error)}</p>`);
  }
  if (!items.length && !error) {
    notes.push(filtered
      ? html`<${Notice} kind="no-match" key="none">Nothing matches. ${onClear && html`<${Button} onClick=${onClear}>Clear filters<//>`}<//>`
      : html`<${Notice} kind="empty" key="none">${empty}<//>`);
  }
  return html`${notes}`;
}

/** A text in the place of a list. */
export const Notice = ({ kind, children }) => html`<div class=${`notice notice-${kind}`}><div>${children}</div></div>`;

/** Grey rows, which appear after a moment, so that quick answers do not flicker. */
export function Loading({ rows = 6 }) {
  const [shown, show] = useReducer(() => true, false);
  useEffect(() => {
    const timer = setTimeout(show, SLOW);
    return () => clearTimeout(timer);
  }, []);
  return html`<div class="loading" role="status" aria-label="Loading">
    ${shown && Array.from({ length: rows }, (_, index) => html`<i key=${index}></i>`)}</div>`;
}

/** A head cell that sorts, descending first, ascending with `up`; `sort` is the current order, such as "-waiting". */
export function SortHead({ field, sort, onSort, up, children, ...rest }) {
  const active = sort.replace(/^-/, "") === field;
  const descending = sort.startsWith("-");
  const next = (active ? descending : up) ? field : `-${field}`;
  return html`<th scope="col" aria-sort=${active ? (descending ? "descending" : "ascending") : null} ...${rest}>
    <button type="button" onClick=${() => onSort(next)}>${children}${active && html`<span aria-hidden="true"> ${descending ? "↓" : "↑"}</span>`}</button></th>`;
}
