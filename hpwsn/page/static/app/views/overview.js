// The overview: is all well, what changed. A node where nothing was published yet shows three steps instead.
import { html, useEffect } from "../html.js";
import { change, href, useParameter } from "../address.js";
import { counted } from "../format.js";
import { RANGES, combined, useHistories } from "../figures.js";
import { ask } from "../live.js";
import { lazy, loaded } from "../lazy.js";
import { markReady, useNode, useScope, useShared } from "../state.js";
import { Button, Segment, State, Text } from "../parts/controls.js";
import { Loading, Notice } from "../parts/lists.js";
import { AlertsPanel, problemsOf, useAlerts } from "../overview/alerts.js";
import { BusiestTopics } from "../overview/busiest_topics.js";
import { AllEvents, WhatChanged } from "../overview/events.js";
import { useFirstRun } from "../overview/first_visit.js";
import { COLUMNS, NodeMatrix } from "../overview/node_matrix.js";
import { TILES, Tiles } from "../overview/tiles.js";

const FirstRun = lazy(async () => (await loaded(import("../watch/first_run.js"), "styles/watch")).FirstRun);
const METRICS = [...new Set([...TILES, ...COLUMNS].map((each) => each.metric)), "deliver_p50"];
const SHOWN = { "5m": "5 min", "1h": "1 hour", "24h": "24 hours" };
const WORDS = { "5m": "Last 5 minutes", "1h": "Last hour", "24h": "Last 24 hours" };
/** Nodes whose histories are read; the figures of all others are shown without lines. */
const MOST_HISTORIES = 48;

/** The range of the address; five minutes without one, as in the API. */
function useRange() {
  const range = useParameter("range");
  return range in RANGES ? range : "5m";
}

export default function Overview() {
  const cluster = useShared((shared) => shared.cluster);
  const connection = useShared((shared) => shared.connection);
  const problem = useShared((shared) => shared.problem);
  const tab = useParameter("tab");
  const [first, leave] = useFirstRun();
  const lost = connection === "away" && !cluster;
  useEffect(() => { if (cluster || lost) markReady(); }, [Boolean(cluster), lost]);

  if (lost) {
    return html`<${Notice} kind="error"><p>${problem ?? "The node does not answer."}</p>
      <${Button} onClick=${ask}>Try again<//><//>`;
  }
  if (!cluster) return html`<${Loading} />`;
  if (tab === "events") return html`<${AllEvents} />`;
  return first ? html`<${NewNode} leave=${leave} />` : html`<${Usual} />`;
}

function NewNode({ leave }) {
  const { nodes } = useScope();
  return html`
    <div class="head"><div><h1 class="verdict"><${State} shape="live">This node is ready<//></h1>
      <p>Nothing was published yet. Three steps, here or in a terminal.</p></div>
      <div class="actions"><${Button} onClick=${leave}>Show the overview<//></div></div>
    <${FirstRun} />
    <${Figures} nodes=${nodes} range="5m" alerts=${[]} />`;
}

function Figures({ nodes, range, alerts, matrix }) {
  const known = nodes.slice(0, MOST_HISTORIES).map((node) => node.name);
  const { histories } = useHistories(known, range, METRICS);
  const shown = { nodes, histories, range, alerts, words: WORDS[range] };
  return html`<${Tiles} ...${shown} />${matrix && html`<${NodeMatrix} ...${shown} />`}`;
}

function Usual() {
  const { scope, nodes, alive } = useScope();
  const range = useRange();
  const { alerts, partial } = useAlerts(nodes);
  const node = useNode();
  return html`
    <div class="head"><${Verdict} nodes=${nodes} alive=${alive} alerts=${alerts} scope=${scope} />
      <div class="actions"><${Segment} label="Time range" options=${Object.entries(SHOWN)} value=${range}
        onChange=${(value) => change({ range: value })} /></div></div>
    <${AlertsPanel} alerts=${alerts} partial=${partial} />
    <${Figures} nodes=${nodes} range=${range} alerts=${alerts} matrix />
    <div class="duo"><${BusiestTopics} node=${node} /><${WhatChanged} /></div>`;
}

/** The heading: whether all is well, and how much there is. */
function Verdict({ nodes, alive, alerts, scope }) {
  const away = useShared((shared) => shared.connection === "away");
  const live = useShared((shared) => shared.live.topics);
  const partial = useShared((shared) => shared.cluster.partial);
  const problems = problemsOf(alerts).length;
  const clusters = new Set(nodes.map((node) => node.cluster)).size;
  const sum = (name) => combined(name, alive.map((node) => node.figures?.[name]));
  const topics = (scope === "all" && live?.total) || sum("topics");
  const parts = [
    `${alive.length} of ${counted(nodes.length, "node")} alive${clusters > 1 ? ` in ${clusters} clusters` : ""}`,
    sum("subscriptions") !== null && counted(sum("subscriptions"), "subscription"),
    topics !== null && counted(topics, "topic"),
  ];
  const words = away ? "The node does not answer"
    : problems ? `${counted(problems, "problem")} ${problems === 1 ? "needs" : "need"} attention` : "All is well";
  return html`<div><h1 class="verdict"><${State} shape=${away || problems ? "dead" : "live"}>${words}<//></h1>
    <p>${parts.filter(Boolean).join(" · ")}</p>
    ${partial && html`<p class="note partial"><span><${Text}>${partial}<//></span> <a href=${href("topology")}>Show topology</a></p>`}</div>`;
}
