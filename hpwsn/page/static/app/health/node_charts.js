// The charts of one node in a panel. Out of sight the panel is empty and keeps its height.
import { html, useEffect, useRef, useState } from "../html.js";
import { change, href } from "../address.js";
import { clock, oneLine } from "../format.js";
import { useShared, wordsOf } from "../state.js";
import { Tag, Text } from "../parts/controls.js";
import { useInSight } from "../parts/charts.js";
import { NodeState } from "../topology/node_state.js";
import { FigureChart } from "./figure_chart.js";

/** The height of a panel before any has been in sight. */
const GUESS = 720;
let usual = GUESS;

/** Restarts of a node within the range, in words. */
function Restarts({ history }) {
  useShared((shared) => shared.zone);
  const restarts = history?.restarts ?? [];
  if (!restarts.length) return null;
  const words = restarts.slice(-3).map((at) => clock(at)).join(", ");
  return html`<span class="restarts" data-testid="restarts"><i aria-hidden="true"></i>
    restarted ${restarts.length > 3 ? `${restarts.length} times, last ` : ""}${words}</span>`;
}

/** The panel of a node: `charts` of it, with the ends of their axes in `tops`. */
export function NodeCharts({ node, charts, history, error, tops }) {
  const place = useRef(null);
  const seen = useInSight(place, "300px");
  const [active, setActive] = useState(null);
  const first = charts.some((chart) => chart.id === active) ? active : charts[0]?.id;
  useEffect(() => {
    if (seen && charts.length > 8) usual = place.current.clientHeight || usual;
  });

  function key(event) {
    const chart = event.target.closest(".chart");
    if (!chart || event.ctrlKey || event.metaKey || event.altKey) return;
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (event.key === "Enter") change({ id: first });
    else if (step) {
      const all = [...place.current.querySelectorAll(".chart")];
      all[Math.max(0, Math.min(all.length - 1, all.indexOf(chart) + step))].focus();
    } else return;
    event.preventDefault();
  }

  return html`<section class="panel node-charts" ref=${place} aria-label=${`Charts of ${oneLine(node.name)}`}
      data-testid="node" data-name=${node.name}
      data-state=${node.state} style=${{ minHeight: seen ? null : `${usual}px` }} onKeyDown=${key}>
    <header>
      <${NodeState} node=${node} />
      <h2><${Text}>${node.name}<//></h2>
      <span class="dim wide-only"><${Text}>${node.cluster}<//></span>
      ${node.representative && html`<${Tag}>represents<//>`}
      <${Restarts} history=${history} />
      <a href=${href("health", { tab: "figures", scope: `node:${node.name}` })}>All figures</a>
    </header>
    ${error && html`<p class="note">Its figures are not updated: ${wordsOf(error)}</p>`}
    ${seen && html`<div class="figures">${charts.map((chart) => html`<${FigureChart} key=${chart.id}
      chart=${chart} history=${history} node=${node.name} end=${tops[chart.id]} active=${chart.id === first}
      onFocus=${() => setActive(chart.id)} />`)}</div>`}
  </section>`;
}
