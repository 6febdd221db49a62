// Earlier events of a topic.
import { html } from "../html.js";
import { Notice } from "../parts/lists.js";

/** Earlier events of a topic. */
export function HistoryTab() {
  return html`<${Notice} kind="empty">Earlier events of a topic.<//>`;
}
