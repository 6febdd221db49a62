// The topics with the most messages a second: as the stream tells them, with subscribers asked now and then.
import { html, useEffect, useState } from "../html.js";
import { href } from "../address.js";
import { get } from "../api.js";
import { counted, figure } from "../format.js";
import { state, useShared, wordsOf } from "../state.js";
import { Text } from "../parts/controls.js";
import { Loading, Notice } from "../parts/lists.js";

const EVERY = 4000;
const SHOWN = 6;

/** The busiest topics of a node as {items, error}; null until they are known. */
function useBusiest(node) {
  const [found, setFound] = useState(null);
  const revision = useShared((shared) => shared.live.topics?.revision);
  const total = useShared((shared) => shared.live.subscriptions?.total);
  useEffect(() => {
    let stopped = false;
    async function look() {
      if (document.hidden || state.get().paused || !node) return;
      try {
        const { items } = await get("topics", { node, query: { sort: "-rate", limit: 2 * SHOWN } });
        if (!stopped) setFound({ node, items });
      } catch (error) {
        if (!stopped) setFound((before) => ({ node, items: before?.node === node ? before.items : [], error }));
      }
    }
    look();
    const timer = setInterval(look, EVERY);
    return () => {
      stopped = true;
      clearInterval(timer);
    };
  }, [node, revision, total]);
  return found?.node === node ? found : null;
}

/** The panel for a node. */
export function BusiestTopics({ node }) {
  const found = useBusiest(node);
  const live = useShared((shared) => (shared.session?.node === node ? shared.live.topics?.busiest : undefined));
  const subscribers = new Map((found?.items ?? []).map((item) => [item.topic, item.subscribers]));
  const rates = live ?? (found?.items ?? []).filter((item) => item.rate > 0);
  const items = rates.slice(0, SHOWN);
  const most = Math.max(...items.map((item) => item.rate));
  const many = useShared((shared) => (shared.cluster?.clusters ?? []).some((each) => each.nodes.length > 1));
  return html`<section class="panel busiest" aria-labelledby="busiest-title">
    <header><h2 id="busiest-title">Busiest topics</h2>${many && node && html`<span class="dim">at <${Text}>${node}<//></span>`}<a href=${href("topics")}>All topics</a></header>
    ${!found && !live ? html`<${Loading} rows=${3} />` : found?.error && !live ? html`<p class="note bad" role="alert">${wordsOf(found.error)}</p>`
      : !items.length ? html`<${Notice} kind="empty">No traffic in the last 10 s. Topics are listed here while something is published on them.<//>`
        : html`<table><tbody>${items.map((item) => html`<tr key=${item.topic}>
          <td class="clip"><a href=${href("topics", { topic: item.topic })}><${Text}>${item.topic}<//></a></td>
          <td class="number rate">${figure(item.rate)} /s</td>
          <td class="share" aria-hidden="true"><i style=${{ width: `${Math.max(1, 100 * item.rate / most)}%` }}></i></td>
          <td class="number dim">${subscribers.has(item.topic) ? counted(subscribers.get(item.topic), "subscriber") : ""}</td></tr>`)}</tbody></table>`}
  </section>`;
}
