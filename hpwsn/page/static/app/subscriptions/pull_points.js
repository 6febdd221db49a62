// Pull points: their table, and the side panel of one.
import { classes, html } from "../html.js";
import { href } from "../address.js";
import { count, visible } from "../format.js";
import { useMay, wordsOf } from "../state.js";
import { Ago, Button, Clock, CurlButton, State, Text } from "../parts/controls.js";
import { Loading, Notice, VirtualRows } from "../parts/lists.js";
import { askToDestroy } from "./actions.js";
import { useOne } from "./one_item.js";
import { SidePanel } from "./side_panel.js";
import { WaitingChart } from "./waiting_chart.js";

const COLUMNS = 6;

/** A pull point by its name, or by the start of its id. */
const nameOf = (point) => point.name || point.id.slice(0, 8);

/** `rows` are the hooks of rows.js, `openId` the id of the pull point in the panel. */
export function PullPointTable({ items, total, height, rows, openId, onEnd, stale }) {
  return html`<div class=${classes("wrap", stale && "stale")}>
    <table class="cards pull-points" role="grid" aria-label="Pull points" aria-rowcount=${total + 1} ref=${rows.table} onKeyDown=${rows.onKeyDown}>
      <thead><tr aria-rowindex="1"><th scope="col">Pull point</th><th scope="col">Created</th><th scope="col" class="number">Waiting</th>
        <th scope="col" class="number">Oldest</th><th scope="col">Last read</th><th scope="col">Node</th></tr></thead>
      <${VirtualRows} items=${items} height=${height} columns=${COLUMNS} onEnd=${onEnd} row=${(point, index) => html`
        <tr key=${point.key} class="opens" data-testid="pullpoint" data-id=${point.id} ...${rows.row(point.key, index)}
          aria-selected=${String(point.id === openId)} aria-current=${point.id === openId ? "true" : null}>
          <td class="c1 clip">${point.name ? html`<${Text}>${point.name}<//>` : html`<span class="mono">${point.id}</span>`}</td>
          <td class="c3"><${Ago} at=${point.created} /></td>
          <td class="number c4" data-label="waiting">${count(point.waiting)}</td>
          <td class="number">${point.oldest ? html`<${Ago} at=${point.oldest} bare />` : "–"}</td>
          <td class="c2">${point.last_read ? html`<${Ago} at=${point.last_read} />` : html`<span class="dim">never read</span>`}</td>
          <td><${Text}>${point.at ?? ""}<//></td></tr>`} />
    </table>
  </div>`;
}

function Fields({ point }) {
  const row = (name, value) => html`<dt>${name}</dt><dd>${value}</dd>`;
  return html`<dl class="details">
    ${row("Id", html`<span class="mono">${point.id}</span>`)}
    ${point.name && row("Name", html`<${Text}>${point.name}<//>`)}
    ${row("Address", html`<${Text} mono>${point.reference}<//>`)}
    ${point.at && row("Node", html`<${Text}>${point.at}<//>`)}
    ${row("Waiting", count(point.waiting))}
    ${row("Oldest", point.oldest ? html`<${Clock} at=${point.oldest} />, <${Ago} at=${point.oldest} />` : "–")}
    ${row("Last read", html`<${Ago} at=${point.last_read} />`)}
    ${row("Created", html`<${Clock} at=${point.created} />, <${Ago} at=${point.created} />`)}
    ${row("Ends", point.terminates ? html`<${Clock} at=${point.terminates} />` : "never")}
    ${row("Subscriptions", point.subscriptions.length
      ? point.subscriptions.slice(0, 50).map((id) => html`<div key=${id}><a class="mono" href=${href("subscriptions", { id })}>${id}</a></div>`)
      : html`<span class="dim">none delivers into it</span>`)}
  </dl>`;
}

/** The panel of the pull point `id`; `listed` is its row. `changed` is called after an action. */
export function PullPointPanel({ id, names, listed, close, take, changed }) {
  const mine = useMay("subscribe");
  const operator = useMay("operate");
  const from = listed?.at !== undefined ? [listed.at] : names;
  const { item: found, gone, error, leave } = useOne("pullPoint", id, from);
  const point = found ?? listed;
  return html`<${SidePanel} label="Selected pull point" back="Pull points" close=${close} take=${take}
      heading=${point ? html`Pull point <${Text}>${nameOf(point)}<//>` : "Pull point"}
      sub=${point && (gone ? html`<${State} shape="expired">Destroyed<//>` : html`<p>${point.last_read ? html`read <${Ago} at=${point.last_read} />` : "never read"}</p>`)}>
    ${!point && !gone && !error && html`<${Loading} rows=${4} />`}
    ${!point && gone && html`<${Notice} kind="empty">There is no pull point ${visible(id)} on the nodes in scope. It was destroyed, or its node does not answer.<//>`}
    ${error && html`<p class="note bad" role="alert">${wordsOf(error)}</p>`}
    ${point && html`
      ${gone && html`<p class="note" role="status" data-testid="gone">This pull point was destroyed. These are its last figures.</p>`}
      <div class="tools" role="group" aria-label="Actions">
        <${Button} kind="risk" testid="end" disabled=${gone || !(mine || operator)} onClick=${async () => {
          if (await askToDestroy(point)) {
            leave();
            changed();
          }
        }}>Destroy…<//>
        <${CurlButton} request=${{ path: `pullpoints/${encodeURIComponent(id)}`, node: point.at }} />
      </div>
      ${found && html`<${WaitingChart} item=${found} />`}
      <${Fields} point=${point} />`}
  <//>`;
}
