// Dead letters: what was lost, and whether it can be sent again. Groups by subscription and reason, then letters.
import { html, useEffect, useMemo, useRef, useState } from "../html.js";
import { change, useAddress } from "../address.js";
import { count, counted, oneLine } from "../format.js";
import { markReady } from "../state.js";
import { Field, Menu } from "../parts/controls.js";
import { ListState, Loading, useList } from "../parts/lists.js";
import { Icon } from "../icons.js";
import { GroupTable, groupKey, groupOrder } from "../subscriptions/letter_groups.js";
import { LetterPanel } from "../subscriptions/letter_panel.js";
import { LettersList, useLetters } from "../subscriptions/letters_list.js";
import { Absent, NoNode, useListedNodes } from "../subscriptions/listed_nodes.js";
import { useKept, useRowHeight, useRows } from "../subscriptions/rows.js";
import { usePhone } from "../parts/media.js";

const DEFAULT_SORT = "-count";
const NONE = [];
const EMPTY = `No dead letters. A notification comes here when its consumer has not taken it within the time or the number of
  attempts for retries (24 h by default), or when too many waited for it.`;

const changeSort = (next) => change({ sort: next === DEFAULT_SORT ? undefined : next }, { replace: true });
const changeText = (text) => change({ q: text || undefined }, { replace: true });
const clearFilters = () => change({ q: undefined, subscription: undefined, reason: undefined });

/** All groups of the nodes, and those that the filters of the address leave. */
function useGroups({ q, subscription, reason, sort }, names) {
  const order = useMemo(() => groupOrder(sort), [sort]);
  const nodes = names === undefined ? NONE : names;
  const asked = useList({ path: "deadletters/groups", query: { sort }, nodes, order });
  const list = useKept(asked, names !== undefined);
  const keyOf = (group) => `${group.at ?? ""} ${groupKey(group)}`;
  const all = useMemo(() => list.items.map((group) => ({ ...group, key: keyOf(group) })), [list.items]);
  const wanted = q.trim().toLowerCase();
  const items = useMemo(() => all.filter((group) => (
    (!subscription || group.subscription === subscription) && (!reason || group.reason === reason)
    && (!wanted || `${group.reason}\n${group.consumer}\n${group.subscription}`.toLowerCase().includes(wanted))
  )), [all, wanted, subscription, reason]);
  const filtered = Boolean(q || subscription || reason);
  // The API does not filter groups, so a filter needs all of them.
  const missing = list.total > list.items.length;
  useEffect(() => { if (filtered && missing) list.more(); }, [filtered, missing, list.items.length]);
  return { list, all, items, filtered, reasons: [...new Set(all.map((group) => group.reason))].sort() };
}

function Filters({ q, subscription, reason, reasons }) {
  const choices = [{ label: "Any reason", run: () => change({ reason: undefined }) },
    ...reasons.slice(0, 50).map((each) => ({ label: oneLine(each), run: () => change({ reason: each }) }))];
  return html`<div class="tools scroll" role="group" aria-label="Filters">
    <span class="find-subscriptions wide-only"><${Field} icon="search" label="Reason, consumer or subscription" value=${q} testid="deadletter-search"
      onText=${changeText} onClear=${() => changeText("")} /></span>
    <span class="reason-filter wide-only"><${Menu} label="Reasons" kind="" text=${`Reason: ${reason ? oneLine(reason) : "any"}`} items=${choices} testid="reason-filter" /></span>
    ${subscription && html`<button type="button" class="chip" aria-pressed="true" data-testid="subscription-filter"
      aria-label="Show the dead letters of all subscriptions" onClick=${() => change({ subscription: undefined })}>
      Subscription: <span class="mono">${subscription.slice(0, 12)}</span> <${Icon} name="close" /></button>`}
  </div>`;
}

/** Which group and letter are open, by the address; a letter that a key opened takes the focus. */
function useOpen(all, names) {
  const { group: key, id } = useAddress((found) => found.query);
  const last = useRef(null);
  const [byKey, setByKey] = useState(false);
  const phone = usePhone();
  const listed = key && all.find((group) => groupKey(group) === key);
  // A group that was emptied stays open, so that its outcome can be read.
  if (listed) last.current = listed;
  const kept = key && last.current && groupKey(last.current) === key ? { ...last.current, count: 0 } : null;
  const group = listed || kept;
  const close = () => change({ group: undefined, id: undefined });
  return {
    group, id, names: group ? [group.at] : names, take: (byKey || phone) && id, openKey: key,
    openGroup: (found) => change({ group: groupKey(found), id: undefined }),
    close,
    openLetter: (letter, withKey) => {
      setByKey(withKey);
      change({ id: String(letter.id) });
    },
  };
}

export default function DeadLetters() {
  const query = useAddress((found) => found.query);
  const { q = "", subscription, reason, sort = DEFAULT_SORT } = query;
  const { names, absent } = useListedNodes();
  const groups = useGroups({ q, subscription, reason, sort }, names);
  const { list, all, items, filtered } = groups;
  const { group, id, take, openKey, openGroup, openLetter, ...open } = useOpen(all, names);
  const letters = useLetters(group);
  const letterRows = useRef(null);
  const height = useRowHeight();
  const keys = useMemo(() => items.map((item) => item.key), [items]);
  const rows = useRows({ keys, height, open: (index) => openGroup(items[index]) });
  const changed = () => {
    list.refresh();
    letters.refresh();
  };

  const ready = names !== undefined && !list.loading;
  useEffect(() => { if (ready) markReady(); }, [ready]);
  useEffect(() => {
    if (group) document.querySelector(".letters")?.scrollIntoView({ block: "nearest" });
  }, [openKey, Boolean(group)]);

  const total = all.reduce((sum, each) => sum + each.count, 0);
  const closeLetter = () => {
    change({ id: undefined });
    requestAnimationFrame(() => letterRows.current?.focusRow(id));
  };
  return html`
    <div class="head"><div><h1>Dead letters</h1>
      <p>${list.total > list.items.length ? html`${counted(list.total, "group")}` : html`${count(total)} in ${counted(all.length, "group")}`}, by subscription and reason<${Absent} nodes=${absent} figure="dead_letters" /></p></div></div>
    <${Filters} q=${q} subscription=${subscription} reason=${reason} reasons=${groups.reasons} />
    <div class=${id ? "split open" : "split"}>
      <div class="letter-lists">
        <section class="panel group-list" aria-label="List of groups">
          ${names?.length === 0 ? html`<${NoNode} nodes=${absent} />` : ready ? html`<${ListState} list=${{ ...list, items }} filtered=${filtered && list.total > 0} onClear=${clearFilters} empty=${EMPTY} />` : html`<${Loading} />`}
          ${items.length > 0 && list.error?.status !== 403 && html`<${GroupTable} items=${items} total=${items.length} height=${height} rows=${rows} sort=${sort} onSort=${changeSort}
            openKey=${openKey} onEnd=${list.more} stale=${list.stale} />`}
        </section>
        ${group && html`<${LettersList} key=${openKey} group=${group} letters=${letters} openId=${id} open=${openLetter} tableRef=${letterRows}
          close=${open.close} changed=${changed} />`}
      </div>
      ${id && open.names !== undefined && html`<${LetterPanel} key=${`${id} ${openKey}`} id=${id} names=${open.names} take=${take} close=${closeLetter} changed=${changed}
        listed=${letters.items.some((letter) => letter.key === id)} />`}
    </div>`;
}
