// What happened: the newest events of the nodes in scope, read again when something happens; and all of them.
import { html, useEffect, useRef } from "../html.js";
import { change, href } from "../address.js";
import { dateTime } from "../format.js";
import { nodesOf, useScope, useShared } from "../state.js";
import { Button, Clock, Tag, Text } from "../parts/controls.js";
import { ListState, VirtualRows, useList } from "../parts/lists.js";
import { useRowHeight } from "../subscriptions/rows.js";
import { EventText } from "./event_text.js";

const SHOWN = 7;
const EVERY = 15_000;
/** After a change, the time in which more of it may follow. */
const PAUSE = 300;
/** Other nodes whose logs are read too. */
const MOST = 8;

const newestFirst = (left, right) => Date.parse(right.time) - Date.parse(left.time);

/** The logs to read: null stands for this process. The admin node's log tells of all nodes. */
function useLogs() {
  const { scope, nodes, alive } = useScope();
  const session = useShared((shared) => shared.session);
  if (scope.startsWith("node:")) return alive.length ? [alive[0].name] : null;
  const own = session?.kind === "node" ? session.node : undefined;
  const others = alive.map((node) => node.name).filter((name) => name !== own).sort().slice(0, MOST);
  return nodes.length > 1 ? [own, ...others] : null;
}

/** The events of the nodes in scope as a list, refreshed when the stream tells of a change. */
export function useEvents(logs) {
  const list = useList({ path: "events-log", query: {}, nodes: logs, order: newestFirst, every: EVERY });
  const alerts = useShared((shared) => shared.live.alerts);
  const topology = useShared((shared) => shared.cluster?.version);
  const revision = useShared((shared) => shared.live.topics?.revision);
  const subscriptions = useShared((shared) => shared.live.subscriptions);
  const first = useRef(true);
  useEffect(() => {
    if (first.current) {
      first.current = false;
      return undefined;
    }
    const timer = setTimeout(list.refresh, PAUSE);
    return () => clearTimeout(timer);
  }, [alerts, topology, revision, subscriptions]);
  // That a node died is in the logs of all others: the first log tells it.
  const items = logs ? list.items.filter((event) => event.kind !== "node" || event.at === logs[0]) : list.items;
  return { ...list, items };
}

const useNames = () => nodesOf(useShared((shared) => shared.cluster)).map((node) => node.name);
const EMPTY = "Nothing happened yet. Starts, problems, members and changes are listed here.";

/** The panel with the newest events. */
export function WhatChanged() {
  const logs = useLogs();
  const list = useEvents(logs);
  const names = useNames();
  return html`<section class="panel changes" aria-labelledby="changes-title">
    <header><h2 id="changes-title">What changed</h2><a href=${href("overview", { tab: "events" })}>All events</a></header>
    <${ListState} list=${list} empty=${EMPTY} />
    <ol class="log">${list.items.slice(0, SHOWN).map((event) => html`<li key=${`${event.time} ${event.at} ${event.text}`} data-testid="event">
      <${Clock} at=${event.time} /><span>${logs && event.at && event.at !== logs[0] && html`<${Tag}><${Text}>${event.at}<//><//> `}<${EventText} event=${event} nodes=${names} brief /></span></li>`)}</ol>
  </section>`;
}

/** All events that are kept, the newest first. */
export function AllEvents() {
  const logs = useLogs();
  const list = useEvents(logs);
  const names = useNames();
  const columns = logs ? 5 : 4;
  const height = useRowHeight();
  return html`<div class="head"><div><h1>Events</h1><p>Starts, problems, members, changes of topics, and what operators did; the newest first.</p></div>
      <div class="actions"><${Button} icon="left" onClick=${() => change({ tab: undefined })}>Overview<//></div></div>
    <section class="panel all-events" aria-label="All events">
      <${ListState} list=${list} empty=${EMPTY} />
      ${list.items.length > 0 && html`<div class="wrap"><table class="cards" aria-rowcount=${list.items.length + 1}>
        <thead><tr><th scope="col" class="when">Time</th><th scope="col">Kind</th>${logs && html`<th scope="col">Node</th>`}<th scope="col" class="what">What</th><th scope="col">Who</th></tr></thead>
        <${VirtualRows} items=${list.items} height=${height} columns=${columns} onEnd=${list.more}
          row=${(event, index) => html`<tr key=${`${event.time} ${event.at} ${index}`} aria-rowindex=${index + 2} data-testid="event">
            <td class="c4 dim"><time dateTime=${event.time}>${dateTime(event.time)}</time></td><td class="c2 dim">${event.kind}</td>
            ${logs && html`<td class="c3 dim"><${Text}>${event.at ?? "admin"}<//></td>`}
            <td class="c1 clip" title=${event.text}><${EventText} event=${event} nodes=${names} /></td><td class="dim"><${Text}>${event.who}<//></td></tr>`} />
      </table></div>`}
    </section>`;
}
