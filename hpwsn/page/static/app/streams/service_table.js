// The table of stream services, and the number of requests of each, which only the answer for one service has.
import { html, useEffect, useRef, useState } from "../html.js";
import { get } from "../api.js";
import { count, figure, oneLine } from "../format.js";
import { state } from "../state.js";
import { State, Text } from "../parts/controls.js";
import { SortHead, VirtualRows } from "../parts/lists.js";
import { servicePath } from "./one_service.js";
import { LAG_ALERT, batchOf, ratesOf, stateOf } from "./service_words.js";

const EVERY = 10_000;
/** Services of which the requests are asked: one question each. */
const MOST = 50;

/** The number of requests by key of the first services; one question after the other, again and again. */
export function useRequestTotals(items) {
  const [totals, setTotals] = useState({});
  const now = useRef(items);
  now.current = items;
  const keys = items.slice(0, MOST).map((item) => item.key).join("\n");
  useEffect(() => {
    let stopped = false;
    let timer = 0;
    async function look() {
      for (const item of document.hidden || state.get().paused ? [] : now.current.slice(0, MOST)) {
        const found = await get(servicePath(item.uri), { node: item.at }).catch(() => null);
        if (stopped) return;
        if (found) setTotals((before) => ({ ...before, [item.key]: found.requests.total }));
      }
      timer = setTimeout(look, EVERY);
    }
    look();
    return () => {
      stopped = true;
      clearTimeout(timer);
    };
  }, [keys]);
  return totals;
}

function Row({ item, open, nodes, properties }) {
  const { shape, word } = stateOf(item);
  const { rowsIn, rowsOut } = ratesOf(item);
  const behind = item.lag >= LAG_ALERT;
  return html`<tr class="opens" data-testid="stream" data-uri=${item.uri} data-state=${item.state} ...${properties}
      aria-selected=${String(open)}>
    <td class="c2"><${State} shape=${shape}>${word}<//></td>
    <td class="c1 clip uri" title=${oneLine(item.description || item.uri)}><${Text}>${item.uri}<//></td>
    <td class="c3 clip topic optional"><${Text}>${item.topic}<//></td>
    <td class="number">${figure(rowsIn)}</td>
    <td class="number">${figure(rowsOut)}</td>
    <td class=${`number c4 ${behind ? "warn" : ""}`} data-label="lag">${count(item.lag)}</td>
    <td class="number optional">${batchOf(item)}</td>
    <td class="number optional">${count(item.total)}</td>
    ${nodes && html`<td class="optional"><${Text}>${item.at}<//></td>`}
  </tr>`;
}

/** `rows` are the hooks of rows with keys, `openKey` is the service in the panel, `nodes` adds a column. */
export function ServiceTable({ items, height, sort, onSort, rows, openKey, nodes }) {
  const head = { sort, onSort };
  return html`<div class="wrap"><table class="cards services" role="grid" aria-label="Stream services"
    aria-rowcount=${items.length + 1}
      ref=${rows.table} onKeyDown=${rows.onKeyDown}>
    <thead><tr aria-rowindex="1">
      <${SortHead} field="state" up ...${head}>State<//>
      <${SortHead} field="uri" up ...${head}>Service<//>
      <${SortHead} field="topic" up class="optional" ...${head}>Topic<//>
      <${SortHead} field="in" class="number" ...${head}>Rows/s in<//>
      <${SortHead} field="out" class="number" ...${head}>Rows/s out<//>
      <${SortHead} field="lag" class="number" ...${head}>Lag<//>
      <${SortHead} field="batch" class="number optional" ...${head}>Last batch<//>
      <${SortHead} field="requests" class="number optional" ...${head}>Requests<//>
      ${nodes && html`<th scope="col" class="optional">Node</th>`}
    </tr></thead>
    <${VirtualRows} items=${items} height=${height} columns=${nodes ? 9 : 8} row=${(item, index) => html`<${Row}
      key=${item.key} item=${item}
      open=${item.key === openKey} nodes=${nodes} properties=${rows.row(item.key, index)} />`} />
  </table></div>`;
}
