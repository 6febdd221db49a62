// The side panel of a stream service: what it does, how it keeps up, who reads it, its log, and its values live.
import { html, useEffect, useState } from "../html.js";
import { change, href, useParameter } from "../address.js";
import { count, visible } from "../format.js";
import { useMay, wordsOf } from "../state.js";
import { Ago, Button, CurlButton, State, Tabs, Text } from "../parts/controls.js";
import { Loading, Notice } from "../parts/lists.js";
import { SidePanel } from "../subscriptions/side_panel.js";
import { LivePlot } from "./live_plot.js";
import { servicePath, useService } from "./one_service.js";
import { PlanDrawing } from "./plan_drawing.js";
import { Rates, useRates } from "./rates.js";
import { Requests } from "./requests.js";
import { askToRemove } from "./remove_dialog.js";
import { isAgents, stateOf } from "./service_words.js";

const MOST_ATTRIBUTES = 100;

function Attributes({ item }) {
  const { attributes = {}, constraints = {} } = item;
  const names = [...new Set([...Object.keys(attributes), ...Object.keys(constraints)])];
  if (!names.length) return html`<p class="dim">The job tells no attributes.</p>`;
  return html`<table class="attributes" data-testid="constraints">
      <thead><tr><th scope="col">Attribute</th><th scope="col">Type</th><th scope="col">Constraint</th></tr></thead>
      <tbody>${names.slice(0, MOST_ATTRIBUTES).map((name) => html`<tr key=${name}><td><${Text}>${name}<//></td>
        <td class="dim"><${Text}>${attributes[name] ?? ""}<//></td>
        <td>${constraints[name]
          ? html`<${Text} mono>${constraints[name]}<//>` : html`<span class="dim">none</span>`}</td></tr>`)}</tbody></table>
    ${names.length > MOST_ATTRIBUTES && html`<p class="dim">
      ${count(names.length - MOST_ATTRIBUTES)} more attributes are not listed.</p>`}`;
}

function Details({ item }) {
  return html`${item.reason && html`<p class="note bad" role="alert">
    <span>Its job has ended: ${visible(item.reason)}</span></p>`}
    ${item.description && html`<p class="description"><${Text}>${item.description}<//></p>`}
    <h3>Plan</h3><${PlanDrawing} service=${item} />
    <h3>Attributes and constraints</h3><${Attributes} item=${item} />
    <dl class="details">
      <dt>Topic</dt><dd><a href=${href("topics", { topic: item.topic, tab: "watch", scope: item.at && `node:${item.at}` })}><${Text}>${item.topic}<//></a></dd>
      ${Object.entries(item.inputs ?? {}).slice(0, MOST_ATTRIBUTES).map(([name, source]) => html`
        <dt key=${`name ${name}`}>Input <${Text}>${name}<//></dt><dd key=${name}><${Text}>${source}<//></dd>`)}
      ${item.at && html`<dt>Node</dt><dd><${Text}>${item.at}<//></dd>`}
      <dt>Run by</dt><dd>${isAgents(item) ? `the node${item.pid ? `, process ${item.pid}` : ""}` : "its own job"}${item.restarts > 0 && `, ${item.restarts} restarts`}</dd>
      ${item.instance && html`<dt>Instance</dt><dd><${Text} mono>${item.instance}<//></dd>`}
      ${item.ui && html`<dt>Spark’s page</dt><dd><${Text}>${item.ui}<//></dd>`}
    </dl>`;
}

function Log({ item }) {
  if (item.log_note) return html`<p class="note">${visible(item.log_note)}</p>`;
  if (!item.log?.length) {
    return html`<${Notice} kind="empty">The last lines of the log are here, once the job has written some.<//>`;
  }
  return html`<pre class="job-log" tabindex="0" role="region" aria-label="Log of the job" data-testid="log">
    ${visible(item.log.join("\n"))}</pre>`;
}

function Body({ item, rates }) {
  const given = useParameter("tab");
  const tabs = [
    ["plan", "Plan"], ["rates", "Rates"], ["live", "Live plot"], ["requests", `Requests ${count(item.requests?.total ?? 0)}`],
    ...(isAgents(item) ? [["log", "Log"]] : []),
  ];
  const tab = tabs.some(([name]) => name === given) ? given : "plan";
  return html`<${Tabs} label="Parts of the service" tabs=${tabs} value=${tab}
    onChange=${(next) => change({ tab: next === "plan" ? undefined : next }, { replace: true })}>
    ${tab === "plan" && html`<${Details} item=${item} />`}
    ${tab === "rates" && html`<${Rates} item=${item} rates=${rates} />`}
    ${tab === "live" && html`<${LivePlot} key=${`${item.at} ${item.topic}`} item=${item} />`}
    ${tab === "requests" && html`<${Requests} item=${item} />`}
    ${tab === "log" && html`<${Log} item=${item} />`}
  <//>`;
}

/** The service of a URI, `listed` while it is in the list; `changed` is called after an action, `close` closes. */
export function ServicePanel({ uri, listed, take, close, changed }) {
  const { item, gone, error } = useService(uri, listed);
  const rates = useRates(item, gone);
  const may = useMay("stream");
  const [busy, setBusy] = useState(false);
  useEffect(() => setBusy(false), [uri]);
  const { shape, word } = item && !gone ? stateOf(item) : { shape: "expired", word: "Not listed any more" };
  async function remove() {
    setBusy(true);
    if (await askToRemove(item)) {
      changed();
      close();
    }
    setBusy(false);
  }
  const sub = item && html`<p><${State} shape=${shape}>${word}<//>
    ${" "}· since <${Ago} at=${item.since} /> · last heartbeat <${Ago} at=${item.seen} /></p>`;
  return html`<${SidePanel} label="Stream service" back="Services" heading=${html`<${Text}>${uri}<//>`}
    sub=${sub} close=${close} take=${take}>
    ${error && html`<p class="note bad" role="alert"><span>${wordsOf(error)}</span></p>`}
    ${!item && gone && html`<${Notice} kind="empty">No node in scope has this service.<//>`}
    ${!item && !gone && !error && html`<${Loading} />`}
    ${item && html`<div class="tools service-actions">
        <${Button} kind="risk" testid="remove" disabled=${!may || busy || gone} onClick=${remove}>
          ${isAgents(item) ? "Stop and remove…" : "Forget…"}<//>
        <${CurlButton} request=${{ path: servicePath(uri), node: item.at }} /></div>
      <${Body} item=${item} rates=${rates} />`}
  <//>`;
}
