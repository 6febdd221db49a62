// Starts a service with its definition: the node checks it, and says what is wrong with which line.
import { html, useId, useState } from "../html.js";
import { send } from "../api.js";
import { visible } from "../format.js";
import { wordsOf } from "../state.js";
import { Button, CurlButton, Text } from "../parts/controls.js";
import { Dialog, openDialog } from "../parts/dialogs.js";

const MOST = 20;
const EXAMPLE = `uri = "urn:example:flow"
topic = "traffic:flow"
description = "Vehicles a minute at each camera"

[inputs.anpr]
source = "topic"
topic = "traffic:anpr"
schema = "cid STRING, vid STRING, time TIMESTAMP"

[[ops]]
op = "count"
by = "cid"
window = "60 s"
output = "flow"
`;

/** Where a problem of a definition is: "line 3, inputs.anpr, schema: ". */
function placeOf({ line, part, attribute }) {
  const words = [line && `line ${line}`, part, attribute].filter(Boolean).join(", ");
  return words && `${words}: `;
}

function StartService({ node, close }) {
  const [text, setText] = useState(EXAMPLE);
  const [problem, setProblem] = useState(null);
  const [busy, setBusy] = useState(false);
  const errors = useId();
  const request = { method: "POST", path: "streams", node, body: text, type: "application/toml" };
  async function start() {
    setBusy(true);
    try {
      const { uri } = await send("POST", "streams", { node, body: text, type: request.type });
      close(uri);
    } catch (error) {
      setProblem(error);
      setBusy(false);
    }
  }
  const problems = problem?.body?.problems ?? [];
  return html`<${Dialog} title="Start a service" close=${() => close()} wide>
    <div class="dialog-body">
      <p>The node <${Text}>${node}<//> checks the definition, runs its job with Spark, and starts it again if it
        ends.</p>
      <label>Definition in TOML <textarea class="definition mono" rows="16" spellcheck=${false} value=${text}
        data-testid="definition"
        aria-invalid=${problem ? "true" : null} aria-describedby=${problem ? errors : null}
        onInput=${(event) => { setText(event.target.value); setProblem(null); }}></textarea></label>
      ${problem && html`<div class="note bad" role="alert" id=${errors} data-testid="definition-problems"><div>
        ${problems.length ? html`<ul>${problems.slice(0, MOST).map((each, index) => html`<li key=${index}>
          ${visible(`${placeOf(each)}${each.message}`)}</li>`)}</ul>`
          : visible(wordsOf(problem))}</div></div>`}
    </div>
    <div class="dialog-foot"><span></span><${CurlButton} request=${request} />
      <${Button} testid="cancel" onClick=${() => close()}>Cancel<//>
      <${Button} kind="first" testid="ok" disabled=${busy || !text.trim()} onClick=${start}>
        ${busy ? "Checking…" : "Start service"}<//></div>
  <//>`;
}

/** Asks for a definition; the URI of the service that was started, or undefined. */
export const startService = (node) => openDialog(StartService, { node });
