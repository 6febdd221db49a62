// The same as the drawing in tables: nodes and links; on a phone, cards of nodes by cluster.
import { html } from "../html.js";
import { bytes, count, duration, figure } from "../format.js";
import { State, Tag, Text } from "../parts/controls.js";
import { VirtualRows } from "../parts/lists.js";
import { useRows } from "../subscriptions/rows.js";
import { heldFor } from "./links.js";
import { NodeState } from "./node_state.js";

const ROW = 33;
const CARD = 61;

const byName = (left, right) => (left.name < right.name ? -1 : Number(left.name > right.name));

const percent = (share) => (share === null || share === undefined ? null : share * 100);

/** The nodes of clusters in the order of the table: by cluster, the representative first. */
export function listedNodes(clusters) {
  return [...clusters].sort(byName).flatMap((cluster) => [...cluster.nodes].map((node) => ({
    ...node, cluster: cluster.name, representative: node.name === cluster.representative,
  })).sort((left, right) => right.representative - left.representative || byName(left, right)));
}

/** The table of nodes. */
export function NodesTable({ clusters, id, open }) {
  const nodes = listedNodes(clusters);
  const rows = useRows({ keys: nodes.map((node) => node.name), height: ROW, open: (index) => open(nodes[index].name) });
  return html`<div class="wrap"><table role="grid" aria-label="Nodes" aria-rowcount=${nodes.length + 1} ref=${rows.table} onKeyDown=${rows.onKeyDown}>
    <thead><tr><th scope="col">Node</th><th scope="col">Cluster</th><th scope="col">State</th><th scope="col" class="number">Published /s</th>
      <th scope="col" class="number">Delivered /s</th><th scope="col" class="number">Waiting</th><th scope="col" class="number">CPU %</th>
      <th scope="col" class="number">Heartbeat</th><th scope="col">Version</th></tr></thead>
    <${VirtualRows} items=${nodes} height=${ROW} columns=${9} row=${(node, index) => html`<tr key=${node.name} class="opens" ...${rows.row(node.name, index)}
      aria-selected=${String(node.name === id)} data-testid="node" data-name=${node.name} data-state=${node.state}>
      <td class="clip"><${Text}>${node.name}<//> ${node.representative && html`<${Tag}>represents<//>`}</td>
      <td class="dim clip"><${Text}>${node.cluster}<//></td><td><${NodeState} node=${node} /></td>
      <td class="number">${figure(node.figures?.published_rate)}</td><td class="number">${figure(node.figures?.delivered_rate)}</td>
      <td class="number">${count(node.figures?.waiting)}</td><td class="number">${figure(percent(node.figures?.cpu))}</td>
      <td class="number dim">${node.state === "alive" ? duration(node.heartbeat_age) : "–"}</td><td class="dim"><${Text}>${node.version}<//></td></tr>`} />
  </table></div>`;
}

/** Nodes as cards below the names of their clusters. */
export function NodeCards({ cluster, clusters, open }) {
  const items = [...clusters].sort(byName)
    .flatMap((each) => [{ head: each }, ...listedNodes([each]).map((node) => ({ node }))]);
  return html`<div class="wrap"><table class="cards" aria-label="Nodes">
    <${VirtualRows} items=${items} height=${CARD} columns=${2} row=${(item) => (item.head
      ? html`<${Head} key=${`cluster ${item.head.name}`} cluster=${item.head} />`
      : html`<${Card} key=${`node ${item.node.name}`} node=${item.node} cluster=${cluster} open=${open} />`)} />
  </table></div>`;
}

function Head({ cluster }) {
  const { length } = cluster.nodes;
  const alive = cluster.nodes.filter((node) => node.state === "alive").length;
  return html`<tr class="group"><th scope="rowgroup"><h2><${Text}>${cluster.name}<//></h2></th>
    <td class=${alive < length ? "c2 bad" : "c2 dim"}>${alive < length ? `${alive} of ${length} alive` : length === 1 ? "1 node, alive" : `${length} nodes, all alive`}</td></tr>`;
}

function Card({ node, cluster, open }) {
  const held = node.state === "alive" ? 0 : heldFor(cluster, node.name).bytes;
  const words = node.state === "alive" ? `${figure(node.figures?.published_rate)} in · ${figure(node.figures?.delivered_rate)} out /s`
    : held ? `${bytes(held)} kept for its return` : "nothing kept for it";
  return html`<tr class="opens" data-testid="node" data-name=${node.name} data-state=${node.state} onClick=${() => open(node.name)}>
    <td class="c1"><button type="button" onClick=${(event) => { event.stopPropagation(); open(node.name); }}><${Text}>${node.name}<//></button>
      ${" "}${node.representative && html`<${Tag}>represents<//>`}</td>
    <td class="c2"><${NodeState} node=${node} /></td><td class="c3 dim">${words}</td></tr>`;
}

function LinkState({ link, nodes }) {
  const gone = nodes.find((node) => (node.name === link.from || node.name === link.to) && node.state !== "alive");
  if (gone || link.state === "down") return html`<${State} shape="dead">${gone ? html`Broken, <${Text}>${gone.name}<//> is ${gone.state === "dead" ? "dead" : "gone"}` : "Broken"}<//>`;
  return html`<${State} shape="live">Up<//>`;
}

/** The table of links, both directions together. */
export function LinksTable({ links, nodes }) {
  return html`<div class="wrap links"><table aria-label="Links" aria-rowcount=${links.length + 1}><thead><tr><th scope="col">Link</th><th scope="col">By</th>
    <th scope="col" class="number">Messages /s</th><th scope="col" class="number">Bytes /s</th><th scope="col" class="number">Unconfirmed</th><th scope="col">State</th></tr></thead>
    <${VirtualRows} items=${links} height=${ROW} columns=${6} row=${(link, index) => html`<tr key=${link.key} aria-rowindex=${index + 2}>
      <td><${Text}>${link.from}<//> <span class="dim">and</span> <${Text}>${link.to}<//></td><td><${Tag}>${link.by}<//></td>
      <td class="number">${figure(link.rate)}</td><td class="number">${bytes(link.bytes)}</td><td class="number">${bytes(link.unconfirmed)}</td>
      <td><${LinkState} link=${link} nodes=${nodes} /></td></tr>`} /></table></div>`;
}
