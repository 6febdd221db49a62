// Keys of the whole page: `/` find, `g` and a letter for a view, `?` help, `p` publish. Views add their own.
import { html } from "./html.js";
import { address, change, go } from "./address.js";
import { Dialog, openDialog } from "./parts/dialogs.js";
import { state } from "./state.js";
import { VIEWS } from "./views.js";

const CHORD = 1500;
let began = 0;

const typing = (element) => element.closest?.("input, textarea, select, [contenteditable]");

/** The keys of the page, as [keys, words]. */
const KEYS = [
  ["/", "Find a topic, subscription or node"], ["p", "Publish on the selected topic"], ["?", "This help"],
  ["Esc", "Close what is open"], ["↑ ↓ ← →", "Move in the topic tree, open and close branches"],
  ["F2", "Rename the selected topic"], ["Insert", "Add a topic below it"], ["Delete", "Remove it"],
  ["Ctrl X, Ctrl V", "Move it below another topic"], ["Ctrl Z", "Undo the last edit of topics"],
];

function Help({ close }) {
  return html`<${Dialog} title="Keys" close=${close}>
    <dl class="keys">
      ${Object.values(VIEWS).map((view) => html`<dt key=${view.title}><kbd>g</kbd> <kbd>${view.letter}</kbd></dt><dd>${view.title}</dd>`)}
      ${KEYS.map(([keys, words]) => html`<dt key=${keys}><kbd>${keys}</kbd></dt><dd>${words}</dd>`)}
    </dl>
    <div class="dialog-foot"><span></span><button type="button" class="button first" data-testid="cancel" onClick=${() => close()}>Close</button></div>
  <//>`;
}

export const showHelp = () => openDialog(Help);

function publish() {
  const { view, query } = address();
  state.set({ publishing: true });
  if (view === "topics") change({ publish: "1", tab: query.tab });
  else go("topics", { publish: "1" });
}

function pressed(event) {
  const taken = event.ctrlKey || event.metaKey || event.altKey || typing(event.target);
  if (taken || document.querySelector("dialog[open]")) return;
  const chord = Date.now() - began < CHORD;
  began = 0;
  const found = chord && Object.entries(VIEWS).find(([, view]) => view.letter === event.key);
  if (found) go(found[0]);
  else if (event.key === "/") document.getElementById("find")?.focus();
  else if (event.key === "?") showHelp();
  else if (event.key === "p") publish();
  else if (event.key === "g") {
    began = Date.now();
    return;
  } else return;
  event.preventDefault();
}

export function startKeys() {
  document.addEventListener("keydown", pressed);
}
