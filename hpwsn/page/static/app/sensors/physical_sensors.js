// The physical sensors: the map, the list that says the same, their filters, and one of them in the panel.
import { html, useEffect, useMemo, useRef, useState } from "../html.js";
import { change, useAddress } from "../address.js";
import { count, counted, oneLine } from "../format.js";
import { Chip, Field, State } from "../parts/controls.js";
import { ListState, Loading } from "../parts/lists.js";
import { announce } from "../parts/toasts.js";
import { usePhone } from "../parts/media.js";
import { NoNode } from "../subscriptions/listed_nodes.js";
import { useKept, useRowHeight, useRows } from "../subscriptions/rows.js";
import { MOST, useAllItems } from "./all_items.js";
import { holds, parseFrame } from "./map_view.js";
import { NodeCommand } from "./node_command.js";
import { PlaceMap } from "./place_map.js";
import { SensorPanel, TooMany } from "./sensor_panel.js";
import { SensorTable } from "./sensor_table.js";
import { STATES, hasText, sortedSensors, stateOf } from "./sensor_words.js";

const DEFAULT_SORT = "state";
const MOST_CHOICES = 500;
const FILTERS = { q: undefined, kind: undefined, tag: undefined, state: undefined, area: undefined };

const keyed = (item) => ({ ...item, key: `${item.at ?? ""}\n${item.id}`, word: stateOf(item) });
const namesOf = (items, names) => [...new Set(items.flatMap(names))].sort();

/** All sensors of the nodes, those that the address asks for, and of these what the chips count. */
function useSensors(names) {
  const query = useAddress((found) => found.query);
  const { q = "", kind, tag, state, area, sort = DEFAULT_SORT } = query;
  // As long as all are read, the page filters; of more, the node sends those that are asked for.
  const [large, setLarge] = useState(false);
  const frame = useMemo(() => parseFrame(area), [area]);
  const asked = large ? { kind, tag, area: frame ? area : undefined } : null;
  const list = useKept(useAllItems({ path: "sensors", names, query: asked }), names !== undefined);
  useEffect(() => { if (list.total > MOST) setLarge(true); }, [list.total]);
  const all = useMemo(() => list.items.map(keyed), [list.items]);
  const wanted = q.trim().toLowerCase();
  const fitting = useMemo(() => all.filter((item) => (!kind || item.kind === kind) && (!tag || item.tags.includes(tag))
    && hasText(item, wanted)), [all, kind, tag, wanted]);
  const isHere = (item) => !frame || (item.place && holds(frame, item.place));
  const here = useMemo(() => fitting.filter(isHere), [fitting, frame]);
  const inState = (items) => (state ? items.filter((item) => item.word === state) : items);
  const items = useMemo(() => sortedSensors(inState(here), sort), [here, state, sort]);
  const drawn = useMemo(() => inState(fitting), [fitting, state]);
  return { list, all, large, here, items, drawn, q, kind, tag, state, area, frame, sort };
}

function Choice({ name, label, values, value }) {
  const listed = values.slice(0, MOST_CHOICES);
  if (value && !listed.includes(value)) listed.unshift(value);
  return html`<label class="choice">${label} <select data-testid=${`${name}-filter`} value=${value ?? ""}
    onChange=${({ target }) => change({ [name]: target.value || undefined, id: undefined, node: undefined })}>
    <option value="" selected=${!value}>any</option>
    ${listed.map((each) => html`<option key=${each} value=${each} selected=${each === value}>${oneLine(each)}</option>`)}
  </select></label>`;
}

function Filters({ all, here, q, kind, tag, state }) {
  const kinds = useMemo(() => namesOf(all, (item) => [item.kind]), [all]);
  const tags = useMemo(() => namesOf(all, (item) => item.tags), [all]);
  const number = (name) => here.filter((item) => item.word === name).length;
  const present = Object.keys(STATES).filter((name) => name === state || number(name));
  const choose = (next) => change({ state: next, id: undefined, node: undefined });
  return html`<div class="tools scroll" role="group" aria-label="Filters">
    <${Field} icon="search" label="Id, tag, owner, gateway" value=${q} testid="sensor-search"
      onText=${(text) => change({ q: text || undefined }, { replace: true })}
      onClear=${() => change({ q: undefined }, { replace: true })} />
    <${Choice} name="kind" label="Kind" values=${kinds} value=${kind} />
    <${Choice} name="tag" label="Tag" values=${tags} value=${tag} />
    <${Chip} pressed=${!state} number=${count(here.length)} data-testid="state-all" onClick=${() => choose(undefined)}>All<//>
    ${present.map((name) => html`<${Chip} key=${name} pressed=${state === name} number=${count(number(name))}
      data-testid=${`state-${name}`} onClick=${() => choose(name)}><${State} shape=${STATES[name].shape}>${STATES[name].word}<//><//>`)}
  </div>`;
}

function Empty() {
  return html`<p><b>No sensors.</b> Physical sensors are here once they are registered. To begin with an invented network
      that registers itself and sends readings:</p>
    <${NodeCommand}>hpwsn sensors simulate weather --sensors 20 --seconds 600<//>
    <p>Or register your own from a file:</p>
    <${NodeCommand}>hpwsn sensors register sensors.json<//>`;
}

function MapPanel({ found, open, openKey }) {
  const { all, drawn, area } = found;
  const without = drawn.filter((item) => !item.place).length;
  const placed = all.some((item) => item.place);
  if (!placed) {
    return html`<section class="panel map-panel small" aria-label="Map of sensors"><p class="notice dim">No sensor has a place, so there is no map.
      Register sensors with “place”: {"longitude": …, "latitude": …}.</p></section>`;
  }
  const label = `Map of ${counted(drawn.length - without, "sensor")}; the list below says the same`;
  return html`<section class="panel map-panel" aria-label="Map of sensors">
    <${PlaceMap} items=${drawn} everywhere=${all} area=${area} openKey=${openKey} open=${open} label=${label}
      onArea=${(next) => change({ area: next }, { replace: true })} />
    ${without > 0 && html`<p class="map-note dim">${counted(without, "sensor")} without a place ${without === 1 ? "is" : "are"} only in the list.</p>`}
  </section>`;
}

/** Which sensor is open, by the address; one that a key opened takes the focus, and gives it back to its row. */
function useOpen({ all, items }, height) {
  const { id, node } = useAddress(({ query }) => query);
  const [byKey, setByKey] = useState(false);
  const opener = useRef(null);
  const keys = useMemo(() => items.map((item) => item.key), [items]);
  const item = id ? all.find((each) => each.id === id && (!node || each.at === node)) : undefined;

  function open(next, withKey) {
    opener.current = next.key;
    setByKey(withKey);
    const twins = all.filter((each) => each.id === next.id).length > 1;
    change({ id: next.id, node: twins ? next.at : undefined });
  }
  const rows = useRows({ keys, height, open: (index, withKey) => open(items[index], withKey) });
  function close() {
    change({ id: undefined, node: undefined });
    if (opener.current) requestAnimationFrame(() => rows.focusRow(opener.current));
  }
  return { id, node, item, byKey, open, close, rows };
}

/** What stands in place of the rows or above them. */
function Standing({ found, loaded }) {
  if (!loaded) return html`<${Loading} />`;
  const filtered = (found.all.length > 0 || found.large) && Object.keys(FILTERS).some((name) => found[name]);
  return html`<${ListState} list=${{ ...found.list, items: found.items }} filtered=${filtered} onClear=${() => change(FILTERS)}
    empty=${html`<${Empty} />`} />`;
}

/** `names` are the nodes to ask; `absent` those that do not answer; `ready()` once it shows data. */
export function PhysicalSensors({ names, absent, several, ready }) {
  const found = useSensors(names);
  const { list, all, items, sort, frame } = found;
  const height = useRowHeight();
  const phone = usePhone();
  const { id, node, item: openItem, byKey, open, close, rows } = useOpen(found, height);
  const loaded = names !== undefined && !list.loading;
  useEffect(() => {
    if (!loaded) return;
    ready();
    announce(`${counted(items.length, "sensor")} listed`);
  }, [loaded, found.q, found.kind, found.tag, found.state]);

  return html`<${Filters} ...${found} />
    <div class=${id ? "split open" : "split"}>
      <div class="sensor-lists">
        ${loaded && all.length > 0 && html`<${MapPanel} found=${found} openKey=${openItem?.key} open=${(item) => open(item, false)} />`}
        <section class="panel" aria-label="List of sensors">
          ${frame && loaded && all.length > 0 && html`<p class="list-note dim">${counted(items.length, "sensor")} in the chosen area of the map</p>`}
          ${names?.length === 0 ? html`<${NoNode} nodes=${absent} />` : html`<${Standing} found=${found} loaded=${loaded} />`}
          <${TooMany} shown=${all.length} total=${list.complete ? list.total : 0} />
          ${items.length > 0 && html`<${SensorTable} items=${items} height=${height} sort=${sort} rows=${rows} openKey=${openItem?.key} nodes=${several}
            onSort=${(next) => change({ sort: next === DEFAULT_SORT ? undefined : next }, { replace: true })} />`}
        </section>
      </div>
      ${id && loaded && html`<${SensorPanel} key=${`${id} ${node ?? ""}`} id=${id} listed=${openItem} ready=${list.complete}
        take=${(byKey || phone) && id} close=${close} changed=${list.refresh} />`}
    </div>`;
}
