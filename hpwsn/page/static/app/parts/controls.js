// Small controls that all views use. Texts of others go through `Text`, which isolates and unmasks them.
import { classes, html, useEffect, useRef, useState } from "../html.js";
import { curl } from "../api.js";
import { ago, clock, dateTime, milliseconds, oneLine, secondsSince, duration, visible } from "../format.js";
import { Icon } from "../icons.js";
import { useShared } from "../state.js";
import { toast } from "./toasts.js";

/** A text of somebody else, such as a topic or an address: isolated, on one line, nothing invisible in it. */
export const Text = ({ children, mono }) => html`<bdi class=${mono ? "mono" : null}>${oneLine(children)}</bdi>`;

/** A button; `kind` is "first" (the main action), "risk", "danger", "bare" or nothing. */
export function Button({ kind, icon, label, testid, children, ...rest }) {
  return html`<button type="button" class=${classes("button", kind)} aria-label=${label} title=${label}
    data-testid=${testid} ...${rest}>${icon && html`<${Icon} name=${icon} />`}${children}</button>`;
}

/** Buttons of which one is pressed. `options` is [[value, label], …]. */
export function Segment({ label, options, value, onChange }) {
  return html`<div class="segment" role="group" aria-label=${label}>
    ${options.map(([each, text]) => html`<button type="button" key=${each} aria-pressed=${String(each === value)}
      onClick=${() => onChange(each)}>${text}</button>`)}
  </div>`;
}

/** A filter that is on or off, with a number. */
export function Chip({ pressed, number, children, ...rest }) {
  return html`<button type="button" class="chip" aria-pressed=${String(Boolean(pressed))} ...${rest}>
    ${children}${number !== undefined && html` <span class="chip-number">${number}</span>`}</button>`;
}

/** Tabs with their panel below. `tabs` is [[value, label], …]; arrow keys move. */
export function Tabs({ label, tabs, value, onChange, children }) {
  function move(event) {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    const index = tabs.findIndex(([each]) => each === value);
    onChange(tabs[(index + step + tabs.length) % tabs.length][0]);
    event.currentTarget.querySelectorAll("[role=tab]")[(index + step + tabs.length) % tabs.length].focus();
  }
  return html`<div class="tabs" role="tablist" aria-label=${label} onKeyDown=${move}>
      ${tabs.map(([each, text]) => html`<button type="button" role="tab" key=${each} id=${`tab-${each}`}
        aria-selected=${String(each === value)} aria-controls="tab-panel" tabindex=${each === value ? 0 : -1}
        onClick=${() => onChange(each)}>${text}</button>`)}
    </div>
    <div class="tab-panel" role="tabpanel" id="tab-panel" aria-labelledby=${`tab-${value}`}>${children}</div>`;
}

/** A text field with an icon. `onText` gets every change, `onEnter` the text at Enter, `onClear` clears. */
export function Field({
  icon, label, value, onText, onEnter, onClear, invalid, testid, mono, hint, inputRef, ...rest
}) {
  const own = useRef(null);
  const ref = inputRef ?? own;
  return html`<div class=${classes("field", invalid && "invalid", mono && "mono")}>
    ${icon && html`<${Icon} name=${icon} />`}
    <input type="text" ref=${ref} value=${value} aria-label=${label} placeholder=${hint ?? label} data-testid=${testid}
      aria-invalid=${invalid ? "true" : null} autocomplete="off" autocapitalize="off" spellcheck=${false}
      onInput=${(event) => onText?.(event.target.value)}
      onKeyDown=${(event) => { if (event.key === "Enter" && !event.isComposing) onEnter?.(event.target.value); }} ...${rest} />
    ${onClear && value && html`<${Button} kind="bare" icon="close" label="Clear" onClick=${() => { onClear(); ref.current?.focus(); }} />`}
  </div>`;
}

/** Shape, colour and word of a state. Shapes: live, retrying, paused, expired, dead. */
export function State({ shape, children, detail }) {
  return html`<span class=${`state state-${shape}`}><i aria-hidden="true"></i>${children}
    ${detail && html` <small><${Text}>${detail}<//></small>`}</span>`;
}

export const Tag = ({ children }) => html`<span class="tag">${children}</span>`;

/** A moment as "3 min ago", which goes on counting; the absolute time is in the title. */
export function Ago({ at, bare }) {
  useShared((shared) => shared.heard);
  if (milliseconds(at) === null) return html`<span>never</span>`;
  const words = bare ? duration(Math.max(0, secondsSince(at))) : ago(at);
  return html`<time dateTime=${new Date(milliseconds(at)).toISOString()} title=${dateTime(at)}>${words}</time>`;
}

/** A time of day; date and zone are in the title. */
export function Clock({ at, digits }) {
  useShared((shared) => shared.zone);
  if (milliseconds(at) === null) return html`<span>–</span>`;
  return html`<time dateTime=${new Date(milliseconds(at)).toISOString()} title=${dateTime(at)}>${clock(at, digits)}</time>`;
}

/** Copies a text; the browser may refuse, for example without TLS, and then the text is offered. */
export async function copyText(text, what = "Copied") {
  try {
    await navigator.clipboard.writeText(text);
    toast(what);
  } catch {
    window.prompt("Copy this text:", text);
  }
}

/** "Copy as curl" of a request {method, path, node, query, body, type, accept}, or of a function giving it. */
export function CurlButton({ request, kind = "bare" }) {
  return html`<${Button} kind=${kind} icon="copy" onClick=${() => {
    const { method = "GET", path, ...options } = typeof request === "function" ? request() : request;
    copyText(curl(method, path, options), "Copied as curl");
  }}>Copy as curl<//>`;
}

/** A command or address in a box, with a button that copies it. */
export function Command({ prompt, children }) {
  return html`<div class="command"><code>${prompt && html`<span class="dim">${prompt} </span>`}${visible(children)}</code>
    <${Button} kind="bare" icon="copy" label="Copy" onClick=${() => copyText(String(children))} /></div>`;
}

/** A button that opens a menu. `items` is [{label, icon, risk, disabled, testid, run}, …]; null items are left out. */
export function Menu({ label, icon = "dots", items, text, kind = "bare", testid }) {
  const [open, setOpen] = useState(false);
  const box = useRef(null);
  useEffect(() => {
    if (!open) return undefined;
    box.current.querySelector("[role=menuitem]:not(:disabled)")?.focus();
    const outside = (event) => { if (!box.current?.contains(event.target)) setOpen(false); };
    document.addEventListener("pointerdown", outside);
    return () => document.removeEventListener("pointerdown", outside);
  }, [open]);
  function key(event) {
    if (event.key === "Escape" && open) {
      event.stopPropagation();
      setOpen(false);
      box.current.querySelector("button").focus();
    }
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!step || !open) return;
    event.preventDefault();
    const found = [...box.current.querySelectorAll("[role=menuitem]:not(:disabled)")];
    found[(found.indexOf(document.activeElement) + step + found.length) % found.length]?.focus();
  }
  return html`<div class="menu" ref=${box} onKeyDown=${key}>
    <${Button} kind=${kind} icon=${text ? null : icon} label=${text ? null : label} aria-haspopup="menu"
      aria-expanded=${String(open)} testid=${testid} onClick=${() => setOpen(!open)}>
      ${visible(text)}${text && html`<${Icon} name="down" />`}<//>
    ${open && html`<div class="menu-items" role="menu" aria-label=${label}>
      ${items.filter(Boolean).map((item) => html`<button type="button" role="menuitem" key=${item.label}
        class=${item.risk ? "risk" : null} disabled=${item.disabled} title=${item.why} data-testid=${item.testid}
        onClick=${() => { setOpen(false); item.run(); }}>
        ${item.icon && html`<${Icon} name=${item.icon} />`}${visible(item.label)}</button>`)}
    </div>`}
  </div>`;
}
