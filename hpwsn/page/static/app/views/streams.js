// Streams: do services keep up. The services of the nodes in scope, the worst first, and one of them in the panel.
import { html, useEffect, useMemo, useRef, useState } from "../html.js";
import { change, useParameter } from "../address.js";
import { count, counted, oneLine } from "../format.js";
import { markReady, useMay, useNode, useShared } from "../state.js";
import { Button, Chip, Command, Field } from "../parts/controls.js";
import { ListState, Loading, useList } from "../parts/lists.js";
import { announce } from "../parts/toasts.js";
import { Absent, NoNode, useListedNodes } from "../subscriptions/listed_nodes.js";
import { useRowHeight, useRows } from "../subscriptions/rows.js";
import { usePhone } from "../parts/media.js";
import { ServicePanel } from "../streams/service_panel.js";
import { ServiceTable, useRequestTotals } from "../streams/service_table.js";
import { STATES, sorted } from "../streams/service_words.js";
import { startService } from "../streams/start_dialog.js";

const DEFAULT_SORT = "state";
const KEY = (item) => `${item.uri}\n${item.at ?? ""}`;

/** The services of the nodes, filtered and sorted, with the number of their requests. */
function useServices(names) {
  const q = useParameter("q") ?? "";
  const state = useParameter("state") ?? "";
  const sort = useParameter("sort") ?? DEFAULT_SORT;
  const list = useList({ path: "streams", nodes: names === undefined ? [] : names });
  const totals = useRequestTotals(useMemo(() => list.items.map((item) => ({ ...item, key: KEY(item) })), [list.items]));
  useEffect(() => { if (list.total > list.items.length) list.more(); }, [list.total, list.items.length]);
  const wanted = q.trim().toLowerCase();
  const all = list.items.map((item) => ({ ...item, key: KEY(item), total: totals[KEY(item)] ?? null }));
  const fits = (item) => (!state || item.state === state)
    && `${item.uri} ${item.topic} ${item.description}`.toLowerCase().includes(wanted);
  return { list, all, items: sorted(all.filter(fits), sort), q, state, sort };
}

function Empty() {
  return html`<p><b>No stream services.</b> A service turns sensor streams into events on a topic. It is here once its job runs:</p>
    <${Command} prompt="$">hpwsn streams run flow.toml<//>
    <p>or once a node with <code>streams.agent = true</code> runs it: <code>hpwsn streams start flow.toml</code>. How to write a definition is in docs/streams.md.</p>`;
}

function Filters({ all, q, state }) {
  const present = Object.keys(STATES).filter((each) => each === state || all.some((item) => item.state === each));
  const choose = (next) => change({ state: next || undefined, id: undefined });
  return html`<div class="tools scroll" role="group" aria-label="Filters">
    <${Field} icon="search" label="Service, topic or description" value=${q} testid="stream-search"
      onText=${(text) => change({ q: text || undefined }, { replace: true })}
        onClear=${() => change({ q: undefined }, { replace: true })} />
    <${Chip} pressed=${!state} number=${count(all.length)} onClick=${() => choose("")}>All<//>
    ${present.map((each) => html`<${Chip} key=${each} pressed=${state === each}
      number=${count(all.filter((item) => item.state === each).length)}
      data-testid=${`state-${each}`} onClick=${() => choose(each)}>${STATES[each].word}<//>`)}
  </div>`;
}

/** The button that starts a service; off where the node says that it runs none. */
function Start({ started }) {
  const node = useNode();
  const may = useMay("stream");
  const own = useShared((shared) => shared.session?.kind === "node" && shared.session.node === node);
  const without = useShared((shared) => own && shared.live.status && !shared.live.status.agent);
  const why = without ? `Node ${oneLine(node)} does not run services: set streams.agent = true, or use hpwsn streams run.` : null;
  async function start() {
    const uri = await startService(node);
    if (uri) started(uri);
  }
  return html`<${Button} icon="plus" testid="start-service" disabled=${!may || without || !node} title=${why}
    onClick=${start}>Start a service…<//>`;
}

export default function Streams() {
  const { names, absent, alive } = useListedNodes();
  const { list, all, items, q, state, sort } = useServices(names);
  const id = useParameter("id");
  const at = useParameter("node");
  const height = useRowHeight();
  const phone = usePhone();
  const [byKey, setByKey] = useState(false);
  const opener = useRef(null);
  const keys = useMemo(() => items.map((item) => item.key), [items.map((item) => item.key).join()]);
  const openItem = all.find((item) => item.uri === id && (!at || item.at === at));

  function open(index, withKey) {
    const { uri, at: node, key } = items[index];
    opener.current = key;
    setByKey(withKey);
    const several = all.filter((item) => item.uri === uri).length > 1;
    change({ id: uri, node: several ? node : undefined, filter: undefined, as: undefined });
  }
  const rows = useRows({ keys, height, open });
  function close() {
    change({ id: undefined, node: undefined, tab: undefined, filter: undefined, as: undefined });
    if (opener.current) requestAnimationFrame(() => rows.focusRow(opener.current));
  }

  const ready = names !== undefined && !list.loading;
  useEffect(() => {
    if (!ready) return;
    markReady();
    announce(`${counted(items.length, "service")} listed`);
  }, [ready, q, state]);

  const filtered = Boolean(q || state);
  const lag = all.reduce((sum, item) => sum + (item.lag ?? 0), 0);
  return html`<div class="head"><div><h1>Streams</h1>
      <p>${counted(all.length, "service")}${alive.length > 1 && html` on ${counted(alive.length, "node")}`}${all.length > 0 && html`, ${counted(lag, "unread event")}`}
        <${Absent} nodes=${absent} /></p></div>
      <div class="actions"><${Start} started=${(uri) => { list.refresh(); change({ id: uri }); }} /></div></div>
    <${Filters} all=${all} q=${q} state=${state} />
    <div class=${id ? "split open" : "split"}>
      <section class="panel" aria-label="List of stream services">
        ${names?.length === 0 ? html`<${NoNode} nodes=${absent} />` : ready ? html`<${ListState}
          list=${{ ...list, items }} filtered=${filtered}
          onClear=${() => change({ q: undefined, state: undefined })}
          empty=${html`<${Empty} />`} />` : html`<${Loading} />`}
        ${items.length > 0 && html`<${ServiceTable} items=${items} height=${height} sort=${sort} rows=${rows}
          openKey=${openItem?.key} nodes=${alive.length > 1}
          onSort=${(next) => change({ sort: next === DEFAULT_SORT ? undefined : next }, { replace: true })} />`}
      </section>
      ${id && ready && html`<${ServicePanel} key=${`${id} ${at ?? ""}`} uri=${id} listed=${openItem}
        take=${(byKey || phone) && id} close=${close} changed=${list.refresh} />`}
    </div>`;
}
