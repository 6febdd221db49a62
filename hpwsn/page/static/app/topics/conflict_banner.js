// Tells that others changed a topic while it was edited here: what it was, is now, and would become; and asks which
// shall hold. Nothing is written before that.
import { html } from "../html.js";
import { Icon } from "../icons.js";
import { Button, Tag, Text } from "../parts/controls.js";
import { dropConflict, wordsOfValue } from "./changes.js";

const LONGEST = 80;

function Value({ field, value }) {
  const words = wordsOfValue(field, value);
  return html`<${Tag}><${Text}>${words.length > LONGEST ? `${words.slice(0, LONGEST)}…` : words}<//><//>`;
}

function Field({ field, base, theirs, yours, wanted }) {
  return html`<span>${field} was <${Value} field=${field} value=${base} />, is ${theirs === base ? "still" : "now"}${" "}
    <${Value} field=${field} value=${theirs} />${wanted && html`, yours is <${Value} field=${field} value=${yours} />`}</span>`;
}

/** What happened to the topic, as a sentence. */
function what({ base, theirs, mine }) {
  if (!theirs) return "was removed or renamed elsewhere while you edited it";
  if (mine.kind === "add") return "was added elsewhere, or exists already; choose another name";
  return base ? "was edited elsewhere while you edited it" : "was edited elsewhere";
}

/** Words of the two buttons: those of the value, if it is one short value. */
function verbs({ theirs, mine, fields, again }) {
  const [only] = fields;
  const short = fields.length === 1 && only.wanted && only.field !== "description";
  const apply = {
    set: theirs ? "Apply yours" : "Add it again", rename: theirs ? "Rename anyway" : "Add it again",
    remove: "Remove anyway", move: "Move anyway",
  }[mine.kind];
  return {
    keep: theirs && again ? (short ? `Keep ${wordsOfValue(only.field, only.theirs)}` : "Keep theirs") : "Close",
    apply: again && (theirs || ["set", "rename"].includes(mine.kind))
      ? (short && theirs ? `Apply ${wordsOfValue(only.field, only.yours)}` : apply) : null,
  };
}

export function ConflictBanner({ conflict, edits }) {
  const { keep, apply } = verbs(conflict);
  const { topic, theirs, mine, fields } = conflict;
  return html`<div class="note topics-conflict" role="alert" data-testid="conflict" tabindex="-1">
    <${Icon} name="dead-letters" />
    <p><b><${Text}>${topic}<//></b> ${what(conflict)}${theirs && fields.length > 0 ? ": " : ""}
      ${theirs && fields.map((each, index) => html`${index > 0 && "; "}<${Field} key=${each.field} ...${each} />`)}${mine.words && theirs && mine.kind !== "add"
        ? html`; <${Text}>${mine.words}<//>` : ""}. Nothing is written.</p>
    <${Button} testid="keep-theirs" onClick=${() => { dropConflict(edits); conflict.keep(); }}>${keep}<//>
    ${apply && html`<${Button} testid="apply-yours" onClick=${() => { dropConflict(edits); conflict.again(theirs); }}>${apply}<//>`}
  </div>`;
}
