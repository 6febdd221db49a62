// Removes a physical or a virtual sensor, after the effect is named.
import { html } from "../html.js";
import { send } from "../api.js";
import { Text } from "../parts/controls.js";
import { ask } from "../parts/dialogs.js";
import { toast } from "../parts/toasts.js";
import { sensorPath, sensorTopic } from "./one_sensor.js";

export const virtualPath = (name) => `virtual/${encodeURIComponent(name)}`;

async function remove({ title, body, verb, request, done }) {
  return Boolean(await ask({
    title, body, verb, danger: true, request,
    run: async () => {
      await send(request.method, request.path, { node: request.node });
      toast(done);
      return true;
    },
  }));
}

/** True if the sensor was removed. */
export const askToRemoveSensor = (item) => remove({
  title: "Remove a sensor", verb: "Remove sensor", done: "The sensor is removed",
  request: { method: "DELETE", path: sensorPath(item.id), node: item.at },
  body: html`<p><b><${Text}>${item.id}<//></b></p>
    <p>Readings that it sends from now on are rejected as unknown-sensor, unless sensors.auto_register is on. Virtual
      sensors lose it as a member. Its topic <${Text}>${sensorTopic(item)}<//> and its kept readings stay.</p>`,
});

/** True if the virtual sensor was removed. */
export const askToRemoveVirtual = (item) => remove({
  title: "Remove a virtual sensor", verb: "Remove virtual sensor", done: "The virtual sensor is removed",
  request: { method: "DELETE", path: virtualPath(item.name), node: item.at },
  body: html`<p><b><${Text}>${item.name}<//></b></p>
    <p>${item.state === "running" ? "It runs now, because somebody uses it: it stops at once. " : ""}Subscriptions
      of <${Text}>${item.topic}<//> stay, but get nothing more. Results that were published stay in the log.</p>`,
});
