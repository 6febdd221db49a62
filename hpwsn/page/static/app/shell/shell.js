// The frame of the page: bar with scope, search and state of the connection; rail of views; main.
import { html, useEffect, useState } from "../html.js";
import { href, useAddress } from "../address.js";
import { get } from "../api.js";
import { clock, count, zoneName } from "../format.js";
import { combined } from "../figures.js";
import { Icon, Mark } from "../icons.js";
import { showHelp } from "../keys.js";
import { setPaused } from "../live.js";
import { choose, nodesOf, scopeName, setScope, state, useScope, useShared } from "../state.js";
import { VIEWS } from "../views.js";
import { Button, Menu, State, Text } from "../parts/controls.js";
import { usePhone } from "../parts/media.js";
import { Search } from "./search.js";

const PHONE = ["overview", "topics", "subscriptions", "topology"];
const THEMES = { system: "light", light: "dark", dark: "system" };
const THEME_ICONS = { system: "system", light: "sun", dark: "moon" };

/** The numbers beside the names of views, over the nodes in scope. */
function useNumbers() {
  const { nodes, alive } = useScope();
  const [streams, setStreams] = useState(null);
  const live = useShared((shared) => shared.live);
  const kind = useShared((shared) => shared.session?.kind);
  useEffect(() => {
    if (kind !== "node") return undefined;
    const look = () => get("streams", { query: { limit: 1 } })
      .then((found) => setStreams(found.total ?? found.items.length)).catch(() => setStreams(null));
    look();
    const timer = setInterval(() => { if (!document.hidden && !state.get().paused) look(); }, 30_000);
    return () => clearInterval(timer);
  }, [kind]);
  const sum = (name) => combined(name, alive.map((node) => node.figures?.[name]));
  return {
    topics: live.topics?.total ?? sum("topics"),
    subscriptions: sum("subscriptions"),
    "dead-letters": sum("dead_letters"),
    topology: nodes.length > 1 ? nodes.length : null,
    streams,
    sensors: nodes.length > 1 ? null : live.status?.sensors?.physical,
  };
}

function Rail({ view, numbers }) {
  const session = useShared((shared) => shared.session);
  const zone = useShared((shared) => shared.zone);
  return html`<nav class="rail" aria-label="Views">
    ${Object.entries(VIEWS).map(([name, { title }]) => {
      const number = numbers[name];
      const hot = name === "dead-letters" && number > 0;
      return html`<a key=${name} href=${href(name)} data-testid=${`nav-${name}`} aria-current=${view === name ? "page" : null} title=${title}>
        <${Icon} name=${name} /><span class="rail-title">${title}</span>
        ${number > 0 && html`<span class=${hot ? "rail-number hot" : "rail-number"}>${count(number)}</span>`}</a>`;
    })}
    <div class="rail-foot">
      <${Text}>${session?.node}<//> · ${session?.version}<br />
      <button type="button" onClick=${() => choose({ zone: zone === "utc" ? "local" : "utc" })}
        title="Switch between local time and UTC">Times are ${zone === "utc" ? "UTC" : `local, ${zoneName()}`}</button>
    </div>
  </nav>`;
}

function PhoneTabs({ view, numbers }) {
  const alerts = useShared((shared) => shared.live.alerts?.items ?? []);
  const rest = Object.entries(VIEWS).filter(([name]) => !PHONE.includes(name));
  const [open, setOpen] = useState(false);
  useEffect(() => setOpen(false), [view]);
  return html`<nav class="phone-tabs" aria-label="Views of the phone">
    ${PHONE.map((name) => html`<a key=${name} href=${href(name)} data-testid=${`nav-${name}`} aria-current=${view === name ? "page" : null}
      class=${name === "overview" && alerts.some((alert) => alert.severity === "critical") ? "hot" : null}>
      <${Icon} name=${name} />${VIEWS[name].title}</a>`)}
    <button type="button" class=${numbers["dead-letters"] > 0 ? "hot" : null} aria-expanded=${String(open)}
      aria-current=${rest.some(([name]) => name === view) ? "page" : null} onClick=${() => setOpen(!open)}>
      <${Icon} name="more" />More</button>
    ${open && html`<div class="phone-more">${rest.map(([name, { title }]) => html`<a key=${name} href=${href(name)} data-testid=${`nav-${name}`}>
      <${Icon} name=${name} />${title} ${numbers[name] > 0 && html`<span class="rail-number">${count(numbers[name])}</span>`}</a>`)}</div>`}
  </nav>`;
}

function Connection() {
  const connection = useShared((shared) => shared.connection);
  const heard = useShared((shared) => shared.heard);
  const words = {
    live: ["live", "Live"], paused: ["paused", "Paused"], connecting: ["retrying", "Connecting"],
    away: ["dead", heard ? `Not updated since ${clock(heard / 1000)}` : "No connection"],
  }[connection];
  return html`<span role="status" class="connection" data-connection=${connection}>
    <${State} shape=${words[0]}>${words[1]}<//></span>`;
}

function Scope() {
  const { scope } = useScope();
  const cluster = useShared((shared) => shared.cluster);
  const nodes = nodesOf(cluster);
  if (nodes.length < 2) return null;
  const clusters = cluster.clusters.map((each) => each.name);
  const items = [
    { label: "All nodes", run: () => setScope("all") },
    ...(clusters.length > 1 ? clusters.map((name) => ({ label: `Cluster ${name}`, run: () => setScope(`cluster:${name}`) })) : []),
    ...nodes.map((node) => ({ label: node.name, run: () => setScope(`node:${node.name}`) })),
  ];
  return html`<div class="scope"><${Menu} label="Nodes to show" kind="" text=${scopeName(scope)} items=${items} /></div>`;
}

/** The frame around the view. */
export function Shell({ children }) {
  const view = useAddress((found) => found.view);
  const theme = useShared((shared) => shared.theme);
  const paused = useShared((shared) => shared.paused);
  const principal = useShared((shared) => shared.session?.principal);
  const numbers = useNumbers();
  const phone = usePhone();
  return html`<div class="app">
    <a class="skip" href="#main">Skip to content</a>
    <header class="bar">
      <a class="brand" href=${href("overview")} aria-label="HPwsn"><${Mark} /><span>HPwsn</span></a>
      <${Scope} /><${Search} />
      <div class="bar-end">
        <${Connection} />
        <${Button} kind="bare" icon=${paused ? "play" : "pause"} label=${paused ? "Resume live updates" : "Pause live updates"}
          onClick=${() => setPaused(!paused)} />
        <${Button} kind="bare" icon=${THEME_ICONS[theme]} label=${`Theme: ${theme === "system" ? "as the system" : theme}`}
          onClick=${() => choose({ theme: THEMES[theme] })} />
        <button type="button" class="button bare wide-only" aria-label="Keys" title="Keys" onClick=${showHelp}>?</button>
        ${principal && html`<span class="wide-only principal"><${Text}>${principal}<//></span>`}
      </div>
    </header>
    ${!phone && html`<${Rail} key="rail" view=${view} numbers=${numbers} />`}
    <main id="main" key="main" tabindex="-1">${children}</main>
    ${phone && html`<${PhoneTabs} key="tabs" view=${view} numbers=${numbers} />`}
  </div>`;
}
