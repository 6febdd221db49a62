// The table of groups of dead letters: those of one subscription with the same reason.
import { classes, html } from "../html.js";
import { count, milliseconds, oneLine } from "../format.js";
import { Ago, Text } from "../parts/controls.js";
import { SortHead, VirtualRows } from "../parts/lists.js";

const COLUMNS = 6;

/** What names a group in an address; ids of subscriptions have no bar. */
export const groupKey = ({ subscription, reason }) => `${subscription}|${reason}`;

/** A comparison of the groups of several nodes in the order of the API. */
export function groupOrder(sort) {
  const field = sort.replace(/^-/, "");
  const sign = sort.startsWith("-") ? -1 : 1;
  const valueOf = (group) => (field === "count" ? group.count : milliseconds(group[field]));
  return (left, right) => sign * (valueOf(left) - valueOf(right) || (groupKey(left) < groupKey(right) ? -1 : 1));
}

/** `rows` are the hooks of rows.js, `openKey` names the open group. */
export function GroupTable({ items, total, height, rows, sort, onSort, openKey, onEnd, stale }) {
  const head = { sort, onSort };
  return html`<div class=${classes("wrap", stale && "stale")}>
    <table class="cards groups" role="grid" aria-label="Groups of dead letters" aria-rowcount=${total + 1} ref=${rows.table} onKeyDown=${rows.onKeyDown}>
      <thead><tr aria-rowindex="1"><th scope="col">Reason</th><th scope="col">Consumer</th>
        <${SortHead} field="count" class="number" ...${head}>Dead letters<//>
        <${SortHead} field="first" ...${head}>First<//><${SortHead} field="last" ...${head}>Last<//>
        <th scope="col">Node</th></tr></thead>
      <${VirtualRows} items=${items} height=${height} columns=${COLUMNS} onEnd=${onEnd} row=${(group, index) => html`
        <tr key=${group.key} class="opens" data-testid="deadletter-group" data-id=${groupKey(group)} ...${rows.row(group.key, index)}
          aria-selected=${String(groupKey(group) === openKey)} aria-current=${groupKey(group) === openKey ? "true" : null}>
          <td class="c1 clip reason" title=${oneLine(group.reason)}><${Text}>${group.reason}<//></td>
          <td class="c3 clip consumer" title=${group.subscription}><${Text}>${group.consumer}<//></td>
          <td class="number c2">${count(group.count)}</td>
          <td><${Ago} at=${group.first} /></td>
          <td class="c4"><${Ago} at=${group.last} /></td>
          <td><${Text}>${group.at ?? ""}<//></td></tr>`} />
    </table>
  </div>`;
}
