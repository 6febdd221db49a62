// The side panel of a subscription: its state, what can be done, what waits, the last error, and all its fields.
import { html, useState } from "../html.js";
import { href } from "../address.js";
import { curl } from "../api.js";
import { count, duration, figure, secondsSince, visible } from "../format.js";
import { useMay, useShared, wordsOf } from "../state.js";
import { Ago, Button, Clock, Menu, State, Text, copyText } from "../parts/controls.js";
import { Loading, Notice } from "../parts/lists.js";
import { act, askToEnd, requestsOf } from "./actions.js";
import { useOne } from "./one_item.js";
import { askToRenew } from "./renew_dialog.js";
import { SidePanel } from "./side_panel.js";
import { WaitingChart } from "./waiting_chart.js";
import { KINDS, STATES, filterOf, pullPointOf, shortConsumer } from "./words.js";

const PLAIN = /^[^*/|.\s]+$/;
const NAMES = { show: "Show", pause: "Pause", resume: "Resume", retry: "Try now", renew: "Renew", end: "End" };

/** The state with the time to the next attempt, which goes on counting. */
function StateLine({ item, gone }) {
  useShared((shared) => shared.heard);
  if (gone) return html`<${State} shape="expired">Ended<//>`;
  const { shape, word } = STATES[item.state];
  const left = item.next_attempt ? -secondsSince(item.next_attempt) : null;
  const next = item.state !== "retrying" ? null : left === null || left < 1 ? "trying now" : `next attempt in ${duration(left)}`;
  return html`<${State} shape=${shape}>${word}${next && `, ${next}`}<//>`;
}

function Actions({ item, gone, refresh, ended }) {
  const mine = useMay("subscribe");
  const operator = useMay("operate");
  const [busy, setBusy] = useState(false);
  const off = gone || busy || !(mine || operator);
  const requests = requestsOf(item);
  async function now(action) {
    setBusy(true);
    await act(action, item);
    await refresh();
    setBusy(false);
  }
  const expired = item.state === "expired";
  const copy = (name) => ({ label: `Copy “${NAMES[name]}” as curl`, icon: "copy", run: () => {
    const { method, path, ...options } = requests[name];
    copyText(curl(method, path, options), "Copied as curl");
  } });
  return html`<div class="tools" role="group" aria-label="Actions">
    ${item.state === "retrying" && html`<${Button} kind="first" testid="retry" disabled=${off} onClick=${() => now("retry")}>Try now<//>`}
    ${item.paused
      ? html`<${Button} key="resume" icon="play" testid="resume" disabled=${off || expired} onClick=${() => now("resume")}>Resume<//>`
      : html`<${Button} key="pause" icon="pause" testid="pause" disabled=${off || expired} onClick=${() => now("pause")}>Pause<//>`}
    <${Button} testid="renew" disabled=${off} onClick=${async () => { if (await askToRenew(item)) refresh(); }}>Renew…<//>
    <${Button} kind="risk" testid="end" disabled=${off} onClick=${async () => { if (await askToEnd(item)) ended(); }}>End…<//>
    <${Menu} label="Copy as curl" items=${["show", item.paused ? "resume" : "pause", "retry", "renew", "end"].map(copy)} />
  </div>`;
}

/** An error without the address, which stands below: "Connection refused". */
const cause = (error) => error.replace(/^POST \S+: /, "").replace(/^[a-z]/, (letter) => letter.toUpperCase());

function Trouble({ item }) {
  if (item.state === "retrying" && item.last_error) {
    return html`<div class="note bad trouble"><p><b><${Text}>${cause(item.last_error)}<//></b>, ${count(item.failures)} failed ${item.failures === 1 ? "attempt" : "attempts"} so far.
      When the retries are used up (24 h, unless the node is configured otherwise), what waits becomes dead letters.</p></div>`;
  }
  if (item.reason) return html`<div class="note trouble"><p>${visible(item.reason)}</p></div>`;
  return null;
}

function Topics({ topics }) {
  if (!topics.length) return html`<span class="dim">all</span>`;
  return topics.map((topic, index) => html`<div key=${index}>${PLAIN.test(topic)
    ? html`<a href=${href("topics", { topic, tab: "subscribers" })}><${Text}>${topic}<//></a>` : html`<${Text}>${topic}<//>`}</div>`);
}

function Fields({ item }) {
  const filter = filterOf(item);
  const point = pullPointOf(item);
  const row = (name, value) => html`<dt>${name}</dt><dd>${value}</dd>`;
  return html`<dl class="details">
    ${row("Id", html`<span class="mono">${item.id}</span>`)}
    ${row("Consumer", point
      ? html`<a href=${href("subscriptions", { state: "pullpoints", id: point })}>pull point <span class="mono">${point}</span></a>`
      : html`<${Text} mono>${item.consumer || "none"}<//>`)}
    ${row("Kind", KINDS[item.kind] ?? item.kind)}
    ${row("Topics", html`<${Topics} topics=${item.topics} />`)}
    ${row("Filter", filter ? html`<${Text} mono>${filter}<//>` : html`<span class="dim">none</span>`)}
    ${row("Node", html`<${Text}>${item.node}<//>`)}
    ${row("Waiting", count(item.waiting))}
    ${row("Oldest", item.oldest ? html`<${Clock} at=${item.oldest} />, <${Ago} at=${item.oldest} />` : "–")}
    ${row("Sent", `${figure(item.rate)} /s`)}
    ${row("Delivered", html`${count(item.delivered)} <span class="dim">since the node started</span>`)}
    ${row("Dropped", count(item.dropped))}
    ${row("Expired unsent", count(item.expired_unsent))}
    ${row("Failed attempts", count(item.failures))}
    ${item.last_error && row("Last error", html`<${Text}>${item.last_error}<//>`)}
    ${row("Dead letters", item.dead_letters
      ? html`<a href=${href("dead-letters", { subscription: item.id })} data-testid="letters-link">${count(item.dead_letters)}</a>` : "0")}
    ${row("Created", html`<${Clock} at=${item.created} />, <${Ago} at=${item.created} />`)}
    ${row("Ends", item.terminates ? html`<${Clock} at=${item.terminates} /><${In} at=${item.terminates} />` : "never")}
  </dl>`;
}

function In({ at }) {
  useShared((shared) => shared.heard);
  const left = -secondsSince(at);
  return html`<span>${left > 0 ? `, in ${duration(left)}` : ", passed"}</span>`;
}

/** The panel of the subscription `id`; `listed` is its row, shown until the node answers. `changed` after an action. */
export function SubscriptionPanel({ id, names, listed, close, take, changed }) {
  const from = listed?.at !== undefined ? [listed.at] : names;
  const { item: found, gone, error, refresh, leave } = useOne("subscription", id, from);
  const item = found ?? listed;
  const again = async () => {
    await refresh();
    changed();
  };
  const ended = () => {
    leave();
    changed();
  };
  const heading = item ? html`<${Text}>${shortConsumer(item)}<//>` : "Subscription";
  return html`<${SidePanel} label="Selected subscription" back="Subscriptions" close=${close} take=${take} heading=${heading}
      sub=${item && html`<${StateLine} item=${item} gone=${gone} />`}>
    ${!item && !gone && !error && html`<${Loading} rows=${4} />`}
    ${!item && gone && html`<${Notice} kind="empty">There is no subscription ${visible(id)} on the nodes in scope. It has ended, or its node does not answer.<//>`}
    ${error && html`<p class="note bad" role="alert">${wordsOf(error)}</p>`}
    ${item && html`
      ${gone && html`<p class="note" role="status" data-testid="gone">This subscription has ended. These are its last figures.</p>`}
      <${Actions} item=${item} gone=${gone} refresh=${again} ended=${ended} />
      ${found && html`<${WaitingChart} item=${found} />`}
      ${!gone && html`<${Trouble} item=${item} />`}
      <${Fields} item=${item} />`}
  <//>`;
}
