// The side panel of a virtual sensor: its results live, its members, and its definition.
import { html, useEffect, useRef, useState } from "../html.js";
import { change, href, useParameter } from "../address.js";
import { count } from "../format.js";
import { useMay } from "../state.js";
import { Button, CurlButton, State, Tabs, Text } from "../parts/controls.js";
import { Loading, Notice } from "../parts/lists.js";
import { SidePanel } from "../subscriptions/side_panel.js";
import { askToRemoveVirtual, virtualPath } from "./remove_dialogs.js";
import { ResultPlot } from "./result_plot.js";
import { exactSpan, rangeText } from "./sensor_words.js";
import { definitionWords, ruleWords, stateOf } from "./template_words.js";
import { VirtualMembers } from "./virtual_members.js";

/** The plot; a sensor with a job of its own is started only if the user says so. */
function Plot({ item }) {
  const [asked, ask] = useState(false);
  if (item.service && item.state !== "running" && !asked) {
    return html`<${Notice} kind="empty"><p>Nobody uses this sensor now. A plot starts the job of its stream service.</p>
      <${Button} testid="start-plot" onClick=${() => ask(true)}>Start the job and plot<//><//>`;
  }
  return html`<${ResultPlot} item=${item} />`;
}

function Definition({ item }) {
  const row = (name, value) => html`<dt key=${`name ${name}`}>${name}</dt><dd key=${name}>${value}</dd>`;
  const bands = item.bands ?? [];
  return html`<dl class="details" data-testid="definition">
      ${row("Result", html`<${Text}>${definitionWords(item)}<//>`)}
      ${row("Every", exactSpan(item.every))}
      ${!item.service && ruleWords(item).map(([name, words]) => row(name, words))}
      ${row("Text", html`<${Text} mono>${item.text}<//>`)}
    </dl>
    ${bands.length > 0 && html`<table class="attributes" aria-label="Bands"><thead><tr><th scope="col">State</th><th scope="col">Value</th></tr></thead>
      <tbody>${bands.map((band, index) => html`<tr key=${index}><td><${Text}>${band.name}<//></td><td>${rangeText(band.low, band.high)}</td></tr>`)}</tbody></table>`}
    ${item.service && html`<pre class="service-text" tabindex="0" role="region" aria-label="Definition of the stream service"><${Text}>${item.service}<//></pre>`}
    <p class="dim">To change it, define it again: <code>hpwsn sensors virtual define ${item.name} …</code></p>`;
}

function Figures({ item }) {
  const scope = item.at && `node:${item.at}`;
  const idle = item.state !== "running";
  return html`<dl class="details" data-testid="virtual-figures">
    <dt>Late</dt><dd>${idle ? html`<span class="dim">counted while it runs</span>` : html`<b data-testid="late">${count(item.late)}</b> readings came after their window was closed`}</dd>
    <dt>Refused</dt><dd>${idle ? html`<span class="dim">counted while it runs</span>` : html`<b data-testid="refused">${count(item.refused)}</b> readings found no room in their window`}</dd>
    <dt>Topic</dt><dd><a href=${href("topics", { topic: item.topic, tab: "watch", scope })}><${Text}>${item.topic}<//></a>,${" "}
      <a href=${href("subscriptions", { topic: item.topic, scope })}>its subscriptions</a></dd>
    ${item.at && html`<dt>Node</dt><dd><${Text}>${item.at}<//></dd>`}
  </dl>`;
}

function Body({ item }) {
  const given = useParameter("as");
  const number = item.members === null || item.service ? "" : ` ${count(item.members)}`;
  const tabs = [["plot", "Live plot"], ["members", `Members${number}`], ["definition", "Definition"]];
  const tab = tabs.some(([name]) => name === given) ? given : "plot";
  return html`<${Tabs} label="Parts of the virtual sensor" tabs=${tabs} value=${tab}
    onChange=${(next) => change({ as: next === "plot" ? undefined : next }, { replace: true })}>
    ${tab === "plot" && html`<${Plot} key=${`${item.at} ${item.topic}`} item=${item} /><${Figures} item=${item} />`}
    ${tab === "members" && html`<${VirtualMembers} item=${item} />`}
    ${tab === "definition" && html`<${Definition} item=${item} />`}
  <//>`;
}

/** The virtual sensor `name`; `listed` while it is in the list; `ready` once the list is complete. */
export function VirtualPanel({ name, listed, ready, take, close, changed }) {
  const last = useRef(null);
  if (listed) last.current = listed;
  const item = listed ?? last.current;
  const gone = ready && !listed;
  const may = useMay("manage");
  const [busy, setBusy] = useState(false);
  useEffect(() => setBusy(false), [name]);
  const { shape, word } = item && !gone ? stateOf(item) : { shape: "expired", word: "Not defined any more" };
  async function remove() {
    setBusy(true);
    if (await askToRemoveVirtual(item)) {
      changed();
      close();
    }
    setBusy(false);
  }
  const sub = item && html`<p><${State} shape=${shape}>${word}<//> · <${Text}>${definitionWords(item)}<//></p>`;
  return html`<${SidePanel} label="Virtual sensor" back="Virtual sensors" heading=${html`<${Text}>${name}<//>`}
      sub=${sub} close=${close} take=${take}>
    ${!item && gone && html`<${Notice} kind="empty">No node in scope has a virtual sensor of this name.<//>`}
    ${!item && !gone && html`<${Loading} />`}
    ${item && html`<div class="tools" role="group" aria-label="Actions">
        <${Button} kind="risk" testid="remove-virtual" disabled=${!may || busy || gone} onClick=${remove}>Remove…<//>
        <${CurlButton} request=${{ path: virtualPath(name), node: item.at }} /></div>
      ${gone ? html`<p class="note" role="status">It was removed. Its results so far stay in the log.</p>` : html`<${Body} item=${item} />`}`}
  <//>`;
}
