// The tree as an ARIA treegrid. Only the rows in sight are elements, and the active one, so that focus survives
// scrolling; one row can be reached by Tab.
import { html, useEffect, useLayoutEffect, useRef } from "../html.js";
import { useWindow } from "../parts/lists.js";
import { COLUMNS, TreeRow, TypedRow, dropPlace } from "./tree_row.js";

const HEIGHT = 33;
const TOUCH = 44;

/** The element of a topic's row; undefined if it is not in sight. */
export const rowOf = (body, topic) => (
  [...body.querySelectorAll("tr[data-topic]")].find((row) => row.dataset.topic === topic)
);

/** Indexes of the rows to show: those in sight, and others that must stay. */
function indexesOf(first, last, pinned, total) {
  const found = new Set(pinned.filter((index) => index >= 0 && index < total));
  for (let index = first; index < last; index += 1) found.add(index);
  return [...found].sort((left, right) => left - right);
}

/** Keeps the focus on the active row, also when its element is made anew; `wanted` is to get it now. */
function useRowFocus({ body, focused, wanted, active, typed }) {
  useLayoutEffect(() => {
    const want = wanted.current;
    const lost = focused.current && document.activeElement === document.body;
    if ((want === null && !lost) || typed) return;
    const element = rowOf(body.current, want ?? active);
    if (!element) return;
    wanted.current = null;
    element.focus({ preventScroll: true });
    if (want !== null) element.scrollIntoView({ block: "nearest" });
  });
  useEffect(() => {
    const leave = (event) => {
      if (body.current?.contains(event.target)) return;
      focused.current = false;
    };
    document.addEventListener("pointerdown", leave, true);
    return () => document.removeEventListener("pointerdown", leave, true);
  }, []);
}

/**
 * The table. `rows` as of rowsOf; `selected` and `active` are topics, `wanted` is a ref to the topic that is to get
 * the focus. Handlers: `onSelect`, `onToggle(row)`, `onActive`, `onMenu(topic, x, y)`, `onDrop(topic, onto)`, `onKey`.
 */
export function TreeRows(props) {
  const { tree, edits, actions, editing, rows, matches, selected, active, cut, wanted, phone, ...on } = props;
  const body = useRef(null);
  const focused = useRef(false);
  const act = useRef({ dragged: null }).current;
  act.on = {
    ...on,
    onFocused(topic) {
      focused.current = true;
      on.onActive(topic);
    },
  };
  const height = phone ? TOUCH : HEIGHT;
  const [first, last] = useWindow(body, rows.length, height);
  const at = rows.findIndex((row) => row.topic === active);
  const typed = rows.findIndex((row) => row.draft);
  const indexes = indexesOf(first, last, [at, typed], rows.length);
  const inSight = rows.slice(first, last).map((row) => row.topic).filter(Boolean);
  if (selected && !inSight.includes(selected)) inSight.push(selected);
  useEffect(() => tree.show(inSight), [inSight.join("\n"), tree]);
  useRowFocus({ body, focused, wanted, active, typed: typed >= 0 });

  function rowElement({ key, topic, draft, ...place }, index) {
    if (draft) {
      return html`<${TypedRow} key=${key} draft=${draft} topic=${topic} level=${place.level} index=${index} tree=${tree} edits=${edits}
        actions=${actions} />`;
    }
    const state = {
      selected: topic === selected, tabbed: at < 0 ? index === 0 : index === at, cut: cut === topic,
      matched: matches?.has(topic), editable: editing.editable,
    };
    return html`<${TreeRow} key=${key} topic=${topic} item=${tree.items.get(topic)} index=${index} state=${state} act=${act}
      ...${place} />`;
  }

  const shown = [];
  let next = 0;
  for (const index of [...indexes, rows.length]) {
    if (index > next) {
      shown.push(html`<tr class="space" role="presentation" aria-hidden="true" key=${`space ${next}`}
        style=${{ height: `${(index - next) * height}px` }}><td colspan=${COLUMNS}></td></tr>`);
    }
    if (index < rows.length) shown.push(rowElement(rows[index], index));
    next = index + 1;
  }
  const key = (event) => { if (event.target.tagName === "TR") on.onKey(event, at < 0 ? 0 : at); };
  return html`<table role="treegrid" aria-label="Topics" aria-rowcount=${rows.length + 1} class="topics-tree">
    <thead ...${editing.editable ? dropPlace("", act) : {}}><tr aria-rowindex="1"><th scope="col">Topic</th>
      <th scope="col" class="m c-routing">Routing</th><th scope="col" class="number m c-subscribers">Subscribers</th>
      <th scope="col" class="number">Messages /s<small>bars: log scale</small></th>
      <th scope="col" class="number m c-last">Last message</th></tr></thead>
    <tbody ref=${body} onKeyDown=${key}>${shown}</tbody>
  </table>`;
}
