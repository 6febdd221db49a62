// One event on one line: its time, the topic if it is below the one that is read, names dim and values plain.
import { html } from "../html.js";
import { bytes, count, oneLine } from "../format.js";
import { Clock, Tag } from "../parts/controls.js";
import { stepsOf } from "../topics/topic_names.js";

/** A topic below another one, without the names that both have. */
const below = (topic, above) => stepsOf(topic ?? "").slice(stepsOf(above).length).join(":");

/** The fields of an event; of an open one, whose payload stands below, what else is known of it. */
function Summary({ event, topic, open }) {
  if (open) {
    const id = event.id === null ? "no id" : html`id <bdi>${oneLine(event.id)}</bdi>`;
    return html`<span class="dim">offset ${count(event.offset)} · ${id} · ${count(event.size)} bytes</span>`;
  }
  const place = event.topic === topic ? "" : below(event.topic, topic);
  const field = ([name, value]) => html`${name && html`<bdi class="dim">${oneLine(name)}</bdi> `}<bdi>${oneLine(value)}</bdi> `;
  return html`${event.cut && html`<${Tag}>${bytes(event.size)}, cut<//> `}
    ${place && html`<bdi class="message-topic">${oneLine(place)}</bdi> `}${event.fields.map(field)}`;
}

/** `reached` is set on the row that the Tab key reaches; `offsets` shows offsets beside times. */
export function EventLine({ event, topic, open, offsets, reached, onOpen }) {
  const offset = offsets && html`<span class="message-offset">${count(event.offset)}</span> `;
  return html`<button type="button" class="message-line" aria-expanded=${String(open)} tabindex=${reached ? 0 : -1} onClick=${onOpen}>
    <span class="message-time">${offset}<${Clock} at=${event.time} digits=${1} /></span>${" "}
    <span class="message-text"><${Summary} event=${event} topic=${topic} open=${open} /></span>
  </button>`;
}
