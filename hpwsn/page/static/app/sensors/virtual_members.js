// The members of a virtual sensor: the physical sensors that its definition selects, on a small map and as a list.
import { html, useMemo } from "../html.js";
import { go, href } from "../address.js";
import { count, counted } from "../format.js";
import { Ago, State, Text } from "../parts/controls.js";
import { ListState, Loading, VirtualRows } from "../parts/lists.js";
import { useAllItems } from "./all_items.js";
import { PlaceMap } from "./place_map.js";
import { STATES, sortedSensors, stateOf } from "./sensor_words.js";
import { definitionWords, memberQuery, selectionWords } from "./template_words.js";

const ROW = 33;
const NONE = [];

const openSensor = (item) => go("sensors", { id: item.id, node: item.at });
const linkTo = (item) => href("sensors", { id: item.id, node: item.at });

/** The sensors that are selected and have the quantity, as a list of useAllItems. */
function useMembers(item) {
  const names = item.at ? [item.at] : null;
  const list = useAllItems({ path: "sensors", names: item.service ? NONE : names, query: memberQuery(item) });
  const items = useMemo(() => {
    const found = list.items.filter((each) => Object.hasOwn(each.quantities, item.quantity));
    return sortedSensors(found.map((each) => ({ ...each, key: each.id, word: stateOf(each) })), "state");
  }, [list.items, item.quantity]);
  return { ...list, items };
}

function Numbers({ item, items }) {
  const silent = items.filter((each) => each.word !== "reporting").length;
  const other = item.members !== null && item.members < items.length ? items.length - item.members : 0;
  return html`<p class="dim" data-testid="member-count">${counted(items.length, "member")}: ${selectionWords(item)} that measure
    ${" "}<${Text}>${item.quantity}<//>.${silent > 0 && ` ${count(silent)} ${silent === 1 ? "does" : "do"} not report now.`}
    ${other > 0 && ` ${count(other)} ${other === 1 ? "is" : "are"} left out: the unit does not convert, or the sensor is new.`}</p>`;
}

/** The tab "Members" of a virtual sensor. */
export function VirtualMembers({ item }) {
  const list = useMembers(item);
  const { items, loading } = list;
  if (item.service) {
    return html`<p class="dim">${definitionWords(item)}: its definition says what it reads. See the tab Definition, and <a href=${href("streams")}>Streams</a>.</p>`;
  }
  if (loading) return html`<${Loading} />`;
  return html`<${Numbers} item=${item} items=${items} />
    <${ListState} list=${list} empty=${html`No registered sensor fits: ${selectionWords(item)} with the quantity <${Text}>${item.quantity}<//>.`} />
    ${items.some((each) => each.place) && html`<div class="small-map"><${PlaceMap} items=${items} everywhere=${items} open=${openSensor}
      label=${`Map of ${counted(items.length, "member")}; the list below says the same`} /></div>`}
    ${items.length > 0 && html`<table class="members" aria-label="Members" aria-rowcount=${items.length + 1}>
      <thead><tr aria-rowindex="1"><th scope="col">State</th><th scope="col">Sensor</th><th scope="col" class="number">Last report</th></tr></thead>
      <${VirtualRows} items=${items} height=${ROW} columns=${3} row=${(each, index) => html`<tr key=${each.key} aria-rowindex=${index + 2}
        data-testid="member" data-id=${each.id} data-state=${each.word}>
        <td><${State} shape=${STATES[each.word].shape}>${STATES[each.word].word}<//></td>
        <td class="clip id"><a href=${linkTo(each)}><${Text}>${each.id}<//></a></td>
        <td class="number"><${Ago} at=${each.state.last_seen} /></td></tr>`} />
    </table>`}`;
}
