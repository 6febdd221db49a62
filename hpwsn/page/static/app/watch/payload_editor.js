// The editor of a payload: JSON or XML by its first character, checked while it is typed. Ctrl+Enter sends.
import { classes, html, useEffect, useId, useMemo, useRef, useState } from "../html.js";
import { counted, visible } from "../format.js";
import { Icon } from "../icons.js";
import { MarkedText } from "./marked_text.js";
import { checkPayload, coloured, kindOf, marked } from "./payload_check.js";

/** The check of XML once it is loaded, which begins with the first XML. */
function useXmlCheck(kind) {
  const [check, setCheck] = useState(null);
  useEffect(() => {
    if (kind !== "xml" || check) return;
    import("./xml_text.js").then(({ checkXml }) => setCheck(() => checkXml), () => {});
  }, [kind]);
  return check;
}

/** The kind and the check of a payload; `chosen` is the kind that the user chose, if any. */
export function usePayloadCheck(text, chosen) {
  const kind = chosen ?? kindOf(text);
  const checkXml = useXmlCheck(kind);
  return useMemo(() => {
    const check = checkPayload(text, kind, checkXml);
    return { kind, ...check, wrong: check.error !== null, ready: !check.empty && !check.error };
  }, [text, kind, checkXml]);
}

function Verdict({ check: { error, empty, events } }) {
  if (error || empty) return null;
  if (events === null) return html`<span class="dim">the node checks it</span>`;
  return html`<span class="compose-valid ok"><${Icon} name="check" />valid${events > 1 && `, ${counted(events, "event")}`}</span>`;
}

/** `check` is of usePayloadCheck; `children` stand in the foot, beside the kind and what is wrong. */
export function PayloadEditor({ text, check, onText, onKind, onSend, inputRef, children }) {
  const own = useRef(null);
  const ref = inputRef ?? own;
  const told = useId();
  const { kind, error } = check;
  const parts = useMemo(() => {
    const found = coloured(text, kind);
    return error ? marked(found, error.index) : found;
  }, [text, kind, error]);
  return html`<div class=${classes("compose", error && "invalid")}>
    <${MarkedText} lines parts=${parts} inputRef=${ref}>
      <textarea class="marked-input" ref=${ref} rows="2" value=${text} data-testid="publish-payload" aria-label="Payload"
        placeholder=${'{"value": 1}  or  <value>1</value>'} aria-invalid=${error ? "true" : null} aria-describedby=${told}
        autocomplete="off" autocapitalize="off" spellcheck=${false} onInput=${(event) => onText(event.target.value)}
        onKeyDown=${(event) => {
          if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
          event.preventDefault();
          onSend();
        }}></textarea>
    <//>
    <p id=${told} class="compose-wrong bad" role=${error ? "alert" : null}>
      ${error && visible(`Line ${error.line}, column ${error.column}: ${error.message}.`)}</p>
    <div class="compose-foot">
      <select class="bare" aria-label="Kind of payload" value=${kind} onChange=${(event) => onKind(event.target.value)}>
        <option value="json">JSON</option><option value="xml">XML</option></select>
      <${Verdict} check=${check} />
      ${children}
    </div>
  </div>`;
}
