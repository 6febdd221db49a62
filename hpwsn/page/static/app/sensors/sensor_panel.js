// The side panel of a physical sensor: what it measures, its last reading, how it reports, and whether it is wanted.
import { html, useState } from "../html.js";
import { change, href } from "../address.js";
import { count, figure } from "../format.js";
import { useMay, wordsOf } from "../state.js";
import { Ago, Button, Clock, CurlButton, State, Text } from "../parts/controls.js";
import { Loading, Notice } from "../parts/lists.js";
import { SidePanel } from "../subscriptions/side_panel.js";
import { sensorPath, sensorTopic, useOneSensor } from "./one_sensor.js";
import { askToRemoveSensor } from "./remove_dialogs.js";
import { STATES, exactSpan, latitudeText, longitudeText, rangeText, stateOf } from "./sensor_words.js";

const GONE = { shape: "expired", word: "Not registered any more" };
const WANTED = {
  true: "yes: a subscriber or a virtual sensor uses it", false: "no: nobody uses it, so it is told to stop",
  null: "it always sends; it was not registered as on demand",
};

function Quantities({ item, values }) {
  return html`<table class="quantities" data-testid="quantities">
    <thead><tr><th scope="col">Quantity</th><th scope="col" class="number">Last value</th><th scope="col">Unit</th>
      <th scope="col">Accepted</th></tr></thead>
    <tbody>${Object.entries(item.quantities).map(([name, { unit, min, max }]) => {
      const value = values?.[name];
      return html`<tr key=${name} data-quantity=${name}><td><${Text}>${name}<//></td>
        <td class="number">${typeof value === "number" ? html`<b title=${String(value)}>${shown(value)}</b>` : html`<span class="dim">–</span>`}</td>
        <td><${Text}>${unit || "–"}<//></td><td class="dim">${rangeText(min, max)}</td></tr>`;
    })}</tbody></table>`;
}

const shown = (value) => (Math.abs(value) >= 1e6 ? figure(value) : String(Number(value.toPrecision(6))));

function Interval({ item: { interval, state: { interval: seen } } }) {
  const parts = [
    interval !== undefined && `${exactSpan(interval)} as registered`,
    seen !== null && `${exactSpan(Number(seen.toPrecision(3)))} as seen`,
  ].filter(Boolean);
  return html`${parts.join(", ") || "not known: not registered, and not two reports yet"}`;
}

function Tags({ tags }) {
  if (!tags.length) return html`<span class="dim">none</span>`;
  return html`<span class="tags">${tags.map((tag) => html`<button type="button" key=${tag} class="tag" title="Show sensors with this tag"
    onClick=${() => change({ tag, id: undefined, node: undefined })}><${Text}>${tag}<//></button>`)}</span>`;
}

function Details({ item, values }) {
  const { place, state: { last_seen: seen } } = item;
  const scope = item.at && `node:${item.at}`;
  return html`<${Quantities} item=${item} values=${values} />
    <dl class="details" data-testid="sensor-details">
      <dt>Last report</dt><dd>${seen ? html`<${Clock} at=${seen} />, <${Ago} at=${seen} />` : "never"}</dd>
      <dt>Interval</dt><dd><${Interval} item=${item} /></dd>
      <dt>Kind</dt><dd><${Text}>${item.kind}<//></dd>
      <dt>Place</dt><dd>${place ? `${longitudeText(place.longitude)}, ${latitudeText(place.latitude)}` : html`<span class="dim">none: it is not on the map, and in no area</span>`}</dd>
      <dt>Tags</dt><dd><${Tags} tags=${item.tags} /></dd>
      <dt>Owner</dt><dd>${item.owner ? html`<${Text}>${item.owner}<//>` : html`<span class="dim">not registered</span>`}</dd>
      <dt>Gateway</dt><dd>${item.gateway ? html`<${Text}>${item.gateway}<//>` : html`<span class="dim">not registered</span>`}</dd>
      <dt>Wanted</dt><dd data-testid="wanted">${WANTED[String(item.wanted)]}</dd>
      <dt>Topic</dt><dd><a href=${href("topics", { topic: sensorTopic(item), tab: "watch", scope })}><${Text}>${sensorTopic(item)}<//></a></dd>
      ${item.at && html`<dt>Node</dt><dd><${Text}>${item.at}<//></dd>`}
      <dt>Rejected</dt><dd><a href=${href("sensors", { tab: "rejected", sensor: item.id })}>Rejected readings of this sensor</a></dd>
    </dl>`;
}

/** The sensor `id`; `listed` is it as the list has it, undefined if it has not; `ready` once the list is complete. */
export function SensorPanel({ id, listed, ready, take, close, changed }) {
  const { item, values, gone, error } = useOneSensor(listed);
  const may = useMay("manage");
  const missing = gone && ready;
  const { shape, word } = item && !missing ? STATES[stateOf(item)] : GONE;
  const [busy, setBusy] = useState(false);
  async function remove() {
    setBusy(true);
    if (await askToRemoveSensor(item)) {
      changed();
      close();
    }
    setBusy(false);
  }
  return html`<${SidePanel} label="Sensor" back="Sensors" heading=${html`<${Text}>${id}<//>`} close=${close} take=${take}
      sub=${item && html`<p><${State} shape=${shape}>${word}<//></p>`}>
    ${error && html`<p class="note bad" role="alert"><span>${wordsOf(error)}</span></p>`}
    ${!item && missing && html`<${Notice} kind="empty">No node in scope has a sensor of this id.<//>`}
    ${!item && !missing && !error && html`<${Loading} />`}
    ${item && html`<div class="tools" role="group" aria-label="Actions">
        <${Button} kind="risk" testid="remove-sensor" disabled=${!may || busy || missing} onClick=${remove}>Remove…<//>
        <${CurlButton} request=${{ path: sensorPath(id), node: item.at }} /></div>
      <${Details} item=${item} values=${values} />
      ${item.state.silent && !missing && html`<p class="note" role="status"><span>${item.state.last_seen
        ? "No report for more than three intervals." : "No report since it was registered, more than three intervals ago."}
        ${" "}Check its power and its gateway${item.gateway ? html` (<${Text}>${item.gateway}<//>)` : ""}, and whether its readings are rejected.</span></p>`}`}
  <//>`;
}

/** What is said where more sensors are registered than the page reads. */
export function TooMany({ shown: number, total }) {
  return total > number && html`<p class="note"><span>The first ${count(number)} of ${count(total)} sensors are shown.
    Choose a kind, a tag or a smaller area of the map to see others.</span></p>`;
}
