// Rejected readings: how many for each reason since the start, and those that are kept, the newest first.
import { classes, html, useEffect, useMemo, useRef, useState } from "../html.js";
import { change, href, useAddress } from "../address.js";
import { count, counted, oneLine, visible } from "../format.js";
import { Icon } from "../icons.js";
import { Ago, Button, Chip, Clock, CurlButton, Text, copyText } from "../parts/controls.js";
import { ListState, Loading, Notice, VirtualRows } from "../parts/lists.js";
import { announce } from "../parts/toasts.js";
import { usePhone } from "../parts/media.js";
import { indented } from "../subscriptions/json_text.js";
import { NoNode } from "../subscriptions/listed_nodes.js";
import { useKept, useRowHeight, useRows } from "../subscriptions/rows.js";
import { SidePanel } from "../subscriptions/side_panel.js";
import { useAllItems } from "./all_items.js";
import { keyed, newestFirst, readRejected } from "./rejected_pages.js";

const PATH = "readings/rejected";
const FIRST = 200;
const MORE = 800;
const SHOWN = 64 * 1024;

/** By reason: what was wrong, and what to do. */
const REASONS = {
  malformed: "The reading cannot be read: it is no JSON object, or a field has the wrong type.",
  "unknown-sensor": "No sensor of this id is registered. Register it, or set sensors.auto_register = true.",
  "unknown-quantity": "The sensor was registered without this quantity. Register it again with all its quantities.",
  unit: "The unit does not convert into that of the sensor.",
  range: "A value is outside of the range of its quantity. If it is right, register the sensor with a wider range.",
  time: "The time is older than sensors.max_age or further ahead than sensors.max_ahead. Check the gateway’s clock.",
  duplicate: "A reading of this sensor with this time was accepted before.",
};

function Reasons({ figures, reason }) {
  const counts = figures?.rejected ?? {};
  const names = [...new Set([...Object.keys(REASONS), ...Object.keys(counts)])]
    .filter((name) => counts[name] || name === reason)
    .sort((left, right) => (counts[right] ?? 0) - (counts[left] ?? 0) || (left < right ? -1 : 1));
  const choose = (next) => change({ reason: next, id: undefined });
  return names.map((name) => html`<${Chip} key=${name} pressed=${reason === name} number=${figures ? count(counts[name] ?? 0) : undefined}
    data-testid=${`reason-${name}`} data-count=${counts[name] ?? 0} onClick=${() => choose(name)}>${oneLine(name)}<//>`);
}

function Filters({ figures, reason, sensor }) {
  return html`<div class="tools scroll" role="group" aria-label="Filters" data-testid="reasons">
    <${Chip} pressed=${!reason} number=${figures ? count(figures.rejections) : undefined} onClick=${() => change({ reason: undefined, id: undefined })}>All reasons<//>
    <${Reasons} figures=${figures} reason=${reason} />
    ${sensor && html`<button type="button" class="chip" aria-pressed="true" data-testid="sensor-filter" aria-label="Show the readings of all sensors"
      onClick=${() => change({ sensor: undefined, id: undefined })}>Sensor: <${Text}>${sensor.slice(0, 40)}<//> <${Icon} name="close" /></button>`}
  </div>`;
}

function Row({ item, open, nodes, properties }) {
  return html`<tr class="opens" data-testid="rejected" data-reason=${item.reason} ...${properties} aria-selected=${String(open)}
      aria-current=${open ? "true" : null}>
    <td class="c2"><${Clock} at=${item.rejected} digits=${1} /></td>
    <td class="c3"><span class="tag"><${Text}>${item.reason}<//></span></td>
    <td class="c1 clip id">${item.sensor === null ? html`<span class="dim">none named</span>` : html`<${Text}>${item.sensor}<//>`}</td>
    <td class="clip detail" title=${oneLine(item.detail)}><${Text}>${item.detail}<//></td>
    <td class="optional c4"><${Text}>${item.source}<//></td>
    ${nodes && html`<td class="clip optional"><${Text}>${item.at}<//></td>`}
  </tr>`;
}

function Table({ items, height, rows, openKey, nodes, onEnd, stale }) {
  return html`<div class=${classes("wrap", stale && "stale")}><table class="cards rejected-table" role="grid" aria-label="Rejected readings"
      aria-rowcount=${items.length + 1} ref=${rows.table} onKeyDown=${rows.onKeyDown}>
    <thead><tr aria-rowindex="1"><th scope="col">Rejected</th><th scope="col">Reason</th><th scope="col">Sensor</th>
      <th scope="col">Detail</th><th scope="col" class="optional">Came by</th>${nodes && html`<th scope="col" class="optional">Node</th>`}</tr></thead>
    <${VirtualRows} items=${items} height=${height} columns=${nodes ? 6 : 5} onEnd=${onEnd} row=${(item, index) => html`<${Row}
      key=${item.key} item=${item} open=${item.key === openKey} nodes=${nodes} properties=${rows.row(item.key, index)} />`} />
  </table></div>`;
}

/** A reading as it came: text as it is, JSON with a line for each field. */
function payloadOf({ reading, payload }) {
  return typeof reading === "string" ? reading : indented(payload);
}

function ReadingPanel({ item, complete, take, close }) {
  if (!item) {
    return html`<${SidePanel} label="Rejected reading" back="Rejected readings" heading="Rejected reading" close=${close} take=${take}>
      ${complete ? html`<${Notice} kind="empty">This reading is not kept any more, or does not fit the filters.<//>` : html`<${Loading} />`}<//>`;
  }
  const text = payloadOf(item);
  const { sensor, reason, detail, source, rejected, at } = item;
  const scope = at && `node:${at}`;
  return html`<${SidePanel} label="Rejected reading" back="Rejected readings" heading=${html`<${Text}>${reason}<//>`} close=${close} take=${take}
      sub=${html`<p><${Text}>${detail}<//></p>`}>
    <div class="tools" role="group" aria-label="Actions"><${CurlButton} request=${{ path: PATH, node: at, query: { reason, sensor } }} /></div>
    ${Object.hasOwn(REASONS, reason) && html`<p class="note"><span>${REASONS[reason]}</span></p>`}
    <dl class="details">
      <dt>Sensor</dt><dd>${sensor === null ? html`<span class="dim">the reading names none</span>` : html`<a href=${href("sensors", { id: sensor, scope })}><${Text}>${sensor}<//></a>`}</dd>
      <dt>Rejected</dt><dd><${Clock} at=${rejected} digits=${3} />, <${Ago} at=${rejected} /></dd>
      <dt>Came by</dt><dd><${Text}>${source}<//></dd>
      ${at && html`<dt>Node</dt><dd><${Text}>${at}<//></dd>`}
    </dl>
    <div class="tools"><h3>Reading as it came</h3>
      <${Button} kind="bare" icon="copy" label="Copy the reading" onClick=${() => copyText(text, "Copied the reading")} /></div>
    <pre class="payload" data-testid="payload" tabindex="0" role="region" aria-label="Reading as it came"><bdi>${visible(text.slice(0, SHOWN))}</bdi></pre>
  <//>`;
}

/** `names` are the nodes to ask; `figures` those of sensor_figures.js; `ready()` once it shows data. */
export function RejectedReadings({ names, absent, several, figures, ready }) {
  const { reason, sensor, id } = useAddress(({ query }) => query);
  const [most, setMost] = useState(FIRST);
  const query = useMemo(() => ({ reason, sensor }), [reason, sensor]);
  const list = useKept(useAllItems({ path: PATH, names, query, most, read: readRejected }), names !== undefined);
  const items = useMemo(() => keyed([...list.items].sort(newestFirst)), [list.items]);
  const height = useRowHeight();
  const phone = usePhone();
  const [byKey, setByKey] = useState(false);
  const keys = useMemo(() => items.map((item) => item.key), [items]);
  const kept = useRef(null);
  const listed = id ? items.find((item) => item.key === id) : undefined;
  // A reading that newer ones have replaced stays open, so that it can be read to the end.
  if (listed) kept.current = listed;
  const openItem = listed ?? (kept.current?.key === id ? kept.current : undefined);
  const rows = useRows({
    keys, height,
    open(index, withKey) {
      setByKey(withKey);
      change({ id: items[index].key });
    },
  });
  function close() {
    change({ id: undefined });
    if (id) requestAnimationFrame(() => rows.focusRow(id));
  }
  const loaded = names !== undefined && !list.loading;
  useEffect(() => {
    if (!loaded) return;
    ready();
    announce(`${counted(items.length, "rejected reading")} listed`);
  }, [loaded, reason, sensor]);
  const more = () => { if (list.complete && items.length >= most) setMost(most + MORE); };
  const empty = figures?.rejections
    ? `No rejected reading is kept: ${counted(figures.rejections, "reading")} were rejected since the start, but sensors.rejected_kept is 0 or the file was removed.`
    : "No rejected readings. A reading that a check refuses is counted here by its reason, and kept for inspection.";
  return html`<${Filters} figures=${figures} reason=${reason} sensor=${sensor} />
    <div class=${id ? "split open" : "split"}>
      <section class="panel" aria-label="List of rejected readings">
        ${names?.length === 0 ? html`<${NoNode} nodes=${absent} />` : loaded ? html`<${ListState} list=${{ ...list, items }}
          filtered=${Boolean(reason || sensor)} onClear=${() => change({ reason: undefined, sensor: undefined })} empty=${empty} />` : html`<${Loading} />`}
        ${items.length > 0 && html`<${Table} items=${items} height=${height} rows=${rows} openKey=${openItem?.key} nodes=${several} onEnd=${more} stale=${list.stale} />`}
      </section>
      ${id && loaded && html`<${ReadingPanel} key=${id} item=${openItem} complete=${list.complete} take=${(byKey || phone) && id} close=${close} />`}
    </div>`;
}
