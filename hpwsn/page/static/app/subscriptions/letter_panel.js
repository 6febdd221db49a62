// The side panel of a dead letter: payload, replay, drop, and all its fields.
import { html, useEffect, useRef, useState } from "../html.js";
import { href } from "../address.js";
import { curl } from "../api.js";
import { clock, count, visible } from "../format.js";
import { useMay, wordsOf } from "../state.js";
import { Ago, Button, Clock, Menu, State, Text, copyText } from "../parts/controls.js";
import { Loading, Notice } from "../parts/lists.js";
import { askToDrop, oneOutcome, replay, requestsFor } from "./letter_actions.js";
import { useOne } from "./one_item.js";
import { Payload } from "./payload.js";
import { SidePanel } from "./side_panel.js";

function Fields({ letter }) {
  const row = (name, value) => html`<dt>${name}</dt><dd>${value}</dd>`;
  return html`<dl class="details">
    ${row("Reason", html`<${Text}>${letter.reason}<//>`)}
    ${row("Consumer", html`<${Text} mono>${letter.consumer}<//>`)}
    ${row("Subscription", html`<a class="mono" href=${href("subscriptions", { q: letter.subscription, id: letter.subscription })}>${letter.subscription}</a>`)}
    ${row("Topic", letter.topic === null ? html`<span class="dim">none</span>` : html`<a href=${href("topics", { topic: letter.topic })}><${Text}>${letter.topic}<//></a>`)}
    ${row("Published", html`<${Clock} at=${letter.published} />, <${Ago} at=${letter.published} />`)}
    ${row("Given up", html`<${Clock} at=${letter.time} />, <${Ago} at=${letter.time} />`)}
    ${row("Offset", count(letter.offset))}
    ${row("Id", letter.id)}
    ${letter.at && row("Node", html`<${Text}>${letter.at}<//>`)}
  </dl>`;
}

function Actions({ letter, gone, after }) {
  const may = useMay("operate");
  const [busy, setBusy] = useState(false);
  const selection = { ids: [letter.id] };
  const requests = requestsFor(selection, letter.at);
  const path = `deadletters/${letter.id}`;
  const copy = (label, { method, path: to, ...options }) => ({
    label, icon: "copy", run: () => copyText(curl(method, to, options), "Copied as curl"),
  });
  async function again() {
    setBusy(true);
    const outcome = await replay(selection, letter.at, oneOutcome);
    setBusy(false);
    after({ ...outcome, at: Date.now() / 1000 });
  }
  async function drop() {
    if (!await askToDrop(selection, letter.at, 1)) return;
    after({ words: "Dropped. It is not a dead letter any more.", gone: true, at: Date.now() / 1000 });
  }
  return html`<div class="tools" role="group" aria-label="Actions">
    <${Button} kind="first" icon="send" testid="replay" disabled=${!may || gone || busy} onClick=${again}>${busy ? "Replaying" : "Replay"}<//>
    <${Button} kind="risk" testid="drop" disabled=${!may || gone || busy} onClick=${drop}>Drop…<//>
    <${Menu} label="Copy as curl" items=${[copy("Copy “Show” as curl", { method: "GET", path, node: letter.at }),
      copy("Copy “Replay” as curl", requests.replay), copy("Copy “Drop” as curl", requests.drop)]} />
  </div>`;
}

/** The panel of the letter `id` at one of the nodes `names`; `listed` says whether its row is still in the list. */
export function LetterPanel({ id, names, listed, close, take, changed }) {
  const { item: letter, gone, error, refresh, leave } = useOne("deadLetter", id, names, 0);
  const [outcome, setOutcome] = useState(null);
  const was = useRef(false);
  useEffect(() => {
    // The letter itself is read once: its payload may be large. Its row tells that it is gone.
    if (was.current && !listed) refresh();
    was.current = listed;
  }, [listed]);
  async function after(found) {
    setOutcome(found);
    if (found.gone) leave();
    else await refresh();
    changed();
  }
  const sub = letter && (gone ? html`<${State} shape="expired">Not a dead letter any more<//>`
    : html`<${State} shape="dead">Given up <${Ago} at=${letter.time} /><//>`);
  return html`<${SidePanel} label="Selected dead letter" back="Dead letters" close=${close} take=${take}
      heading=${letter ? html`<${Text}>${letter.topic ?? "Dead letter without a topic"}<//>` : `Dead letter ${visible(id)}`} sub=${sub}>
    ${!letter && !gone && !error && html`<${Loading} rows=${4} />`}
    ${!letter && gone && html`<${Notice} kind="empty">There is no dead letter ${visible(id)} on the nodes in scope. It was replayed, dropped or removed by age.<//>`}
    ${error && html`<p class="note bad" role="alert"><span>${wordsOf(error)}</span><${Button} onClick=${refresh}>Try again<//></p>`}
    ${letter && html`<${Actions} letter=${letter} gone=${gone} after=${after} />
      ${outcome && html`<p class=${outcome.bad ? "note bad" : "note good"} role="status" data-testid="outcome">${clock(outcome.at)}: ${outcome.words}</p>`}
      ${gone && !outcome?.gone && html`<p class="note" role="status" data-testid="gone">This is not a dead letter any more: it was replayed, dropped or removed by age.</p>`}
      <${Payload} letter=${letter} /><${Fields} letter=${letter} />`}
  <//>`;
}
