// Dialogs: one at a time, modal, with the browser's own focus trap. `ask` names an action's effect before it is
// done.
import { html, useEffect, useId, useRef, useState } from "../html.js";
import { createStore, useStore } from "../store.js";
import { wordsOf } from "../state.js";
import { Button, CurlButton } from "./controls.js";

const open = createStore({ dialog: null });

/** Opens a component as a dialog; it gets `close(result)`. Returns the result when it closes. */
export function openDialog(component, props = {}) {
  open.get().dialog?.resolve(undefined);
  return new Promise((resolve) => { open.set({ dialog: { component, props, resolve } }); });
}

/**
 * Asks before an action: `title`, `body` (text or elements), `verb` with its object ("Remove 4 topics"),
 * `danger`, `note`, and `request` for "Copy as curl". `run` does it: the dialog stays, with the error, if it fails.
 * Returns what `run` returned, or undefined if it was cancelled.
 */
export const ask = (options) => openDialog(Confirmation, options);

/** The frame of a dialog; Escape closes it. */
export function Dialog({ title, close, children, wide }) {
  const ref = useRef(null);
  const heading = useId();
  useEffect(() => {
    const before = document.activeElement;
    ref.current.showModal();
    return () => before?.isConnected && before.focus?.();
  }, []);
  return html`<dialog ref=${ref} role="dialog" class=${wide ? "dialog wide" : "dialog"} aria-labelledby=${heading}
    aria-modal="true" onCancel=${(event) => { event.preventDefault(); close(); }}>
    <h2 id=${heading}>${title}</h2>${children}</dialog>`;
}

function Confirmation({ close, title, body, verb, danger, note, request, run }) {
  const [error, setError] = useState(null);
  const [busy, setBusy] = useState(false);
  async function go() {
    setBusy(true);
    try {
      close(run ? (await run()) ?? true : true);
    } catch (problem) {
      setError(problem);
      setBusy(false);
    }
  }
  const cancel = () => { if (!busy) close(); };
  return html`<${Dialog} title=${title} close=${cancel}>
    <div class="dialog-body">${typeof body === "string" ? html`<p>${body}</p>` : body}</div>
    ${error && html`<p class="note bad" role="alert">${wordsOf(error)}</p>`}
    <div class="dialog-foot">
      <span class="dim">${note}</span>
      ${request && html`<${CurlButton} request=${request} />`}
      <${Button} testid="cancel" disabled=${busy} autofocus=${Boolean(danger)} onClick=${cancel}>Cancel<//>
      <${Button} kind=${danger ? "danger" : "first"} testid="ok" disabled=${busy} autofocus=${!danger} onClick=${go}>${verb}<//>
    </div>
  <//>`;
}

/** The place of the open dialog; once in the page. */
export function Dialogs() {
  const dialog = useStore(open, (found) => found.dialog);
  if (!dialog) return null;
  const close = (result) => {
    if (open.get().dialog === dialog) open.set({ dialog: null });
    dialog.resolve(result);
  };
  return html`<${dialog.component} key=${dialog} ...${dialog.props} close=${close} />`;
}
