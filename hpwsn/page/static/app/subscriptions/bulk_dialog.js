// One action on several subscriptions: names the effect, then shows how far it is, and every failure by itself.
import { html, useRef, useState } from "../html.js";
import { curl } from "../api.js";
import { counted } from "../format.js";
import { wordsOf } from "../state.js";
import { Button, Text, copyText } from "../parts/controls.js";
import { Dialog, openDialog } from "../parts/dialogs.js";
import { toast } from "../parts/toasts.js";
import { ACTIONS, endEffect, requestsOf, run } from "./actions.js";
import { shortConsumer } from "./words.js";

const TOGETHER = 4;

/** Asks for an action ("pause", "resume", "retry", "end") on items, and does it; returns the keys that were done. */
export const askForAll = (action, items) => openDialog(BulkDialog, { action, items });

/** Does `work(item)` for all items, a few at a time; `told(done, failures)` after each, until `stopped()`. */
async function forEach(items, work, told, stopped) {
  const rest = [...items];
  const failures = [];
  const done = [];
  const worker = async () => {
    for (let item = rest.shift(); item && !stopped(); item = rest.shift()) {
      try {
        await work(item);
        done.push(item);
      } catch (error) {
        failures.push({ item, error });
      }
      told(done, failures);
    }
  };
  await Promise.all(Array.from({ length: TOGETHER }, worker));
  return { done, failures };
}

/** The requests of an action on all items as commands, one a line. */
const commands = (items, action) => items.map((item) => {
  const { method, path, ...options } = requestsOf(item)[action];
  return curl(method, path, options);
}).join("\n");

function Failures({ failures }) {
  return html`<ul class="failures" data-testid="failures">
    ${failures.slice(0, 100).map(({ item, error }) => html`<li key=${item.key}>
      <b><${Text}>${shortConsumer(item)}<//></b> <span class="mono dim">${item.id}</span><br />${wordsOf(error)}</li>`)}
    ${failures.length > 100 && html`<li key="more">and ${counted(failures.length - 100, "other")}</li>`}
  </ul>`;
}

function BulkDialog({ close, action, items }) {
  const { verb, done: past, danger, effect } = ACTIONS[action];
  const [stage, setStage] = useState({ name: "asking", done: [], failures: [] });
  const stopped = useRef(false);
  const what = counted(items.length, "subscription");
  const finish = (done) => close(done.map((item) => item.key));

  async function start() {
    setStage({ name: "running", done: [], failures: [] });
    const told = (done, failures) => setStage({ name: "running", done: [...done], failures: [...failures] });
    const found = await forEach(items, (item) => run(requestsOf(item)[action]), told, () => stopped.current);
    toast(`${past} ${found.done.length} of ${what}`, { bad: found.failures.length > 0 });
    if (found.failures.length) setStage({ name: "failed", ...found });
    else finish(found.done);
  }

  const { name, done, failures } = stage;
  const tried = done.length + failures.length;
  const leave = () => {
    stopped.current = true;
    if (name === "asking") close();
    else if (name === "failed") finish(done);
  };
  return html`<${Dialog} title=${`${verb} ${what}?`} close=${leave}>
    <div class="dialog-body">
      ${name === "asking" && html`<p>${action === "end" ? endEffect(items) : effect}</p>
        <ul class="chosen">${items.slice(0, 8).map((item) => html`<li key=${item.key} class="clip"><${Text}>${shortConsumer(item)}<//></li>`)}
          ${items.length > 8 && html`<li key="more">and ${counted(items.length - 8, "other")}</li>`}</ul>`}
      ${name !== "asking" && html`<p role="status">${past} ${done.length} of ${what}${failures.length ? `, ${failures.length} failed` : ""}.</p>
        <progress max=${items.length} value=${tried} aria-label="Progress"></progress>`}
      ${failures.length > 0 && html`<${Failures} failures=${failures} />`}
    </div>
    <div class="dialog-foot">
      <span class="dim"></span>
      ${name === "asking" && html`<${Button} kind="bare" icon="copy" onClick=${() => copyText(commands(items, action), "Copied as curl")}>Copy as curl<//>
        <${Button} testid="cancel" onClick=${leave}>Cancel<//>
        <${Button} kind=${danger ? "danger" : "first"} testid="ok" autofocus=${!danger} onClick=${start}>${verb} ${what}<//>`}
      ${name === "running" && html`<${Button} testid="cancel" onClick=${leave}>Stop<//>`}
      ${name === "failed" && html`<${Button} kind="first" testid="cancel" onClick=${leave}>Close<//>`}
    </div>
  <//>`;
}
