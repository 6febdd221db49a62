// Nodes by figures: one axis a column, from 0 to the figure in its head, so that nodes can be compared.
import { html } from "../html.js";
import { href } from "../address.js";
import { count, figure, niceCeiling, short } from "../format.js";
import { Spark } from "../parts/sparks.js";
import { Tag, Text } from "../parts/controls.js";
import { VirtualRows } from "../parts/lists.js";
import { useRowHeight } from "../subscriptions/rows.js";
import { NodeState } from "../topology/node_state.js";

const plain = (value) => value;
const milli = (value) => value * 1000;
const percent = (value) => value * 100;
const mega = (value) => value / 1e6;

/** By figure of the API: its title, unit, scale, text, and the least end of the axis. */
export const COLUMNS = [
  { metric: "published_rate", title: "Published /s", scale: plain, text: figure },
  { metric: "delivered_rate", title: "Delivered /s", scale: plain, text: figure },
  { metric: "deliver_p99", title: "Latency p99 ms", scale: milli, text: figure },
  { metric: "waiting", title: "Waiting", scale: plain, text: count },
  { metric: "cpu", title: "CPU %", scale: percent, text: figure, least: 100 },
  { metric: "memory", title: "Memory MB", scale: mega, text: figure },
  { metric: "journal_bytes", title: "Journal MB", scale: mega, text: figure },
];

/** The end of the axis of a column: the same for all nodes. */
function topOf({ metric, scale, least = 0 }, nodes, histories) {
  let most = 0;
  for (const node of nodes) {
    for (const value of histories[node.name]?.series[metric]?.mean ?? []) if (value > most) most = value;
    most = Math.max(most, node.figures?.[metric] ?? 0);
  }
  return niceCeiling(Math.max(scale(most), least));
}

function Cell({ column, node, history, top, late }) {
  const value = node.state === "alive" ? node.figures?.[column.metric] ?? null : null;
  const known = history?.series[column.metric]?.mean ?? [];
  const values = known.map((each) => (each === null ? null : column.scale(each)));
  const tone = late ? "warn" : undefined;
  const onPhone = column.metric === "waiting";
  return html`<td class=${onPhone ? "number c4" : "number"} data-label=${onPhone ? "waiting" : null}>
    <div class="cell">${history && html`<${Spark} values=${values} top=${top} height=${20} tone=${tone} />`}
      <span class=${tone}>${value === null ? "–" : column.text(column.scale(value))}</span></div></td>`;
}

function Row({ node, index, tops, history, late }) {
  return html`<tr key=${node.name} aria-rowindex=${index + 2} data-testid="node" data-name=${node.name} data-state=${node.state}>
    <td class="c1 clip"><a href=${href("topology", { id: node.name })}><${Text}>${node.name}<//></a> ${node.representative && html`<${Tag}>represents<//>`}</td>
    <td class="c3 dim clip"><${Text}>${node.cluster}<//></td><td class="c2"><${NodeState} node=${node} /></td>
    ${COLUMNS.map((column, place) => html`<${Cell} key=${column.metric} column=${column} node=${node} history=${history}
      top=${tops[place]} late=${column.metric === "waiting" && late} />`)}</tr>`;
}

/** The table of nodes with their lines. */
export function NodeMatrix({ nodes, histories, alerts, words }) {
  const height = useRowHeight();
  const tops = COLUMNS.map((column) => topOf(column, nodes, histories));
  const behind = alerts.filter((alert) => /^(ConsumersBehind|Backlog)/.test(alert.name));
  const late = new Set(behind.map((alert) => alert.node));
  return html`<section class="panel nodes" aria-labelledby="nodes-title">
    <header><h2 id="nodes-title">Nodes</h2><span class="dim wide-only">${words}. One axis per column, from 0 to the figure in its head.</span>
      <a href=${href("health")}>Health of each node</a></header>
    <div class="wrap"><table class="cards" aria-rowcount=${nodes.length + 1}><thead><tr><th scope="col">Node</th><th scope="col">Cluster</th><th scope="col">State</th>
      ${COLUMNS.map((column, place) => html`<th scope="col" class="number" key=${column.metric}>${column.title}<small>0–${short(tops[place])}</small></th>`)}</tr></thead>
      <${VirtualRows} items=${nodes} height=${height} columns=${COLUMNS.length + 3}
        row=${(node, index) => html`<${Row} key=${node.name} node=${node} index=${index} tops=${tops} history=${histories[node.name]} late=${late.has(node.name)} />`} />
    </table></div></section>`;
}
