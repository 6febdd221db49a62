// The table of subscriptions: heads that sort, rows with a box to select them, cards on a phone.
import { classes, html, useLayoutEffect, useRef } from "../html.js";
import { count, dateTime, figure, milliseconds, oneLine } from "../format.js";
import { Ago, State, Text } from "../parts/controls.js";
import { SortHead, VirtualRows } from "../parts/lists.js";
import { STATES, TopicsAndFilter, detailOf, shortConsumer, shortReason } from "./words.js";

const COLUMNS = 10;

/** A box that selects; `part` shows that some of several are. */
export function Box({ label, checked, part, onSelect }) {
  const ref = useRef(null);
  useLayoutEffect(() => { ref.current.indeterminate = Boolean(part && !checked); });
  return html`<input type="checkbox" ref=${ref} tabindex="-1" aria-label=${label} checked=${checked}
    onClick=${(event) => onSelect(event.shiftKey)} />`;
}

function Row({ item, index, open, selection, properties }) {
  const { shape, word } = STATES[item.state];
  const chosen = selection.keys.has(item.key);
  const error = item.last_error ? shortReason(item.last_error) : "";
  return html`<tr class="opens" data-testid="subscription" data-id=${item.id} data-state=${item.state} ...${properties}
      aria-selected=${String(chosen || open)} aria-current=${open ? "true" : null}>
    <td class="select"><${Box} label=${`Select ${shortConsumer(item)}`} checked=${chosen} onSelect=${(range) => selection.toggle(index, range)} /></td>
    <td class="c2" title=${oneLine(item.reason)}><${State} shape=${shape} detail=${detailOf(item)}>${word}<//></td>
    <td class="c1 clip consumer" title=${oneLine(item.consumer)}><${Text}>${shortConsumer(item)}<//></td>
    <td class="c3 clip topics"><${TopicsAndFilter} item=${item} /></td>
    <td class="number c4" data-label="waiting">${count(item.waiting)}</td>
    <td class="number">${item.oldest ? html`<${Ago} at=${item.oldest} bare />` : "–"}</td>
    <td class="number">${figure(item.rate)}</td>
    <td class="extra"><${Text}>${item.node}<//></td>
    <td class="extra clip error" title=${oneLine(item.last_error)}><${Text}>${error}<//></td>
    <td class="extra" title=${item.terminates ? dateTime(item.terminates) : null}>${item.terminates ? dateTime(item.terminates).replace(/ UTC.*| GMT.*/, "") : "never"}</td>
  </tr>`;
}

/** `rows` are the hooks of rows.js, `openId` the id of the item in the panel. */
export function SubscriptionTable({ items, total, height, sort, onSort, rows, selection, openId, onEnd, stale }) {
  const head = { sort, onSort };
  return html`<div class=${classes("wrap", stale && "stale")}>
    <table class="cards subscriptions" role="grid" aria-label="Subscriptions" aria-multiselectable="true" aria-rowcount=${total + 1}
        ref=${rows.table} onKeyDown=${rows.onKeyDown}>
      <thead><tr aria-rowindex="1">
        <th scope="col" class="select"><${Box} label="Select all listed subscriptions" checked=${selection.every} part=${selection.some} onSelect=${selection.all} /></th>
        <${SortHead} field="state" ...${head}>State<//>
        <${SortHead} field="consumer" up ...${head}>Consumer<//>
        <th scope="col">Topics and filter</th>
        <${SortHead} field="waiting" class="number" ...${head}>Waiting<//>
        <${SortHead} field="oldest" up class="number" ...${head}>Oldest<//>
        <${SortHead} field="rate" class="number" ...${head}>Sent /s<//>
        <th scope="col" class="extra">Node</th>
        <th scope="col" class="extra">Last error</th>
        <${SortHead} field="terminates" up class="extra" ...${head}>Ends<//>
      </tr></thead>
      <${VirtualRows} items=${items} height=${height} columns=${COLUMNS} onEnd=${onEnd} row=${(item, index) => html`
        <${Row} key=${item.key} item=${item} index=${index} open=${item.id === openId} selection=${selection} properties=${rows.row(item.key, index)} />`} />
    </table>
  </div>`;
}

const TIMES = new Set(["oldest", "terminates"]);

/** A comparison of items of several nodes in the order of the API: without an oldest or an end, an item is last. */
export function bySort(sort) {
  const descending = sort.startsWith("-");
  const field = sort.replace(/^-/, "");
  const valueOf = (item) => (TIMES.has(field) ? milliseconds(item[field]) ?? Infinity : item[field]);
  return (left, right) => {
    const [a, b] = [valueOf(left), valueOf(right)];
    const found = a === b ? (left.id < right.id ? -1 : 1) : (a < b ? -1 : 1);
    return descending ? -found : found;
  };
}
