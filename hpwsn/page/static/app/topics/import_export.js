// Import of topics from a text or file, with the difference before anything is done; and export as a file or text.
import { html, useRef, useState } from "../html.js";
import { get, send } from "../api.js";
import { count, counted } from "../format.js";
import { wordsOf } from "../state.js";
import { Button, CurlButton, Segment, Text, copyText } from "../parts/controls.js";
import { Dialog, openDialog } from "../parts/dialogs.js";
import { toast } from "../parts/toasts.js";
import { makeEdit, wordsOfValue } from "./changes.js";

const LISTED = 100;
const LARGEST = 4 << 20;
const SIGNS = { added: "+", changed: "~", removed: "−" };

/** The format of a text: LDIF has lines such as `dn: …`. */
export const formatOf = (text) => (/^(version:|dn::?) /im.test(text) ? "ldif" : "toml");

/** Offers the topics of a node as a file. */
export async function download(node, format) {
  try {
    const { text } = await get("topics/export", { node, query: { format } });
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([text], { type: "text/plain" }));
    link.download = `topics.${format}`;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
  } catch (error) {
    toast(wordsOf(error), { bad: true });
  }
}

/** Copies the topics of a node as a text. */
export async function copyExport(node, format) {
  try {
    const { text } = await get("topics/export", { node, query: { format } });
    await copyText(text, `Copied the topics as ${format.toUpperCase()}`);
  } catch (error) {
    toast(wordsOf(error), { bad: true });
  }
}

/** The import as a dialog. */
export const askToImport = (edits) => openDialog(Import, { edits });

const requestOf = (edits, text, mode, dryRun) => ({
  method: "POST", path: "topics/import", node: edits.node, query: { mode, ...(dryRun && { dry_run: "true" }) },
  body: { format: formatOf(text), text },
});

const FIELDS = ["description", "routing", "visibility"];

/** What changes of a topic, as words. */
function wordsOfChange({ before, after }) {
  return FIELDS.filter((field) => before[field] !== after[field])
    .map((field) => `${field} ${wordsOfValue(field, before[field])} → ${wordsOfValue(field, after[field])}`).join(", ");
}

function Difference({ found }) {
  const lines = ["added", "changed", "removed"].flatMap((kind) => found[kind].map((each) => ({ kind, each })));
  const total = found.totals.added + found.totals.changed + found.totals.removed;
  const { subscriptions } = found.effect;
  return html`<p role="status" data-testid="difference">${count(found.totals.added)} added, ${count(found.totals.changed)} changed, ${count(found.totals.removed)} removed.
      ${subscriptions > 0 && html` <b>${counted(subscriptions, "subscription")} then ${subscriptions === 1 ? "matches" : "match"} no topic.</b>`}</p>
    ${total > 0 && html`<div class="topics-below"><table class="topics-difference"><tbody>
      ${lines.slice(0, LISTED).map(({ kind, each }) => html`<tr key=${`${kind} ${each.topic}`} class=${kind}>
        <td><span aria-label=${kind}>${SIGNS[kind]}</span></td><td><${Text}>${each.topic}<//></td>
        <td class="clip dim"><${Text}>${kind === "changed" ? wordsOfChange(each) : each.description}<//></td></tr>`)}
    </tbody></table></div>`}
    ${total > LISTED && html`<p class="dim">and ${count(total - Math.min(lines.length, LISTED))} more</p>`}`;
}

function Import({ edits, close }) {
  const [text, setText] = useState("");
  const [mode, setMode] = useState("merge");
  const [found, setFound] = useState(null);
  const [error, setError] = useState(null);
  const [busy, setBusy] = useState(false);
  const file = useRef(null);
  const edited = (set) => (value) => { set(value); setFound(null); setError(null); };
  const total = found ? found.totals.added + found.totals.changed + found.totals.removed : 0;

  async function guarded(work) {
    setBusy(true);
    setError(null);
    try {
      await work();
    } catch (problem) {
      setError(problem);
    }
    setBusy(false);
  }
  const compare = () => guarded(async () => {
    const { method, path, ...options } = requestOf(edits, text, mode, true);
    setFound(await send(method, path, options));
  });
  const run = () => guarded(async () => {
    await makeEdit(edits, { request: requestOf(edits, text, mode, false), words: `Imported ${counted(total, "topic")}` });
    close(true);
  });
  async function read([chosen]) {
    if (!chosen) return;
    if (chosen.size > 4 * LARGEST) setError(new Error(`${chosen.name} has ${count(chosen.size)} bytes; it is too large to be topics.`));
    else edited(setText)(await chosen.text());
  }
  const problems = error?.body?.problems ?? [];
  return html`<${Dialog} title="Import topics" close=${() => close()} wide>
    <div class="dialog-body">
      <label>Topics as TOML or LDIF, such as an export
        <textarea rows=${found ? 5 : 12} class="mono" data-testid="import-text" value=${text} spellcheck=${false}
          aria-invalid=${error ? "true" : null} onInput=${(event) => edited(setText)(event.target.value)}
          onDragOver=${(event) => event.preventDefault()}
          onDrop=${(event) => { if (event.dataTransfer.files.length) { event.preventDefault(); read(event.dataTransfer.files); } }}></textarea></label>
      <div class="tools">
        <${Button} icon="upload" onClick=${() => file.current.click()}>Choose a file…<//>
        <input ref=${file} type="file" hidden accept=".toml,.ldif,text/plain" data-testid="import-file" aria-label="File with topics"
          onChange=${(event) => { read(event.target.files); event.currentTarget.value = ""; }} />
        <${Segment} label="What happens to other topics" value=${mode} onChange=${edited(setMode)}
          options=${[["merge", "Merge"], ["replace", "Replace all"]]} />
        <span class="dim">${mode === "merge" ? "Other topics stay." : "All other topics are removed."} ${text && `This is ${formatOf(text).toUpperCase()}.`}</span>
      </div>
      ${found && html`<${Difference} found=${found} />`}
      ${error && html`<div class="note bad" role="alert">${problems.length > 1
        ? html`<ul>${problems.slice(0, 20).map((each, index) => html`<li key=${index}><${Text}>${each}<//></li>`)}</ul>`
        : html`<p><${Text}>${wordsOf(error)}<//></p>`}</div>`}
    </div>
    <div class="dialog-foot"><span class="dim">${found ? "You can undo this." : "The difference is shown before anything changes."}</span>
      <${CurlButton} request=${() => requestOf(edits, text, mode, !found)} />
      <${Button} testid="cancel" onClick=${() => close()}>Cancel<//>
      ${found ? html`<${Button} kind=${found.totals.removed ? "danger" : "first"} testid="ok" disabled=${busy || !total} onClick=${run}>
          ${total ? `Import ${counted(total, "topic")}` : "Nothing to import"}<//>`
        : html`<${Button} kind="first" testid="compare" disabled=${busy || (!text.trim() && mode === "merge")} onClick=${compare}>Compare<//>`}
    </div>
  <//>`;
}
