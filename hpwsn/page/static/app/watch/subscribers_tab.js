// The subscriptions that get messages of a topic, over all nodes in scope, the longest queue first.
import { html, useMemo } from "../html.js";
import { go } from "../address.js";
import { count, counted, figure } from "../format.js";
import { useScope } from "../state.js";
import { State, Text } from "../parts/controls.js";
import { ListState, VirtualRows, byField, useList } from "../parts/lists.js";
import { KINDS, STATES, TopicsAndFilter, detailOf, shortConsumer } from "../subscriptions/words.js";

const ROW = 73;
const SORT = "-waiting";
const COLUMNS = 3;
const BEHIND = ["retrying", "paused", "expired"];

function Row({ item, index, several }) {
  const { shape, word } = STATES[item.state];
  const open = (event) => {
    event.stopPropagation();
    go("subscriptions", { id: item.id, q: item.id });
  };
  return html`<tr class="opens" data-testid="subscriber" data-id=${item.id} aria-rowindex=${index + 2} onClick=${open}>
    <td class="clip"><button type="button" class="subscriber" title=${item.consumer} onClick=${open}><${Text}>${shortConsumer(item)}<//></button>
      <div class="subscriber-more"><${State} shape=${shape} detail=${detailOf(item)}>${word}<//>
        <span class="dim clip">${KINDS[item.kind] ?? item.kind}${several && html` · <${Text}>${item.node}<//>`}</span></div>
      <div class="subscriber-more"><span class="dim clip"><${TopicsAndFilter} item=${item} /></span></div></td>
    <td class="number">${count(item.waiting)}</td>
    <td class="number">${figure(item.rate)}</td>
  </tr>`;
}

/** How many subscriptions there are, and how many of them get nothing now. */
function Told({ topic, total, counts }) {
  const behind = BEHIND.filter((each) => counts[each]).map((each) => `${count(counts[each])} ${each}`);
  return html`<p class="dim subscribers-told">${counted(total, "subscription")} ${total === 1 ? "gets" : "get"} messages of${" "}
    <${Text}>${topic}<//>${behind.length > 0 && `: ${behind.join(", ")}`}. Open streams and watching pages are not listed.</p>`;
}

/** The tab. Streams and WebSockets are not among them: the API does not list them. */
export function SubscribersTab({ topic }) {
  const { nodes, alive } = useScope();
  const names = useMemo(() => alive.map((node) => node.name), [alive.map((node) => node.name).join("\n")]);
  const query = { topic, sort: SORT };
  const list = useList({ path: "subscriptions", query, nodes: names.length ? names : null, order: byField(SORT) });
  const { items, total, counts } = list;
  const dead = nodes.filter((node) => node.state === "dead").map((node) => node.name);
  const row = (item, index) => html`<${Row} key=${`${item.at} ${item.id}`} item=${item} index=${index} several=${names.length > 1} />`;
  const empty = html`<p><b>No subscription gets messages of <${Text}>${topic}<//>.</b><br />
    Subscribe a program to it, or to a topic above it: <code>hpwsn listen</code></p>`;
  return html`
    ${total > 0 && html`<${Told} topic=${topic} total=${total} counts=${counts} />`}
    <${ListState} list=${list} dead=${dead} empty=${empty} />
    ${items.length > 0 && html`<div class="wrap subscribers">
      <table aria-label="Subscriptions of this topic" aria-rowcount=${total + 1}>
        <thead><tr><th scope="col">Consumer</th><th scope="col" class="number">Waiting</th>
          <th scope="col" class="number">Sent /s</th></tr></thead>
        <${VirtualRows} items=${items} height=${ROW} columns=${COLUMNS} onEnd=${list.more} row=${row} />
      </table></div>`}`;
}
