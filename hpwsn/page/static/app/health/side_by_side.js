// The same figures of all nodes in scope side by side, from the heartbeats in /cluster.
import { html, useEffect } from "../html.js";
import { change, go, useParameter } from "../address.js";
import { bytes, count, duration, figure } from "../format.js";
import { markReady, useScope, useShared } from "../state.js";
import { CurlButton, Text } from "../parts/controls.js";
import { ListState, SortHead, VirtualRows } from "../parts/lists.js";
import { useRowHeight } from "../subscriptions/rows.js";
import { NodeState } from "../topology/node_state.js";

const rate = (value) => figure(value);
const share = (value) => (value === null || value === undefined ? "–" : figure(value * 100));

/** The columns: figure, title, how a value is shown, and the cell of a card on the phone. */
const COLUMNS = [
  ["published_rate", "Published /s", rate, "c3"], ["delivered_rate", "Delivered /s", rate, null],
  ["failed_rate", "Failed /s", rate, null],
  ["accept_p50", "Accept p50", duration, null], ["accept_p99", "Accept p99", duration, null],
  ["deliver_p50", "Delivery p50", duration, null], ["deliver_p99", "Delivery p99", duration, null],
  ["waiting", "Waiting", count, "c4"], ["dead_letters", "Dead letters", count, null],
  ["subscriptions", "Subscriptions", count, null], ["pull_points", "Pull points", count, null],
  ["topics", "Topics", count, null], ["journal_bytes", "Journal", bytes, null], ["cpu", "CPU %", share, null],
  ["memory", "Memory", bytes, null], ["connections", "Connections", count, null], ["threads", "Threads", count, null],
  ["files", "Open files", count, null],
];

function ordered(nodes, sort) {
  const field = sort.replace(/^-/, "");
  const sign = sort.startsWith("-") ? -1 : 1;
  const value = (node) => (field === "name" ? node.name : node.figures?.[field] ?? -1);
  return [...nodes].sort((left, right) => {
    const [a, b] = [value(left), value(right)];
    return (a < b ? -sign : a > b ? sign : 0) || (left.name < right.name ? -1 : 1);
  });
}

/** The tab "Side by side"; `text` is the search over names of nodes. */
export function SideBySide({ text }) {
  const { nodes } = useScope();
  const cluster = useShared((shared) => shared.cluster);
  const heard = useShared((shared) => shared.heard);
  const height = useRowHeight();
  const sort = useParameter("sort") ?? "name";
  const wanted = text.trim().toLowerCase();
  const items = ordered(wanted ? nodes.filter((node) => node.name.toLowerCase().includes(wanted)) : nodes, sort);
  useEffect(() => { if (cluster) markReady(); }, [cluster]);
  const list = { items, loading: !cluster, error: null, updated: heard, partial: [], refresh() {} };
  const dead = nodes.filter((node) => node.state !== "alive").map((node) => node.name);
  const open = (node) => go("health", { tab: "figures", scope: `node:${node.name}` });
  const row = (node, index) => html`<tr key=${node.name} class="opens" tabindex="0" aria-rowindex=${index + 2}
      data-testid="node" data-name=${node.name} data-state=${node.state} onClick=${() => open(node)}
      onKeyDown=${(event) => { if (event.key === "Enter") open(node); }}>
    <td class="c1 pinned"><${Text}>${node.name}<//></td><td class="c2"><${NodeState} node=${node} /></td>
    ${COLUMNS.map(([name, title, show, card]) => html`<td key=${name} class=${`number ${card ?? ""}`}
      data-label=${card ? title : null}>${show(node.figures?.[name] ?? null)}</td>`)}</tr>`;
  const onSort = (next) => change({ sort: next }, { replace: true });
  return html`<section class="panel fill" aria-label="Figures of all nodes">
    <header><h2>All nodes</h2><span class="dim">Figures of their last heartbeats</span><${CurlButton}
      request=${{ path: "cluster" }} /></header>
    <${ListState} list=${list} filtered=${Boolean(wanted)} dead=${dead}
      onClear=${() => change({ q: undefined }, { replace: true })}
      empty=${html`The nodes that register at the admin node are here. Start one with <code>hpwsn serve --admin URL --cluster NAME</code>.`} />
    ${items.length > 0 && html`<div class="wrap" tabindex="0" role="region" aria-label="Figures of all nodes">
      <table class="cards side-by-side" aria-rowcount=${items.length + 1} data-testid="side-by-side">
        <thead><tr aria-rowindex="1">
        <${SortHead} field="name" sort=${sort} onSort=${onSort} class="pinned">Node<//><th scope="col">State</th>
        ${COLUMNS.map(([name, title]) => html`<${SortHead} key=${name} field=${name} sort=${sort}
          onSort=${onSort} class="number">${title}<//>`)}</tr></thead>
        <${VirtualRows} items=${items} height=${height} row=${row} columns=${COLUMNS.length + 2} />
      </table></div>`}
  </section>`;
}
