// The side panel of a list: heading, what closes it, and Escape. On a phone it fills the screen.
import { html, useEffect, useRef } from "../html.js";
import { Icon } from "../icons.js";
import { Button } from "../parts/controls.js";

/** `label` names the panel, `back` the list behind it; `heading`, `sub` are elements; `take` moves the focus here. */
export function SidePanel({ label, back, heading, sub, close, take, children }) {
  const title = useRef(null);
  const leave = useRef(close);
  leave.current = close;
  useEffect(() => {
    if (take) title.current?.focus();
  }, [take]);
  useEffect(() => {
    const key = (event) => {
      if (event.key !== "Escape" || event.defaultPrevented || document.querySelector("dialog[open]")) return;
      leave.current();
    };
    document.addEventListener("keydown", key);
    return () => document.removeEventListener("keydown", key);
  }, []);
  return html`<section class="panel side selected-item" aria-label=${label}>
    <header>
      <div class="side-head">
        <button type="button" class="button bare back" onClick=${() => close()}><${Icon} name="left" />${back}</button>
        <h2 ref=${title} tabindex="-1">${heading}</h2>
        ${sub}
      </div>
      <${Button} kind="bare" icon="close" label="Close" testid="close-panel" onClick=${() => close()} />
    </header>
    <div class="side-body">${children}</div>
  </section>`;
}
