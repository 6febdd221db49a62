// The table of physical sensors: heads that sort, rows in sight only, cards on a phone.
import { html } from "../html.js";
import { oneLine } from "../format.js";
import { Ago, State, Text } from "../parts/controls.js";
import { SortHead, VirtualRows } from "../parts/lists.js";
import { STATES, exactSpan, quantitiesText } from "./sensor_words.js";

const LONGEST = 200;
const short = (text) => (text.length > LONGEST ? `${text.slice(0, LONGEST)}…` : text);

/** The interval of a sensor: the one that was seen, else the declared one. */
export function intervalText(item) {
  const seconds = item.state.interval ?? item.interval;
  return seconds === null || seconds === undefined ? "–" : exactSpan(Number(seconds.toPrecision(2)));
}

function Row({ item, open, nodes, properties }) {
  const { shape, word } = STATES[item.word];
  const quantities = short(quantitiesText(item));
  return html`<tr class="opens" data-testid="sensor" data-id=${item.id} data-state=${item.word} ...${properties}
      aria-selected=${String(open)} aria-current=${open ? "true" : null}>
    <td class="c2"><${State} shape=${shape}>${word}<//></td>
    <td class="c1 clip id" title=${oneLine(item.id)}><${Text}>${item.id}<//></td>
    <td class="clip kind"><${Text}>${item.kind}<//></td>
    <td class="c3 clip quantities optional" title=${oneLine(quantities)}><${Text}>${quantities}<//></td>
    <td class="number c4"><${Ago} at=${item.state.last_seen} /></td>
    <td class="number optional">${intervalText(item)}</td>
    ${nodes && html`<td class="clip optional"><${Text}>${item.at}<//></td>`}
  </tr>`;
}

/** `rows` are the hooks of rows.js, `openKey` is the sensor in the panel, `nodes` adds a column. */
export function SensorTable({ items, height, sort, onSort, rows, openKey, nodes, label = "Sensors" }) {
  const head = { sort, onSort };
  return html`<div class="wrap"><table class="cards sensors-table" role="grid" aria-label=${label}
      aria-rowcount=${items.length + 1} ref=${rows.table} onKeyDown=${rows.onKeyDown}>
    <thead><tr aria-rowindex="1">
      <${SortHead} field="state" up ...${head}>State<//>
      <${SortHead} field="id" up ...${head}>Sensor<//>
      <${SortHead} field="kind" up ...${head}>Kind<//>
      <th scope="col" class="optional">Quantities</th>
      <${SortHead} field="last" class="number" ...${head}>Last report<//>
      <${SortHead} field="interval" class="number optional" ...${head}>Every<//>
      ${nodes && html`<th scope="col" class="optional">Node</th>`}
    </tr></thead>
    <${VirtualRows} items=${items} height=${height} columns=${nodes ? 7 : 6} row=${(item, index) => html`<${Row}
      key=${item.key} item=${item} open=${item.key === openKey} nodes=${nodes} properties=${rows.row(item.key, index)} />`} />
  </table></div>`;
}
