// The subscriptions that get messages of a topic, over all nodes in scope, the longest queue first.
import { html, useMemo } from "../html.js";
import { go } from "../address.js";
import { count, counted, figure } from "../format.js";
import { useScope } from "../state.js";
import { State, Text } from "../parts/controls.js";
import { ListState, VirtualRows, byField, useList } from "../parts/lists.js";
import { KINDS, STATES, detailOf, filterOf, shortConsumer, topicsOf } from "../subscriptions/words.js";

const ROW = 53;
const SORT = "-waiting";
const COLUMNS = 3;
const BEHIND = ["retrying", "paused", "expired"];

function Row({ item, index }) {
  const { shape, word } = STATES[item.state];
  const open = () => go("subscriptions", { id: item.id, q: item.id });
  return html`<tr class="opens" data-testid="subscriber" data-id=${item.id} aria-rowindex=${index + 2} onClick=${open}>
    <td class="clip"><button type="button" class="link subscriber" title=${item.consumer} onClick=${(event) => { event.stopPropagation(); open(); }}><${Text}>${shortConsumer(item)}<//></button>
      <div class="clip subscriber-more"><${State} shape=${shape} detail=${detailOf(item)}>${word}<//>
        <span class="dim">${KINDS[item.kind] ?? item.kind} · <${Text}>${topicsOf(item)}<//></span>
        ${filterOf(item) && html`<${Text} mono>${filterOf(item)}<//>`}</div></td>
    <td class="number">${count(item.waiting)}</td>
    <td class="number">${figure(item.rate)}</td>
  </tr>`;
}

/** The tab. Streams and WebSockets are not among them: the API does not list them. */
export function SubscribersTab({ topic }) {
  const { nodes, alive } = useScope();
  const names = useMemo(() => alive.map((node) => node.name), [alive.map((node) => node.name).join("\n")]);
  const query = { topic, sort: SORT };
  const list = useList({ path: "subscriptions", query, nodes: names.length ? names : null, order: byField(SORT) });
  const { items, total, counts } = list;
  const dead = nodes.filter((node) => node.state === "dead").map((node) => node.name);
  const behind = BEHIND.filter((each) => counts[each]).map((each) => `${count(counts[each])} ${each}`);
  return html`
    ${total > 0 && html`<p class="dim subscribers-told">${counted(total, "subscription")} ${total === 1 ? "gets" : "get"} messages of <${Text}>${topic}<//>${behind.length > 0 && `: ${behind.join(", ")}`}.
      Open streams and watching pages are not listed.</p>`}
    <${ListState} list=${list} dead=${dead} empty=${html`<p><b>No subscription gets messages of <${Text}>${topic}<//>.</b><br />Subscribe a program to it, or to a topic above it: <code>hpwsn listen</code></p>`} />
    ${items.length > 0 && html`<div class="wrap subscribers"><table aria-label="Subscriptions of this topic" aria-rowcount=${total + 1}>
      <thead><tr><th scope="col">Consumer</th><th scope="col" class="number">Waiting</th><th scope="col" class="number">Sent /s</th></tr></thead>
      <${VirtualRows} items=${items} height=${ROW} columns=${COLUMNS} onEnd=${list.more} row=${(item, index) => html`<${Row} key=${`${item.at} ${item.id}`} item=${item} index=${index} />`} />
    </table></div>`}`;
}
