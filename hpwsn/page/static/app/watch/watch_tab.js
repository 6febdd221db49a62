// The events of a topic as they arrive.
import { html } from "../html.js";
import { Notice } from "../parts/lists.js";

/** The events of a topic as they arrive. */
export function WatchTab() {
  return html`<${Notice} kind="empty">The events of a topic as they arrive.<//>`;
}
