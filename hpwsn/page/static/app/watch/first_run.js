// Three steps of a new node.
import { html } from "../html.js";
import { Notice } from "../parts/lists.js";

/** Three steps of a new node. */
export function FirstRun() {
  return html`<${Notice} kind="empty">Three steps of a new node.<//>`;
}
