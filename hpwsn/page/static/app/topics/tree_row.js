// One row of the tree: name, routing and figures of a topic, or the field in which a name is typed.
//
// A row is made again only when something of it changed, so that scrolling costs only the rows that come into sight.
import { classes, html, useMemo } from "../html.js";
import { count, figure, oneLine } from "../format.js";
import { Ago, Tag, Text } from "../parts/controls.js";
import { NameInput } from "./name_input.js";
import { lastStep, splitStep } from "./topic_names.js";

export const COLUMNS = 5;
const EDGE = 16;
const INDENT = 20;
const BAR = 11.6;
const LONGEST_BAR = 48;

/** The width of the bar of a rate: its logarithm; 0 for none. */
function barOf(rate) {
  const width = Math.round(BAR * Math.log10(1 + rate));
  return rate > 0 ? Math.max(2, Math.min(LONGEST_BAR, width)) : 0;
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
  const { subscribers_below: subscribers, rate_below: rate } = item;
  return html`<td class="m c-routing">${routing}</td>
    <td class="number m c-subscribers"><${Zero} value=${subscribers} words=${count(subscribers)} /></td>
    <td class="number"><div class="topic-rate"><span><${Zero} value=${rate} words=${figure(rate)} /></span>
      <i style=${{ width: `${barOf(rate)}px` }}></i></div></td>
    <td class="number dim m c-last" title=${item.last ? null : "of this topic itself"}>${item.last || !item.rate_below ? html`<${Ago} at=${item.last?.time} />` : "–"}</td>`;
}

const indentOf = (level) => ({ paddingLeft: `${EDGE + (level - 1) * INDENT}px` });

/** What makes an element a place to drop a topic: below `onto`, or as a root. `act` as of TreeRow. */
export const dropPlace = (onto, act) => ({
  onDragOver: (event) => { if (act.dragged && act.dragged !== onto) event.preventDefault(); },
  onDragEnter: (event) => event.currentTarget.classList.add("drop"),
  onDragLeave: ({ currentTarget, relatedTarget }) => {
    if (!currentTarget.contains(relatedTarget)) currentTarget.classList.remove("drop");
  },
  onDrop: (event) => {
    event.currentTarget.classList.remove("drop");
    if (!act.dragged) return;
    event.preventDefault();
    act.on.onDrop(act.dragged, onto);
  },
});

const dragged = (topic, act) => ({
  onDragStart: ({ dataTransfer }) => {
    act.dragged = topic;
    dataTransfer.setData("text/plain", topic);
    dataTransfer.effectAllowed = "move";
  },
  onDragEnd: () => { act.dragged = null; },
});

/**
 * The row of a topic. `state` is {selected, tabbed, cut, matched (undefined without a search), editable}; `act` is
 * always the same object, with the handlers of now in `on` and the topic that is dragged.
 */
export function TreeRow({ topic, item, expanded, index, level, position, size, state, act }) {
  const { selected, tabbed, cut, matched, editable } = state;
  return useMemo(() => html`<tr role="row" aria-level=${level} aria-rowindex=${index + 2} aria-posinset=${position}
      aria-setsize=${size} aria-expanded=${expanded === undefined ? null : String(expanded)} aria-selected=${String(selected)}
      data-testid="topic" data-topic=${topic} tabindex=${tabbed ? 0 : -1}
      class=${classes("opens", cut && "cut", matched === false && "context")} draggable=${editable && item?.declared ? "true" : null}
      ...${editable ? { ...dragged(topic, act), ...dropPlace(topic, act) } : {}}
      onClick=${() => act.on.onSelect(topic)} onFocus=${() => act.on.onFocused(topic)}
      onContextMenu=${(event) => { event.preventDefault(); act.on.onMenu(topic, event.clientX, event.clientY); }}>
      <td class="clip" style=${indentOf(level)}><div class="topic-line">
        <i class=${classes("twist", expanded === undefined && "leaf", expanded && "open")} aria-hidden="true"
          onClick=${(event) => { event.stopPropagation(); if (expanded !== undefined) act.on.onToggle({ topic, expanded }); }}></i>
        <${Name} topic=${topic} item=${item} matched=${matched} />
        <button type="button" class="topic-dots" tabindex="-1" aria-label=${`Actions on ${oneLine(topic)}`} onClick=${(event) => {
          event.stopPropagation();
          const { left, bottom } = event.currentTarget.getBoundingClientRect();
          act.on.onMenu(topic, left, bottom);
        }}></button></div></td>
      <${Cells} item=${item} /></tr>`,
  [topic, item, expanded, index, level, position, size, selected, tabbed, cut, matched, editable]);
}

/** The row in which a name is typed; of a rename it is still the row of the topic. */
export function TypedRow({ draft, topic, level, index, tree, edits, actions }) {
  return html`<tr role="row" class="typed" aria-level=${level} aria-rowindex=${index + 2} data-testid=${topic ? "topic" : null}
      data-topic=${topic}><td colspan=${COLUMNS} style=${indentOf(level)}><div class="topic-line">
        <i class="twist" aria-hidden="true"></i>
        <${NameInput} draft=${draft} edits=${edits} actions=${actions} tree=${tree} /></div></td></tr>`;
}
