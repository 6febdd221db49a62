// Not written yet.
import { html } from "../html.js";

export default function View() {
  return html`<p>…</p>`;
}
