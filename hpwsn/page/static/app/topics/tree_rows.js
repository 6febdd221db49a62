// The tree as an ARIA treegrid. Only the rows in sight are elements, and the active one, so that focus survives
// scrolling; one row can be reached by Tab.
import { classes, html, useEffect, useLayoutEffect, useRef } from "../html.js";
import { count, figure, oneLine } from "../format.js";
import { Ago, Button, Tag, Text } from "../parts/controls.js";
import { useWindow } from "../parts/lists.js";
import { NameInput } from "./name_input.js";
import { lastStep, splitStep } from "./topic_names.js";

const COLUMNS = 5;
const HEIGHT = 33;
const TOUCH = 44;
const INDENT = 20;
const BAR = 11.6;
const LONGEST_BAR = 48;

/** The width of the bar of a rate: its logarithm; 0 for none. */
function barOf(rate) {
  const width = Math.round(BAR * Math.log10(1 + rate));
  return rate > 0 ? Math.max(2, Math.min(LONGEST_BAR, width)) : 0;
}

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

const Zero = ({ value, words }) => (value > 0 ? words : html`<span class="dim">${words}</span>`);

function Name({ topic, item, matched }) {
  const { namespace, name } = splitStep(lastStep(topic));
  return html`<span class="topic-name">${matched ? html`<mark><${Text}>${name}<//></mark>` : html`<${Text}>${name}<//>`}</span>
    ${item?.visibility === "internal" && html`<${Tag}>internal<//>`}
    ${item && !item.declared && html`<span class="topic-undeclared" title="Not declared: it exists because it is used">undeclared</span>`}
    <span class="topic-what">${namespace && html`<${Text}>${`{${namespace}}`}<//> `}<${Text}>${item?.description}<//></span>`;
}

function Cells({ item }) {
  if (!item || item.unread) {
    return html`<td class="m c-routing"></td><td class="m c-subscribers"></td><td></td>
      <td class="m c-last"></td>`;
  }
  const routing = item.routing ? html`<${Tag}>${item.routing}<//>` : html`<span class="dim">default</span>`;
  return html`<td class="m c-routing">${routing}</td>
    <td class="number m c-subscribers"><${Zero} value=${item.subscribers_below} words=${count(item.subscribers_below)} /></td>
    <td class="number"><div class="topic-rate"><span><${Zero} value=${item.rate_below} words=${figure(item.rate_below)} /></span>
      <i style=${{ width: `${barOf(item.rate_below)}px` }}></i></div></td>
    <td class="number dim m c-last"><${Ago} at=${item.last?.time} /></td>`;
}

/**
 * The table. `rows` as of rowsOf; `selected` and `active` are topics, `wanted` is a ref to the topic that is to get
 * the focus. Handlers: `onSelect`, `onToggle(row)`, `onActive`, `onMenu(topic, x, y)`, `onDrop(topic, onto)`, `onKey`.
 */
export function TreeRows(props) {
  const { tree, edits, actions, editing, rows, matches, selected, active, cut, wanted, phone, ...on } = props;
  const body = useRef(null);
  const focused = useRef(false);
  const dragged = useRef(null);
  const height = phone ? TOUCH : HEIGHT;
  const [first, last] = useWindow(body, rows.length, height);
  const at = rows.findIndex((row) => row.topic === active);
  const typed = rows.findIndex((row) => row.draft);
  const indexes = indexesOf(first, last, [at, typed], rows.length);
  const inSight = rows.slice(first, last).map((row) => row.topic).filter(Boolean);
  if (selected && !inSight.includes(selected)) inSight.push(selected);
  const key = inSight.join("\n");

  useEffect(() => tree.show(inSight), [key, tree]);

  // Focus follows the active row, also when its element is made anew.
  useLayoutEffect(() => {
    const want = wanted.current;
    const lost = focused.current && document.activeElement === document.body;
    if (want === null && !lost) return;
    const element = rowOf(body.current, want ?? active);
    if (!element || typed >= 0) return;
    wanted.current = null;
    element.focus({ preventScroll: true });
    if (want !== null) element.scrollIntoView({ block: "nearest" });
  });

  useEffect(() => {
    const leave = (event) => { if (!body.current?.contains(event.target)) focused.current = false; };
    document.addEventListener("pointerdown", leave, true);
    return () => document.removeEventListener("pointerdown", leave, true);
  }, []);

  const drop = (onto) => ({
    onDragOver: (event) => { if (dragged.current && dragged.current !== onto) event.preventDefault(); },
    onDragEnter: (event) => event.currentTarget.classList.add("drop"),
    onDragLeave: ({ currentTarget, relatedTarget }) => {
      if (!currentTarget.contains(relatedTarget)) currentTarget.classList.remove("drop");
    },
    onDrop: (event) => {
      event.currentTarget.classList.remove("drop");
      if (!dragged.current) return;
      event.preventDefault();
      on.onDrop(dragged.current, onto);
    },
  });

  function rowElement(each, index) {
    const { topic, draft } = each;
    const item = tree.items.get(topic);
    const indent = { paddingLeft: `${16 + (each.level - 1) * INDENT}px` };
    const shared = {
      role: "row", key: each.key, "aria-level": each.level, "aria-rowindex": index + 2,
      "aria-posinset": draft ? null : each.position, "aria-setsize": draft ? null : each.size,
    };
    if (draft) {
      return html`<tr ...${shared} class="typed" data-testid=${topic ? "topic" : null} data-topic=${topic}>
        <td colspan=${COLUMNS} style=${indent}><div class="topic-line"><i class="twist" aria-hidden="true"></i>
          <${NameInput} draft=${draft} edits=${edits} actions=${actions} tree=${tree} /></div></td></tr>`;
    }
    const movable = editing.editable && item?.declared;
    const tabbed = at < 0 ? index === 0 : index === at;
    return html`<tr ...${shared} data-testid="topic" data-topic=${topic} tabindex=${tabbed ? 0 : -1}
      class=${classes("opens", cut === topic && "cut", matches && !matches.has(topic) && "context")}
      aria-expanded=${each.expanded === undefined ? null : String(each.expanded)} aria-selected=${String(topic === selected)}
      draggable=${movable ? "true" : null}
      onDragStart=${({ dataTransfer }) => {
        dragged.current = topic;
        dataTransfer.setData("text/plain", topic);
        dataTransfer.effectAllowed = "move";
      }}
      onDragEnd=${() => { dragged.current = null; }} ...${editing.editable ? drop(topic) : {}}
      onClick=${() => on.onSelect(topic)} onFocus=${() => { focused.current = true; on.onActive(topic); }}
      onContextMenu=${(event) => { event.preventDefault(); on.onMenu(topic, event.clientX, event.clientY); }}>
      <td class="clip" style=${indent}><div class="topic-line">
        <i class=${classes("twist", each.expanded === undefined && "leaf", each.expanded && "open")} aria-hidden="true"
          onClick=${(event) => { event.stopPropagation(); if (each.expanded !== undefined) on.onToggle(each); }}></i>
        <${Name} topic=${topic} item=${item} matched=${matches?.has(topic)} />
        <${Button} kind="bare topic-dots" icon="dots" label=${`Actions on ${oneLine(topic)}`} tabindex="-1" onClick=${(event) => {
          event.stopPropagation();
          const place = event.currentTarget.getBoundingClientRect();
          on.onMenu(topic, place.left, place.bottom);
        }} /></div></td>
      <${Cells} item=${item} /></tr>`;
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
  return html`<table role="treegrid" aria-label="Topics" aria-rowcount=${rows.length + 1} class="topics-tree">
    <thead ...${editing.editable ? drop("") : {}}><tr aria-rowindex="1"><th scope="col">Topic</th><th scope="col" class="m c-routing">Routing</th>
      <th scope="col" class="number m c-subscribers">Subscribers</th>
      <th scope="col" class="number">Messages /s<small>bars: log scale</small></th>
      <th scope="col" class="number m c-last">Last message</th></tr></thead>
    <tbody ref=${body} onKeyDown=${(event) => { if (event.target.tagName === "TR") on.onKey(event, at < 0 ? 0 : at); }}>${shown}</tbody>
  </table>`;
}
