// Short messages at the foot of the page, and announcements for screen readers.
import { html } from "../html.js";
import { visible } from "../format.js";
import { createStore, useStore } from "../store.js";
import { Icon } from "../icons.js";

const STAYS = 6000;
const BETWEEN = 5000;

const toasts = createStore({ items: [] });
const announced = createStore({ text: "" });
let number = 0;
let last = 0;
let waiting = 0;

/** Shows a message for some seconds; `action` is {label, run}, `bad` marks an error. Returns the id for `dismiss`. */
export function toast(text, { action, bad } = {}) {
  number += 1;
  const item = { id: number, text: visible(text), action, bad };
  toasts.set({ items: [...toasts.get().items.slice(-2), item] });
  setTimeout(() => dismiss(item.id), bad || action ? 2 * STAYS : STAYS);
  return item.id;
}

export function dismiss(id) {
  toasts.set({ items: toasts.get().items.filter((each) => each.id !== id) });
}

/** Tells screen readers something, at most once in five seconds; the newest text wins. */
export function announce(text) {
  clearTimeout(waiting);
  const pause = Math.max(0, last + BETWEEN - Date.now());
  waiting = setTimeout(() => {
    last = Date.now();
    announced.set({ text });
  }, pause);
}

/** The place of toasts and announcements; once in the page. */
export function Toasts() {
  const { items } = useStore(toasts);
  const text = useStore(announced, (found) => found.text);
  return html`<div class="toasts" role="status" aria-live="polite">
      ${items.map((item) => html`<div class=${`toast ${item.bad ? "bad" : ""}`} key=${item.id}>
        <span>${item.text}</span>
        ${item.action && html`<button type="button" class="button" onClick=${() => { dismiss(item.id); item.action.run(); }}>${item.action.label}</button>`}
        <button type="button" class="button bare" aria-label="Dismiss" onClick=${() => dismiss(item.id)}><${Icon} name="close" /></button>
      </div>`)}
    </div>
    <p class="for-screen-readers" aria-live="polite">${text}</p>`;
}
