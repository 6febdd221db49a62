// The requests of a service: subscriptions and open streams that get its events, with their filters.
import { html } from "../html.js";
import { href } from "../address.js";
import { count, counted, oneLine } from "../format.js";
import { Tag, Text } from "../parts/controls.js";
import { Notice } from "../parts/lists.js";

function Request({ request, node }) {
  const { kind, id, client, topics = [], filter = [] } = request;
  return html`<li data-testid="request">
    <p>${id ? html`<a href=${href("subscriptions", { id, q: id, scope: node && `node:${node}` })}>Subscription</a>` : html`<${Tag}>${kind}<//>`}
      ${" "}<${Text}>${client}<//></p>
    <p class="dim"><${Text}>${topics.join(", ")}<//>
      ${filter.map((each) => html` <${Text} key=${each} mono>${each}<//>`)}</p></li>`;
}

export function Requests({ item }) {
  const { total = 0, items = [] } = item.requests ?? {};
  if (!total) {
    return html`<${Notice} kind="empty">Nobody reads this service now. Subscriptions and open streams on its
      topic are here,
      for example of <code>hpwsn listen ${oneLine(item.topic)}</code>.<//>`;
  }
  const listed = total > items.length && `, the first ${count(items.length)} of them`;
  return html`<p class="dim">${counted(total, "request")} in progress${listed}</p>
    <ul class="requests">${items.map((request, index) => html`<${Request} key=${request.id ?? index}
      request=${request} node=${item.at} />`)}</ul>`;
}
