// Rows that open something: one of them is in the order of the Tab key, arrows move, Enter opens, Space selects. Focus
// stays with its row when the list is sorted anew. Also the height of rows, and what is shown until an answer comes.
import { useEffect, useLayoutEffect, useRef, useState } from "../html.js";
import { usePhone } from "../parts/media.js";

const ROW = 33;
const CARD = 61;
const FRAMES = 10;
const NONE = [];
const STEPS = { ArrowDown: 1, ArrowUp: -1, PageDown: 10, PageUp: -10, Home: -Infinity, End: Infinity };

/** The height of a row: of a table, or of a card on a phone. */
export const useRowHeight = () => (usePhone() ? CARD : ROW);

/**
 * A list that keeps its last rows while another answer is under way; `stale` if they are not of now. Until it is
 * `asked`, it is loading. What failed for the question before is not told again.
 */
export function useKept(list, asked) {
  const last = useRef(null);
  if (!asked) {
    last.current = null;
    return { ...list, loading: true, stale: false };
  }
  if (!list.loading) last.current = list;
  if (list.loading && last.current) return { ...last.current, loading: false, stale: true, partial: NONE };
  return { ...list, stale: Boolean(list.error) };
}

function scrollTo(body, index, height) {
  let outer = body.parentElement;
  while (outer && !(outer.scrollHeight > outer.clientHeight && getComputedStyle(outer).overflowY !== "visible")) {
    outer = outer.parentElement;
  }
  if (!outer) return;
  const top = body.getBoundingClientRect().top - outer.getBoundingClientRect().top + outer.scrollTop;
  outer.scrollTop = Math.max(0, top + index * height - outer.clientHeight / 2);
}

/**
 * Keys and focus of rows. `keys` are those of all items in their order; `open(index, byKey)` and `select(index)` act on
 * one. Returns `body`, the ref of the table, `onKeyDown` for it, and `row(key, index)`, the properties of a row.
 */
export function useRows({ keys, height, open, select }) {
  const table = useRef(null);
  const focused = useRef(null);
  const [active, setActive] = useState(null);

  const elements = () => [...(table.current?.querySelectorAll("tr[data-row]") ?? [])];
  const rowOf = (key) => elements().find((each) => each.dataset.row === key);

  useLayoutEffect(() => {
    const now = document.activeElement;
    const lost = focused.current !== null && (now === document.body || now === null);
    if (lost) rowOf(focused.current)?.focus({ preventScroll: true });
    if (table.current && !table.current.querySelector("tr[data-row][tabindex='0']")) {
      const first = table.current.querySelector("tr[data-row]");
      if (first && first.dataset.row !== active) setActive(first.dataset.row);
    }
  });

  useEffect(() => {
    const elsewhere = (event) => { if (!table.current?.contains(event.target)) focused.current = null; };
    document.addEventListener("pointerdown", elsewhere);
    return () => document.removeEventListener("pointerdown", elsewhere);
  }, []);

  function move(key) {
    const index = keys.indexOf(key);
    if (index < 0) return;
    setActive(key);
    if (!rowOf(key)) scrollTo(table.current.querySelector("tbody"), index, height);
    focusSoon(key, FRAMES);
  }

  // A row far away becomes an element some frames after the list is scrolled to it.
  function focusSoon(key, frames) {
    const row = rowOf(key);
    if (row) row.focus();
    else if (frames) requestAnimationFrame(() => focusSoon(key, frames - 1));
  }

  function onKeyDown(event) {
    const row = event.target.closest?.("tr[data-row]");
    if (!row || event.ctrlKey || event.metaKey || event.altKey) return;
    const onRow = event.target === row;
    const index = keys.indexOf(row.dataset.row);
    if (index < 0) return;
    if (event.key in STEPS) {
      const next = Math.min(keys.length - 1, Math.max(0, index + STEPS[event.key]));
      move(keys[next]);
    } else if (event.key === "Enter" && onRow) open(index, true);
    else if (event.key === " " && onRow && select) select(index, event.shiftKey);
    else return;
    event.preventDefault();
  }

  const row = (key, index) => ({
    "data-row": key,
    "aria-rowindex": index + 2,
    tabindex: key === active ? 0 : -1,
    onFocusIn: () => {
      focused.current = key;
      if (active !== key) setActive(key);
    },
    onFocusOut: (event) => { if (event.relatedTarget) focused.current = null; },
    onClick: (event) => { if (!event.target.closest("a, button, input")) open(index, false); },
  });

  return { table, onKeyDown, row, focusRow: move };
}

/**
 * The selected rows: `keys` is a Set. `toggle(index, range)` changes one row, or with `range` all from the last one;
 * `all()` selects every loaded row, or none. Keys that vanish from the list stay selected until they are dropped.
 */
export function useSelection(keys) {
  const [chosen, setChosen] = useState(() => new Set());
  const last = useRef(null);
  const now = useRef(keys);
  now.current = keys;

  function toggle(index, range) {
    const listed = now.current;
    const on = !chosen.has(listed[index]);
    const from = range && last.current !== null ? listed.indexOf(last.current) : index;
    const [low, high] = from < 0 ? [index, index] : [Math.min(from, index), Math.max(from, index)];
    const next = new Set(chosen);
    for (const key of listed.slice(low, high + 1)) {
      if (on) next.add(key);
      else next.delete(key);
    }
    last.current = listed[index];
    setChosen(next);
  }

  const every = keys.length > 0 && keys.every((key) => chosen.has(key));
  return {
    keys: chosen, every, some: chosen.size > 0, toggle,
    all: () => setChosen(every ? new Set() : new Set(keys)),
    clear: () => setChosen(new Set()),
  };
}
