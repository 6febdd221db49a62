// The topics with the most messages a second: as the stream tells them, with subscribers asked now and then.
import { html, useEffect, useState } from "../html.js";
import { href } from "../address.js";
import { get } from "../api.js";
import { counted, figure } from "../format.js";
import { state, useScope, useShared, wordsOf } from "../state.js";
import { Text } from "../parts/controls.js";
import { Loading, Notice } from "../parts/lists.js";

const EVERY = 4000;
/** Milliseconds between two questions where several nodes are asked, and how many of them are. */
const EVERY_OF_SEVERAL = 8000;
const MOST = 8;
const SHOWN = 6;

/** Topics of several nodes: the rate is that at the node with most, since messages are routed between nodes. */
function joined(answers) {
  const topics = new Map();
  for (const { topic, rate, subscribers } of answers.flatMap((answer) => answer.items)) {
    const before = topics.get(topic) ?? { topic, rate: 0, subscribers: 0 };
    topics.set(topic, { topic, rate: Math.max(rate, before.rate), subscribers: subscribers + before.subscribers });
  }
  return [...topics.values()].sort((left, right) => right.rate - left.rate);
}

/** The busiest topics of some nodes as {items, error}; null until they are known. */
function useBusiest(nodes) {
  const [found, setFound] = useState(null);
  const revision = useShared((shared) => shared.live.topics?.revision);
  const total = useShared((shared) => shared.live.subscriptions?.total);
  const key = nodes.join("\n");
  useEffect(() => {
    let stopped = false;
    const query = { sort: "-rate", limit: 2 * SHOWN };
    async function look() {
      if (document.hidden || state.get().paused || !nodes.length) return;
      const asked = await Promise.allSettled(nodes.map((node) => get("topics", { node, query })));
      if (stopped) return;
      const answers = asked.flatMap(({ value }) => value ?? []);
      // Where no node answers, what they told before stays.
      setFound((before) => (answers.length ? { key, items: joined(answers) }
        : { key, items: before?.key === key ? before.items : [], error: asked[0].reason }));
    }
    look();
    const timer = setInterval(look, nodes.length > 1 ? EVERY_OF_SEVERAL : EVERY);
    return () => {
      stopped = true;
      clearInterval(timer);
    };
  }, [key, revision, total]);
  return found?.key === key ? found : null;
}

/** The panel for the nodes in scope. */
export function BusiestTopics() {
  const { nodes, alive } = useScope();
  const names = alive.map((node) => node.name).slice(0, MOST);
  const found = useBusiest(names);
  const only = names.length === 1 ? names[0] : null;
  const live = useShared((shared) => (only && shared.session?.node === only ? shared.live.topics?.busiest : undefined));
  const subscribers = new Map((found?.items ?? []).map((item) => [item.topic, item.subscribers]));
  const rates = live ?? (found?.items ?? []).filter((item) => item.rate > 0);
  const items = rates.slice(0, SHOWN);
  const most = Math.max(...items.map((item) => item.rate));
  const several = nodes.length > 1;
  return html`<section class="panel busiest" aria-labelledby="busiest-title">
    <header><h2 id="busiest-title">Busiest topics</h2>${several && html`<span class="dim">at the node with most of it</span>`}<a href=${href("topics")}>All topics</a></header>
    ${!found && !live ? html`<${Loading} rows=${3} />` : found?.error && !live ? html`<p class="note bad" role="alert">${wordsOf(found.error)}</p>`
      : !items.length ? html`<${Notice} kind="empty">No traffic in the last 10 s. Topics are listed here while something is published on them.<//>`
        : html`<table><tbody>${items.map((item) => html`<tr key=${item.topic}>
          <td class="clip"><a href=${href("topics", { topic: item.topic })}><${Text}>${item.topic}<//></a></td>
          <td class="number rate">${figure(item.rate)} /s</td>
          <td class="share" aria-hidden="true"><i style=${{ width: `${Math.max(1, 100 * item.rate / most)}%` }}></i></td>
          <td class="number dim">${subscribers.has(item.topic) ? counted(subscribers.get(item.topic), "subscriber") : ""}</td></tr>`)}</tbody></table>`}
  </section>`;
}
