// The topology: who is connected, as a drawing and as tables. A click on a node opens what is known of it.
import { html, useEffect, useMemo } from "../html.js";
import { change, useParameter } from "../address.js";
import { count, counted } from "../format.js";
import { ask } from "../live.js";
import { markReady, nodesOf, useScope, useShared } from "../state.js";
import { Ago, Button, Command, Segment, State, Text } from "../parts/controls.js";
import { Loading, Notice } from "../parts/lists.js";
import { announce } from "../parts/toasts.js";
import { usePhone } from "../parts/media.js";
import { Drawing } from "../topology/drawing.js";
import { MEASURES, joinedLinks } from "../topology/links.js";
import { NodePanel, remember } from "../topology/node_panel.js";
import { LinksTable, NodeCards, NodesTable } from "../topology/tables.js";

/** Nodes that are drawn; more are listed only. */
const MOST_DRAWN = 1500;
const open = (id) => change({ id });
const close = () => change({ id: undefined });

export default function Topology() {
  const cluster = useShared((shared) => shared.cluster);
  const connection = useShared((shared) => shared.connection);
  const problem = useShared((shared) => shared.problem);
  const lost = connection === "away" && !cluster;
  useEffect(() => { if (cluster || lost) markReady(); }, [Boolean(cluster), lost]);
  if (lost) {
    return html`<${Notice} kind="error"><p>${problem ?? "The node does not answer."}</p>
      <${Button} onClick=${ask}>Try again<//><//>`;
  }
  return cluster ? html`<${Known} cluster=${cluster} />` : html`<${Loading} />`;
}

/** Tells screen readers of nodes that die or return. */
function useAnnounced(nodes) {
  const states = nodes.map((node) => `${node.name} ${node.state}`).join("\n");
  const before = useMemo(() => ({ states: null }), []);
  useEffect(() => {
    if (before.states) {
      const known = new Set(before.states.split("\n"));
      const changed = nodes.filter((node) => !known.has(`${node.name} ${node.state}`));
      if (changed.length) announce(changed.map((node) => `Node ${node.name} is ${node.state}`).join(", "));
    }
    before.states = states;
  }, [states]);
}

function Known({ cluster }) {
  const { nodes, alive } = useScope();
  const id = useParameter("id");
  const phone = usePhone();
  const table = useParameter("as") === "table";
  const tab = useParameter("tab");
  const measure = Object.hasOwn(MEASURES, tab ?? "") ? tab : "messages";
  remember(nodes);
  useAnnounced(nodes);
  const names = new Set(nodes.map((node) => node.name));
  const clusters = cluster.clusters.filter((each) => each.nodes.some((node) => names.has(node.name)))
    .map((each) => ({ ...each, nodes: each.nodes.filter((node) => names.has(node.name)) }));
  const links = joinedLinks(cluster).filter((link) => names.has(link.from) && names.has(link.to));
  const drawn = !phone && !table && nodes.length <= MOST_DRAWN;
  return html`
    <div class="head"><div><h1>Topology</h1>
      <p>${counted(clusters.length, "cluster")}, ${alive.length} of ${counted(nodes.length, "node")} alive
        ${nodes.length > 0 && html` <span class="dim">· changed <${Ago} at=${Math.max(...nodes.map((node) => node.since))} /></span>`}</p></div>
      ${!phone && html`<${Choices} table=${table} drawn=${drawn} measure=${measure} />`}</div>
    ${cluster.partial && html`<p class="note"><span><${Text}>${cluster.partial}<//></span></p>`}
    <div class=${id ? "split slim open" : "split"}>
      <section class="panel topology" aria-label="Clusters">
        ${!phone && html`<${AdminLine} version=${cluster.version} drawn=${drawn} measure=${measure} />`}
        ${!nodes.length && html`<${Notice} kind="no-match">No node is in this scope. <${Button} onClick=${() => change({ scope: undefined })}>Show all nodes<//><//>`}
        ${drawn && nodes.length > 0 && html`<${Drawing} cluster=${cluster} clusters=${clusters} links=${links} measure=${measure} id=${id} open=${open} />`}
        ${!phone && !drawn && html`<${NodesTable} clusters=${clusters} id=${id} open=${open} />`}
        ${phone && html`<${NodeCards} cluster=${cluster} clusters=${clusters} open=${open} />`}
        ${cluster.version === 0 && html`<${Join} />`}
        ${!phone && links.length > 0 && html`<${LinksTable} links=${links} nodes=${nodes} />`}
      </section>
      ${id && html`<${NodePanel} key=${id} name=${id} node=${nodesOf(cluster).find((node) => node.name === id)} cluster=${cluster} close=${close} />`}
    </div>`;
}

/** Drawing or table, and what the links of the drawing show. */
function Choices({ table, drawn, measure }) {
  return html`<div class="actions">
    <${Segment} label="Show as" options=${[["drawing", "Drawing"], ["table", "Table"]]} value=${table ? "table" : "drawing"}
      onChange=${(value) => change({ as: value === "table" ? value : undefined })} />
    ${drawn && html`<${Segment} label="Links show" options=${Object.entries(MEASURES).map(([name, { title }]) => [name, title])} value=${measure}
      onChange=${(value) => change({ tab: value === "messages" ? undefined : value })} />`}</div>`;
}

/** Where the topology comes from. */
function AdminLine({ version, drawn, measure }) {
  const session = useShared((shared) => shared.session);
  const status = useShared((shared) => shared.live.status);
  if (version === 0) return null;
  const admin = session?.kind === "admin";
  const away = !admin && status?.cluster && !status.cluster.registered;
  const address = admin ? location.host : status?.cluster?.admin;
  const words = [admin && status?.heartbeat && `heartbeat every ${status.heartbeat} s`, `topology version ${count(version)}`];
  return html`<header><${State} shape=${away ? "dead" : "live"}>${away ? "Admin node does not answer" : "Admin node"}<//>
    <span class="dim">${address && html`<${Text}>${address}<//> · `}${words.filter(Boolean).join(" · ")}</span>
    <span class="dim">${drawn && `Line width: ${MEASURES[measure].title.toLowerCase()}`}</span></header>`;
}

/** What a node without an admin node says below its drawing. */
function Join() {
  return html`<div class="join"><h2>This node is alone</h2>
    <p>Nodes that share an admin node act as one broker. To join one, start an admin node, and this node again with its address, the name of a cluster, and the same secret:</p>
    <${Command} prompt="$">HPWSN_CLUSTER_SECRET_FILE=secret hpwsn admin<//>
    <${Command} prompt="$">HPWSN_CLUSTER_SECRET_FILE=secret hpwsn serve --admin http://ADMIN:8070 --cluster plant --name hall-1<//>
  </div>`;
}
