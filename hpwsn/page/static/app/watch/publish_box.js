// Publishes on a topic.
import { html } from "../html.js";
import { Notice } from "../parts/lists.js";

/** Publishes on a topic. */
export function PublishBox() {
  return html`<${Notice} kind="empty">Publishes on a topic.<//>`;
}
