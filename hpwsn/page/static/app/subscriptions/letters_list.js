// The dead letters of one group, the oldest first, with what can be done with all of them.
import { classes, html, useMemo, useState } from "../html.js";
import { href } from "../address.js";
import { curl } from "../api.js";
import { count, counted } from "../format.js";
import { useMay } from "../state.js";
import { Ago, Button, Clock, Menu, Text, copyText } from "../parts/controls.js";
import { ListState, VirtualRows, useList } from "../parts/lists.js";
import { askToDrop, askToReplayGroup, requestsFor } from "./letter_actions.js";
import { useRowHeight, useRows } from "./rows.js";

const COLUMNS = 5;
const NONE = [];

/** The dead letters of a group as a list of the API; none without a group. */
export function useLetters(group) {
  const query = group && { subscription: group.subscription, reason: group.reason };
  const list = useList({ path: "deadletters", query, nodes: group ? [group.at] : NONE });
  const items = useMemo(() => list.items.map((item) => ({ ...item, key: String(item.id) })), [list.items]);
  return { ...list, items, stale: Boolean(list.error) };
}

function GroupActions({ group, changed, told }) {
  const may = useMay("operate");
  const requests = requestsFor({ subscription: group.subscription, reason: group.reason }, group.at);
  const copy = (label, { method, path, ...options }) => ({
    label, icon: "copy", run: () => copyText(curl(method, path, options), "Copied as curl"),
  });
  const replay = async () => {
    const outcome = await askToReplayGroup(group);
    if (outcome) told(outcome);
    changed();
  };
  const drop = async () => {
    const found = await askToDrop({ subscription: group.subscription, reason: group.reason }, group.at, group.count);
    if (found) told({ words: `Dropped ${counted(found.dropped, "dead letter")}.` });
    changed();
  };
  return html`<div class="tools" role="group" aria-label="Actions on the group">
    <${Button} icon="send" testid="replay-group" disabled=${!may || !group.count} onClick=${replay}>Replay all…<//>
    <${Button} kind="risk" testid="drop-group" disabled=${!may || !group.count} onClick=${drop}>Drop all…<//>
    <${Menu} label="Copy as curl" items=${[copy("Copy “Replay all” as curl", requests.replay), copy("Copy “Drop all” as curl", requests.drop)]} />
  </div>`;
}

/** `group` is the open group, `openId` the id of the letter in the panel; `open(letter, byKey)` opens one. */
export function LettersList({ group, letters, openId, open, close, changed, tableRef }) {
  const [outcome, setOutcome] = useState(null);
  const height = useRowHeight();
  const { items, total } = letters;
  const keys = useMemo(() => items.map((item) => item.key), [items]);
  const rows = useRows({ keys, height, open: (index, byKey) => open(items[index], byKey) });
  tableRef.current = rows;
  return html`<section class="panel letters" aria-label="Dead letters of the group">
    <header><div class="letters-head"><h2><${Text}>${group.reason}<//></h2>
      <p>${counted(total ?? group.count, "dead letter")} for <${Text}>${group.consumer}<//>, <a href=${href("subscriptions", { q: group.subscription, id: group.subscription })}>its subscription</a></p></div>
      <${GroupActions} group=${group} changed=${changed} told=${setOutcome} />
      <${Button} kind="bare" icon="close" label="Close the group" testid="close-group" onClick=${close} /></header>
    ${outcome && html`<p class=${classes("note", outcome.bad ? "bad" : "good")} role="status" data-testid="group-outcome"><span>${outcome.words}</span>
      <${Button} kind="bare" icon="close" label="Dismiss" onClick=${() => setOutcome(null)} /></p>`}
    <${ListState} list=${letters} filtered=${false} empty="No dead letters are left in this group." />
    ${items.length > 0 && html`<div class=${classes("wrap", letters.stale && "stale")}>
      <table class="cards letters-table" role="grid" aria-label="Dead letters" aria-rowcount=${(total ?? items.length) + 1} ref=${rows.table} onKeyDown=${rows.onKeyDown}>
        <thead><tr aria-rowindex="1"><th scope="col">Topic</th><th scope="col">Published</th><th scope="col">Given up</th>
          <th scope="col" class="number">Offset</th><th scope="col" class="number">Id</th></tr></thead>
        <${VirtualRows} items=${items} height=${height} columns=${COLUMNS} onEnd=${letters.more} row=${(letter, index) => html`
          <tr key=${letter.key} class="opens" data-testid="deadletter" data-id=${letter.id} ...${rows.row(letter.key, index)}
            aria-selected=${String(letter.key === openId)} aria-current=${letter.key === openId ? "true" : null}>
            <td class="c1 clip topic">${letter.topic === null ? html`<span class="dim">no topic</span>` : html`<${Text}>${letter.topic}<//>`}</td>
            <td class="c3"><${Clock} at=${letter.published} digits=${1} /></td>
            <td class="c2"><${Ago} at=${letter.time} /></td>
            <td class="number">${count(letter.offset)}</td>
            <td class="number c4" data-label="id">${letter.id}</td></tr>`} />
      </table>
    </div>`}
  </section>`;
}
