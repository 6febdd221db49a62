// The virtual sensors: those that run first, with their definition in words, and one of them in the panel.
import { html, useEffect, useMemo, useRef, useState } from "../html.js";
import { change, useAddress } from "../address.js";
import { count, counted, oneLine } from "../format.js";
import { Chip, Field, State, Text } from "../parts/controls.js";
import { ListState, Loading, SortHead, VirtualRows } from "../parts/lists.js";
import { announce } from "../parts/toasts.js";
import { usePhone } from "../parts/media.js";
import { NoNode } from "../subscriptions/listed_nodes.js";
import { useRowHeight, useRows } from "../subscriptions/rows.js";
import { useAllItems } from "./all_items.js";
import { NodeCommand } from "./node_command.js";
import { STATES, definitionWords, sortedVirtual, stateOf } from "./template_words.js";
import { VirtualPanel } from "./virtual_panel.js";

const DEFAULT_SORT = "state";

function useVirtual(names) {
  const { q = "", state, sort = DEFAULT_SORT } = useAddress((found) => found.query);
  const list = useAllItems({ path: "virtual", names });
  const all = useMemo(() => list.items.map((item) => ({
    ...item, key: `${item.at ?? ""}\n${item.name}`, words: definitionWords(item),
  })), [list.items]);
  const wanted = q.trim().toLowerCase();
  const fitting = all.filter((item) => `${item.name}\n${item.words}`.toLowerCase().includes(wanted));
  const items = sortedVirtual(state ? fitting.filter((item) => item.state === state) : fitting, sort);
  return { list, all, fitting, items, q, state, sort };
}

function Filters({ fitting, q, state }) {
  const choose = (next) => change({ state: next, id: undefined, node: undefined });
  return html`<div class="tools scroll" role="group" aria-label="Filters">
    <${Field} icon="search" label="Name or definition" value=${q} testid="virtual-search"
      onText=${(text) => change({ q: text || undefined }, { replace: true })}
      onClear=${() => change({ q: undefined }, { replace: true })} />
    <${Chip} pressed=${!state} number=${count(fitting.length)} onClick=${() => choose(undefined)}>All<//>
    ${Object.entries(STATES).map(([name, { shape, word }]) => html`<${Chip} key=${name} pressed=${state === name} data-testid=${`state-${name}`}
      number=${count(fitting.filter((item) => item.state === name).length)} onClick=${() => choose(name)}><${State} shape=${shape}>${word}<//><//>`)}
  </div>`;
}

function Empty() {
  return html`<p><b>No virtual sensors.</b> A virtual sensor combines the readings of all physical sensors of a kind, a tag
      or an area into one result on a topic of its own. It runs only while somebody uses it. To define one:</p>
    <${NodeCommand}>hpwsn sensors virtual define warmth --kind weather --quantity temperature --combine mean --every 10s<//>`;
}

function Row({ item, open, nodes, properties }) {
  const { shape, word } = stateOf(item);
  return html`<tr class="opens" data-testid="virtual" data-name=${item.name} data-state=${item.state} ...${properties}
      aria-selected=${String(open)} aria-current=${open ? "true" : null}>
    <td class="c2"><${State} shape=${shape}>${word}<//></td>
    <td class="c1 clip name" title=${oneLine(item.name)}><${Text}>${item.name}<//></td>
    <td class="c3 clip words optional" title=${oneLine(item.words)}><${Text}>${item.words}<//></td>
    <td class="number c4" data-label="members">${count(item.members)}</td>
    <td class=${item.late ? "number warn" : "number"}>${count(item.late)}</td>
    <td class=${item.refused ? "number warn" : "number"}>${count(item.refused)}</td>
    ${nodes && html`<td class="clip optional"><${Text}>${item.at}<//></td>`}
  </tr>`;
}

function Table({ items, height, sort, rows, openKey, nodes }) {
  const onSort = (next) => change({ sort: next === DEFAULT_SORT ? undefined : next }, { replace: true });
  const head = { sort, onSort };
  return html`<div class="wrap"><table class="cards virtual-table" role="grid" aria-label="Virtual sensors"
      aria-rowcount=${items.length + 1} ref=${rows.table} onKeyDown=${rows.onKeyDown}>
    <thead><tr aria-rowindex="1">
      <${SortHead} field="state" up ...${head}>State<//>
      <${SortHead} field="name" up ...${head}>Virtual sensor<//>
      <th scope="col" class="optional">Definition</th>
      <${SortHead} field="members" class="number" ...${head}>Members<//>
      <${SortHead} field="late" class="number" ...${head}>Late<//>
      <${SortHead} field="refused" class="number" ...${head}>Refused<//>
      ${nodes && html`<th scope="col" class="optional">Node</th>`}
    </tr></thead>
    <${VirtualRows} items=${items} height=${height} columns=${nodes ? 7 : 6} row=${(item, index) => html`<${Row}
      key=${item.key} item=${item} open=${item.key === openKey} nodes=${nodes} properties=${rows.row(item.key, index)} />`} />
  </table></div>`;
}

/** `names` are the nodes to ask; `absent` those that do not answer; `ready()` once it shows data. */
export function VirtualSensors({ names, absent, several, ready }) {
  const { list, all, fitting, items, q, state, sort } = useVirtual(names);
  const { id, node } = useAddress(({ query }) => query);
  const height = useRowHeight();
  const phone = usePhone();
  const [byKey, setByKey] = useState(false);
  const opener = useRef(null);
  const keys = items.map((item) => item.key);
  const openItem = id ? all.find((item) => item.name === id && (!node || item.at === node)) : undefined;
  const rows = useRows({
    keys, height,
    open(index, withKey) {
      const { name, at, key } = items[index];
      opener.current = key;
      setByKey(withKey);
      const twins = all.filter((each) => each.name === name).length > 1;
      change({ id: name, node: twins ? at : undefined, as: undefined });
    },
  });
  function close() {
    change({ id: undefined, node: undefined, as: undefined });
    if (opener.current) requestAnimationFrame(() => rows.focusRow(opener.current));
  }
  const loaded = names !== undefined && !list.loading;
  useEffect(() => {
    if (!loaded) return;
    ready();
    announce(`${counted(items.length, "virtual sensor")} listed`);
  }, [loaded, q, state]);
  return html`<${Filters} fitting=${fitting} q=${q} state=${state} />
    <div class=${id ? "split open" : "split"}>
      <section class="panel" aria-label="List of virtual sensors">
        ${names?.length === 0 ? html`<${NoNode} nodes=${absent} />` : loaded ? html`<${ListState} list=${{ ...list, items }}
          filtered=${Boolean(q || state) && all.length > 0} onClear=${() => change({ q: undefined, state: undefined })}
          empty=${html`<${Empty} />`} />` : html`<${Loading} />`}
        ${items.length > 0 && html`<${Table} items=${items} height=${height} sort=${sort} rows=${rows} openKey=${openItem?.key} nodes=${several} />`}
      </section>
      ${id && loaded && html`<${VirtualPanel} key=${`${id} ${node ?? ""}`} name=${id} listed=${openItem} ready=${list.complete}
        take=${(byKey || phone) && id} close=${close} changed=${list.refresh} />`}
    </div>`;
}
