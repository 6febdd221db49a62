// The side panel of a node: its state, addresses, links, what others hold for it, what happened, what to do.
import { html, useEffect, useState } from "../html.js";
import { change, href } from "../address.js";
import { get, quoted, send } from "../api.js";
import { bytes, count, counted, oneLine } from "../format.js";
import { useMay, useShared, wordsOf } from "../state.js";
import { Ago, Button, Clock, Command, Text } from "../parts/controls.js";
import { ask } from "../parts/dialogs.js";
import { Loading } from "../parts/lists.js";
import { toast } from "../parts/toasts.js";
import { EventText } from "../overview/event_text.js";
import { SidePanel } from "../subscriptions/side_panel.js";
import { heldFor } from "./links.js";
import { NodeState } from "./node_state.js";

const RANKS = ["first", "second", "third", "fourth", "fifth"];
const EVENTS = 1000;
const SHOWN = 12;
/** Heartbeat intervals of two seconds without a heartbeat after which a node is late. */
const LATE = 4;
const RESOURCES = ["subscriptions", "pull_points", "waiting", "dead_letters"];

/** What nodes had when they were last seen with figures, by name: /cluster has none of a node that is gone. */
const last = new Map();

/** Remembers the figures of nodes that are alive. */
export function remember(nodes) {
  for (const node of nodes) if (node.state === "alive" && node.figures) last.set(node.name, node.figures);
}

/** The figures of a node, or the last ones: seen by this page, or in its history at the admin node. */
function useLastFigures(node) {
  const admin = useShared((shared) => shared.session?.kind === "admin");
  const [found, setFound] = useState({ name: null, figures: null });
  const wanted = node.state !== "alive" && admin && !last.has(node.name);
  useEffect(() => {
    if (!wanted) return;
    get("history", { query: { node: node.name, range: "24h", metrics: RESOURCES.join(",") } }).then(({ series }) => {
      const figures = RESOURCES.map((name) => [name, series[name].mean.findLast((value) => value !== null)]);
      setFound({ name: node.name, figures: Object.fromEntries(figures) });
    }).catch(() => {});
  }, [node.name, wanted]);
  return node.figures ?? last.get(node.name) ?? (found.name === node.name ? found.figures : null);
}

/** The events of members in the log of this process that name a node; null until they are read. */
function useEventsOf(name) {
  const version = useShared((shared) => shared.cluster?.version);
  const [found, setFound] = useState({ name: null, items: null });
  useEffect(() => {
    let stopped = false;
    get("events-log", { query: { limit: EVENTS } }).then(({ items }) => {
      const own = items.filter((event) => event.kind === "node" && event.text.startsWith(`node ${name} `));
      if (!stopped) setFound({ name, items: own.slice(0, SHOWN) });
    }).catch((error) => { if (!stopped) setFound({ name, items: [], error }); });
    return () => { stopped = true; };
  }, [name, version]);
  return found.name === name ? found : { items: null };
}

/** An address of the topology as a link, if it is one of HTTP. */
function PageLink({ url }) {
  let parsed = null;
  try {
    parsed = new URL(url.replace(/\/?$/, "/ui/"));
  } catch {
    // Whatever it is, it is shown as text.
  }
  if (!parsed || !["http:", "https:"].includes(parsed.protocol)) return html`<${Text} mono>${url}<//>`;
  return html`<a href=${parsed.href} target="_blank" rel="noopener noreferrer"><${Text} mono>${parsed.href}<//></a>`;
}

function rankOf(node, cluster) {
  if (node.name === cluster.representative) return "represents it";
  const line = cluster.nodes.filter((each) => each.state === "alive");
  const place = line.findIndex((each) => each.name === node.name);
  return place < 0 ? "not in line" : `${RANKS[place] ?? `number ${place + 1}`} in line`;
}

function Heartbeat({ node, at }) {
  if (node.heartbeat_age === null || node.heartbeat_age === undefined) return html`<span class="dim">not known here</span>`;
  const moment = at / 1000 - node.heartbeat_age;
  const late = node.state === "alive" && node.heartbeat_age > LATE;
  return html`<span class=${late ? "warn" : null}><${Clock} at=${moment} />, <${Ago} at=${moment} />${late && ", late"}</span>`;
}

function Resources({ node }) {
  const figures = useLastFigures(node);
  if (!figures) return html`<span class="dim">not known here</span>`;
  const has = `${counted(figures.subscriptions ?? 0, "subscription")} and ${counted(figures.pull_points ?? 0, "pull point")}`;
  if (node.state !== "alive") return `${has} answer 503 while it is away`;
  return `${has}, ${count(figures.waiting)} waiting, ${counted(figures.dead_letters ?? 0, "dead letter")}`;
}

function Held({ held, node }) {
  if (!held.bytes) return html`<span class="dim">nothing</span>`;
  return html`${bytes(held.bytes)}, not confirmed yet to ${held.from.slice(0, 3).map((name, index) => html`${index > 0 && ", "}<${Text} key=${name}>${name}<//>`)}
    ${node.state !== "alive" && "; what is reliable is kept for routing.dead_grace after it was lost"}`;
}

/** Names the effect, then removes a node that is dead or has left from the topology. */
async function forget(name) {
  const request = { method: "DELETE", path: `nodes/${encodeURIComponent(name)}` };
  const shown = oneLine(name);
  const done = await ask({
    title: `Forget node ${shown}?`, verb: `Forget ${shown}`, danger: true, request,
    body: `${shown} disappears from the topology of all nodes, and the admin node deletes its history. Its data directory`
      + " stays as it is: started again, it joins as the last node of its cluster.",
    run: () => send(request.method, request.path),
  });
  if (!done) return;
  toast(`Node ${shown} is forgotten`);
  change({ id: undefined });
}

function Forget({ name }) {
  const admin = useShared((shared) => shared.session?.kind === "admin");
  const url = useShared((shared) => shared.live.status?.cluster?.admin);
  const may = useMay("operate");
  if (admin) {
    return html`<div class="tools"><${Button} kind="risk" testid="forget" disabled=${!may} onClick=${() => forget(name)}>Forget node…<//></div>`;
  }
  const address = `${(url ?? "http://ADMIN").replace(/\/$/, "")}/nodes/${encodeURIComponent(name)}`;
  return html`<p class="dim">Nodes are forgotten at the admin node, on its page or by this request:</p>
    <${Command} prompt="$">${`curl -X DELETE ${quoted(address)}`}<//>`;
}

function WhatToDo({ node, late }) {
  if (node.state === "dead") {
    return html`<p>Start it again with the same data directory: it takes its name back at once and gets what was held. If it will not return, forget it.</p><${Forget} name=${node.name} />`;
  }
  if (node.state === "left") {
    return html`<p>It was stopped in order. Start it with the same data directory to bring it back, or forget it.</p><${Forget} name=${node.name} />`;
  }
  const scope = `node:${node.name}`;
  return html`<p>${late ? "Its heartbeats are late: look at its log and at the load of its host." : "Nothing: it is alive."}</p>
    <p class="links-of"><a href=${href("health", { scope })}>Health of this node</a> <a href=${href("subscriptions", { scope })}>Its subscriptions</a>
      <a href=${href("overview", { scope })}>Its overview</a></p>`;
}

function Happened({ name }) {
  const { items, error } = useEventsOf(name);
  const own = useShared((shared) => shared.session?.node);
  const names = [];
  if (!items) return html`<${Loading} rows=${2} />`;
  if (error) return html`<p class="note bad" role="alert">${wordsOf(error)}</p>`;
  if (!items.length) return html`<p class="dim">Nothing is in the log of <${Text}>${own}<//>.</p>`;
  return html`<ol class="log">${items.map((event) => html`<li key=${`${event.time} ${event.text}`}><${Clock} at=${event.time} />
    <${EventText} event=${event} nodes=${names} /></li>`)}</ol>`;
}

/** The panel of a node; `node` is undefined if there is none of that name. */
export function NodePanel({ name, node, cluster, close }) {
  if (!node) {
    return html`<${SidePanel} label="Selected node" back="Topology" heading=${html`<${Text}>${name}<//>`} close=${close}>
      <p>No node has this name. It may have been forgotten.</p><//>`;
  }
  const group = cluster.clusters.find((each) => each.name === node.cluster);
  const late = node.heartbeat_age > LATE;
  return html`<${SidePanel} label="Selected node" back="Topology" close=${close} heading=${html`<${Text}>${node.name}<//>`}
      sub=${html`<${NodeState} node=${node} since="for" />`}>
    <dl class="details">
      <dt>Cluster</dt><dd><${Text}>${node.cluster}<//>, ${rankOf(node, group)}</dd>
      <dt>${node.state === "alive" ? "Alive since" : "Since"}</dt><dd><${Clock} at=${node.since} />, <${Ago} at=${node.since} /></dd>
      <dt>Last heartbeat</dt><dd><${Heartbeat} node=${node} at=${cluster.at} /></dd>
      <dt>Version</dt><dd><${Text}>${node.version}<//></dd>
      <dt>Page</dt><dd><${PageLink} url=${node.url} /></dd>
      <dt>Links</dt><dd>${node.port ? html`<${Text} mono>${`${node.host}:${node.port}`}<//> UDP, TCP` : html`<span class="dim">none: it is alone</span>`}</dd>
      <dt>Held for it</dt><dd><${Held} held=${heldFor(cluster, node.name)} node=${node} /></dd>
      <dt>Its resources</dt><dd><${Resources} node=${node} /></dd>
    </dl>
    <h3 class="title">What happened</h3><${Happened} name=${node.name} />
    <h3 class="title">What to do</h3><${WhatToDo} node=${node} late=${late} /><//>`;
}
