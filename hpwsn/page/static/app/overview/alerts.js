// The alerts of the nodes in scope: those of this process as they come, those of other nodes asked now and then.
import { html, useEffect, useState } from "../html.js";
import { href } from "../address.js";
import { get } from "../api.js";
import { counted } from "../format.js";
import { nodesOf, state, useShared, wordsOf } from "../state.js";
import { Ago, Button, Tag, Text } from "../parts/controls.js";

const EVERY = 10_000;
/** Other nodes that are asked: more would cost them more than it tells. */
const MOST = 16;
/** Alerts that are shown without a click. */
const FIRST = 5;
const ORDER = { critical: 0, warning: 1, info: 2 };
const LINKS = {
  topology: "Show topology", subscriptions: "Show subscriptions", "dead-letters": "Show dead letters",
  topics: "Show topics", health: "Show health", streams: "Show streams",
};
/** The subscription at the end of a text: the link goes there, so that its id need not be read. */
const WORST = /, subscription (\S+)$/;
/** The rules that the admin node has for each node itself. */
const OF_ADMIN = new Set(["NodesDead", "CpuSaturated"]);

/** Those that somebody should see to. */
export const problemsOf = (alerts) => alerts.filter((alert) => alert.severity !== "info");

/** The alerts of some nodes: {alerts: [{…, node}], partial: [{node, error}]}, the worst first. */
export function useAlerts(nodes) {
  const session = useShared((shared) => shared.session);
  const own = useShared((shared) => shared.live.alerts);
  const cluster = useShared((shared) => shared.cluster);
  const [found, setFound] = useState({ items: [], partial: [] });
  const others = nodes.filter((node) => node.state === "alive" && !isOwn(node, session)).slice(0, MOST);
  const key = others.map((node) => node.name).join("\n");

  useEffect(() => {
    const names = key ? key.split("\n") : [];
    let stopped = false;
    async function look() {
      if (document.hidden || state.get().paused) return;
      const answers = await Promise.all(names.map(askOne));
      if (stopped) return;
      setFound({
        items: answers.flatMap((answer) => answer.items ?? []), partial: answers.filter((answer) => answer.error),
      });
    }
    look();
    const timer = names.length ? setInterval(look, EVERY) : 0;
    return () => {
      stopped = true;
      clearInterval(timer);
    };
  }, [key]);

  const ownName = session?.kind === "node" ? session.node : null;
  const mine = (own?.items ?? []).map((alert) => ({ ...alert, node: ownName ?? nodeOf(alert) }));
  const scoped = new Set(nodes.map((node) => node.name));
  const all = nodesOf(cluster).length === nodes.length;
  const wanted = mine.filter((alert) => all || !alert.node || scoped.has(alert.node));
  return { alerts: joined(wanted, found.items), partial: found.partial };
}

const isOwn = (node, session) => session?.kind === "node" && node.name === session.node;

/** The node that an alert of the admin node names. */
const nodeOf = (alert) => alert.name.split(":").slice(1).join(":") || null;

async function askOne(node) {
  try {
    return { items: (await get("alerts", { node })).items.map((alert) => ({ ...alert, node })) };
  } catch (error) {
    return { node, error };
  }
}

/** Both lists in order; what a node tells of itself replaces the admin node's words, a dead node is listed once. */
function joined(mine, others) {
  const admin = state.get().session?.kind === "admin";
  const told = new Set(mine.map((alert) => alert.name));
  const more = [];
  for (const alert of others) {
    if (admin && OF_ADMIN.has(alert.name)) continue;
    if (alert.name === "NodesDead" && told.has(alert.name)) continue;
    told.add(alert.name);
    more.push(alert);
  }
  const behind = new Set(more.filter((alert) => alert.name === "ConsumersBehind").map((alert) => alert.node));
  const own = mine.filter((alert) => !(alert.name.startsWith("Backlog:") && behind.has(alert.node)));
  return [...own, ...more].sort((left, right) => (
    ORDER[left.severity] - ORDER[right.severity] || (left.since < right.since ? -1 : 1)
  ));
}

/** Where to look, as {text, to}: the node, the subscription or the view that an alert names. */
function linkOf(alert, nodes, own) {
  const scope = alert.node && alert.node !== own && nodes.length > 1 ? `node:${alert.node}` : undefined;
  if (alert.view === "topology") {
    const dead = nodes.filter((node) => node.state === "dead");
    const id = alert.name === "NodesDead" ? dead.length === 1 && dead[0].name : nodeOf(alert);
    if (id) return { text: "Show node", to: href("topology", { id }) };
  }
  const worst = alert.view === "subscriptions" && alert.text.match(WORST)?.[1];
  if (worst) return { text: "Show subscription", to: href("subscriptions", { scope, id: worst }) };
  const view = Object.hasOwn(LINKS, alert.view) ? alert.view : "health";
  return { text: LINKS[alert.view] ?? "Show", to: href(view, { scope }) };
}

const capital = (text) => text.charAt(0).toUpperCase() + text.slice(1);

function Alert({ alert, nodes, own }) {
  const [head, ...rest] = alert.text.replace(WORST, "").split("; ");
  const { text, to } = linkOf(alert, nodes, own);
  const other = alert.node && alert.node !== own && nodes.length > 1 && !alert.name.includes(":");
  return html`<li class=${`alert alert-${alert.severity}`} data-testid="alert" data-name=${alert.name}>
    <i role="img" aria-label=${alert.severity}>${alert.severity === "info" ? "i" : "!"}</i>
    <p>${other && html`<${Tag}><${Text}>${alert.node}<//><//> `}<b><${Text}>${capital(head)}<//>.</b>
      ${" "}${rest.length > 0 && html`<${Text}>${capital(rest.join("; "))}<//>. `}<${Text}>${alert.remedy}<//></p>
    <${Ago} at=${alert.since} bare /><a href=${to}>${text}</a></li>`;
}

/** All alerts; nothing at all without one. */
export function AlertsPanel({ alerts, partial }) {
  const cluster = useShared((shared) => shared.cluster);
  const own = useShared((shared) => (shared.session?.kind === "node" ? shared.session.node : null));
  const nodes = nodesOf(cluster);
  const [all, setAll] = useState(false);
  if (!alerts.length && !partial.length) return null;
  const more = alerts.length - FIRST;
  return html`<section class="panel alerts" aria-label="Alerts">
    <ul>${(all ? alerts : alerts.slice(0, FIRST)).map((alert) => html`<${Alert} key=${`${alert.node} ${alert.name}`} alert=${alert} nodes=${nodes} own=${own} />`)}</ul>
    ${more > 0 && html`<p class="more-alerts"><${Button} kind="bare" aria-expanded=${String(all)} onClick=${() => setAll(!all)}>
      ${all ? "Show fewer alerts" : `Show ${counted(more, "more alert")}`}<//></p>`}
    ${partial.map((each) => html`<p class="note" key=${each.node}><span><${Text}>${each.node}<//> does not tell its alerts: ${wordsOf(each.error)}</span></p>`)}
  </section>`;
}
