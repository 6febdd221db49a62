// Subscriptions: who is behind, and why. The worst first, over all nodes in scope, with pull points as a filter.
import { html, useEffect, useMemo, useRef, useState } from "../html.js";
import { change } from "../address.js";
import { counted } from "../format.js";
import { markReady } from "../state.js";
import { Field } from "../parts/controls.js";
import { ListState, Loading } from "../parts/lists.js";
import { announce } from "../parts/toasts.js";
import { Chips, Head, Selected } from "../subscriptions/list_head.js";
import { NoNode, sumOf, useListedNodes } from "../subscriptions/listed_nodes.js";
import { PullPointPanel, PullPointTable } from "../subscriptions/pull_points.js";
import { useRowHeight, useRows, useSelection } from "../subscriptions/rows.js";
import { usePhone } from "../parts/media.js";
import { DEFAULT_SORT, usePullPoints, useQuestion, useSubscriptions } from "../subscriptions/subscription_lists.js";
import { SubscriptionPanel } from "../subscriptions/subscription_panel.js";
import { SubscriptionTable } from "../subscriptions/subscription_table.js";
import { TopicFilter } from "../subscriptions/topic_filter.js";

const EMPTY = `No subscriptions. One is here when a consumer subscribes: a client by SOAP, a web service by POST
  /subscriptions, or hpwsn listen.`;
const EMPTY_POINTS = `No pull points. One is here when a client creates it, to fetch its notifications instead of getting
  them pushed.`;

const changeSort = (next) => change({ sort: next === DEFAULT_SORT ? undefined : next }, { replace: true });
const changeText = (text) => change({ q: text || undefined }, { replace: true });
const clearFilters = () => change({ q: undefined, topic: undefined, state: undefined, id: undefined });

/** Opening and closing the panel; it takes the focus if a key opened it, or on a phone, and gives it back. */
function usePanel(items, id) {
  const [byKey, setByKey] = useState(false);
  const phone = usePhone();
  const opener = useRef(null);
  const open = (index, withKey) => {
    opener.current = items[index].key;
    setByKey(withKey);
    change({ id: items[index].id });
  };
  const close = (rows) => {
    const key = opener.current ?? items.find((item) => item.id === id)?.key;
    change({ id: undefined });
    if (key) requestAnimationFrame(() => rows.focusRow(key));
  };
  return { open, close, take: (byKey || phone) && id };
}

function Filters({ question, found, pulled, alive, items, selection, changed }) {
  const { q, topic, points } = question;
  return html`<div class="tools scroll" role="group" aria-label="Filters">
    <span class="wide-only find-subscriptions"><${Field} icon="search" label="Consumer, topic, filter or id" value=${q} testid="subscription-search"
      onText=${changeText} onClear=${() => changeText("")} /></span>
    <${Chips} question=${question} found=${found} points=${points ? pulled.list.total : sumOf(alive, "pull_points")} />
    ${!points && html`<${TopicFilter} topic=${topic} onTopic=${(chosen) => change({ topic: chosen })} />
      <${Selected} items=${items} selection=${selection} changed=${changed} />`}
  </div>`;
}

function List({ question, list, items, names, absent, ready, filtered, height, rows, selection }) {
  const { points, sort, id } = question;
  const Table = points ? PullPointTable : SubscriptionTable;
  return html`<section class="panel" aria-label=${points ? "List of pull points" : "List of subscriptions"}>
    ${names?.length === 0 ? html`<${NoNode} nodes=${absent} />`
      : ready ? html`<${ListState} list=${{ ...list, items }} filtered=${filtered} onClear=${clearFilters} empty=${points ? EMPTY_POINTS : EMPTY} />`
        : html`<${Loading} />`}
    ${items.length > 0 && list.error?.status !== 403 && html`<${Table} items=${items} total=${list.total ?? items.length} height=${height} rows=${rows}
      openId=${id} onEnd=${list.more} stale=${list.stale} sort=${sort} onSort=${changeSort} selection=${selection} />`}
  </section>`;
}

export default function Subscriptions() {
  const question = useQuestion();
  const { q, state, topic, id, points } = question;
  const { names, absent, alive } = useListedNodes();
  const found = useSubscriptions(question, names);
  const pulled = usePullPoints(question, names);
  const { list, items } = points ? pulled : found;
  const height = useRowHeight();
  const keys = useMemo(() => items.map((item) => item.key), [items]);
  const selection = useSelection(keys);
  const panel = usePanel(items, id);
  const rows = useRows({ keys, height, open: panel.open, select: points ? null : selection.toggle });

  const ready = names !== undefined && !list.loading;
  useEffect(() => {
    if (!ready) return;
    markReady();
    announce(`${counted(list.total ?? 0, points ? "pull point" : "subscription")} listed`);
  }, [ready, q, topic, state]);

  const filtered = Boolean(q || topic || (state && !points));
  const listed = items.find((item) => item.id === id);
  const Panel = points ? PullPointPanel : SubscriptionPanel;
  return html`
    <${Head} filtered=${filtered || points} all=${found.all} alive=${alive} absent=${absent} />
    <${Filters} ...${{ question, found, pulled, alive, items, selection }} changed=${list.refresh} />
    <div class=${id ? "split slim open" : "split"}>
      <${List} ...${{ question, list, items, names, absent, ready, filtered, height, rows, selection }} />
      ${id && names !== undefined && html`<${Panel} key=${id} id=${id} names=${names} listed=${listed} take=${panel.take}
        close=${() => panel.close(rows)} changed=${list.refresh} />`}
    </div>`;
}
