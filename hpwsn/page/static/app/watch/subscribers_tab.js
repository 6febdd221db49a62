// The subscriptions that get messages of a topic.
import { html } from "../html.js";
import { Notice } from "../parts/lists.js";

/** The subscriptions that get messages of a topic. */
export function SubscribersTab() {
  return html`<${Notice} kind="empty">The subscriptions that get messages of a topic.<//>`;
}
