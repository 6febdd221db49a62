// Sensors: physical ones on a map and in a list, virtual ones with members and live plot, and rejected readings.
import { html } from "../html.js";
import { change, useParameter } from "../address.js";
import { count, counted } from "../format.js";
import { markReady } from "../state.js";
import { Segment } from "../parts/controls.js";
import { Absent, useListedNodes } from "../subscriptions/listed_nodes.js";
import { PhysicalSensors } from "../sensors/physical_sensors.js";
import { RejectedReadings } from "../sensors/rejected_readings.js";
import { useSensorFigures } from "../sensors/sensor_figures.js";
import { VirtualSensors } from "../sensors/virtual_sensors.js";

const TABS = { physical: PhysicalSensors, virtual: VirtualSensors, rejected: RejectedReadings };

/** Another part of the view; what was chosen in the one before is dropped. */
function choose(next) {
  const gone = ["q", "kind", "tag", "state", "area", "id", "node", "as", "sort", "reason", "sensor"];
  change({ ...Object.fromEntries(gone.map((name) => [name, undefined])), tab: next === "physical" ? undefined : next });
}

export default function Sensors() {
  const given = useParameter("tab") ?? "";
  const tab = Object.hasOwn(TABS, given) ? given : "physical";
  const { names, absent, alive } = useListedNodes();
  const figures = useSensorFigures(names);
  const Tab = TABS[tab];
  const named = (word, number) => (number ? `${word} ${count(number)}` : word);
  const options = [
    ["physical", named("Physical", figures?.physical)], ["virtual", named("Virtual", figures?.virtual)],
    ["rejected", named("Rejected", figures?.rejections)],
  ];
  return html`<div class="head"><div><h1>Sensors</h1>
      <p>${figures && html`${counted(figures.readings, "reading")} accepted since the start, ${count(figures.running)} of
        ${" "}${counted(figures.virtual, "virtual sensor")} running`}${figures?.on_demand > 0 && html`, ${count(figures.wanted)} of
        ${" "}${count(figures.on_demand)} on demand wanted`}<${Absent} nodes=${absent} /></p></div>
      <div class="actions"><${Segment} label="Sensors to show" options=${options} value=${tab} onChange=${choose} /></div></div>
    <${Tab} key=${tab} names=${names} absent=${absent} several=${alive.length > 1} figures=${figures} ready=${markReady} />`;
}
