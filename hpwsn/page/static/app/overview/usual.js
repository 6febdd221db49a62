// The overview of a node or cluster in use: verdict, alerts, tiles, nodes, busiest topics, what changed.
import { html, useEffect } from "../html.js";
import { change, href, useParameter } from "../address.js";
import { counted } from "../format.js";
import { RANGES, combined } from "../figures.js";
import { markReady, useScope, useShared } from "../state.js";
import { Segment, State, Text } from "../parts/controls.js";
import { AlertsPanel, problemsOf, useAlerts } from "./alerts.js";
import { BusiestTopics } from "./busiest_topics.js";
import { WhatChanged } from "./events.js";
import { COLUMNS, NodeMatrix } from "./node_matrix.js";
import { TILES, Tiles, useTileHistories } from "./tiles.js";

const METRICS = [...new Set([...TILES, ...COLUMNS].map((each) => each.metric)), "deliver_p50"];
const SHOWN = { "5m": "5 min", "1h": "1 hour", "24h": "24 hours" };
const WORDS = { "5m": "Last 5 minutes", "1h": "Last hour", "24h": "Last 24 hours" };

/** The range of the address; five minutes without one, as in the API. */
function useRange() {
  const range = useParameter("range");
  return Object.hasOwn(RANGES, range ?? "") ? range : "5m";
}

/** The whole view. */
export function Usual() {
  const { scope, nodes, alive } = useScope();
  const range = useRange();
  const { alerts, partial } = useAlerts(nodes);
  const histories = useTileHistories(nodes, range, METRICS);
  const shown = { nodes, histories, range, alerts, words: WORDS[range] };
  useEffect(markReady, []);
  return html`
    <div class="head"><${Verdict} nodes=${nodes} alive=${alive} alerts=${alerts} scope=${scope} />
      <div class="actions"><${Segment} label="Time range" options=${Object.entries(SHOWN)} value=${range}
        onChange=${(value) => change({ range: value })} /></div></div>
    <${AlertsPanel} alerts=${alerts} partial=${partial} />
    <${Tiles} ...${shown} /><${NodeMatrix} ...${shown} />
    <div class="duo"><${BusiestTopics} /><${WhatChanged} /></div>`;
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
