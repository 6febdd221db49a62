// The field in which the name of a topic is typed: in the row of the tree, or on a phone in the panel.
//
// Enter makes the edit, Escape cancels. A name that is not possible is marked while it is typed, with the reason;
// what a rename does to subscriptions is told before Enter.
import { classes, html, useEffect, useId, useLayoutEffect, useRef, useState } from "../html.js";
import { counted } from "../format.js";
import { wordsOf } from "../state.js";
import { useStore } from "../store.js";
import { CurlButton, Text } from "../parts/controls.js";
import { dropConflict } from "./changes.js";
import { lastStep, problemOfName } from "./topic_names.js";
import { draftedTopic } from "./visible_rows.js";

const PAUSE = 250;

/** Why the drafted name is not possible, or null. */
function problemOf(draft, text, tree) {
  const renames = draft.kind === "rename";
  const problem = problemOfName(text, { parent: draft.parent, deep: !renames });
  if (problem) return problem;
  const topic = draftedTopic(draft, text);
  const existing = topic !== draft.topic && tree.items.get(topic);
  const isThere = existing && !existing.unread && (existing.declared || renames);
  // A topic that others have just added is a conflict, which Enter shows.
  return isThere && (renames || draft.began.has(topic)) ? `${topic} exists already` : null;
}

/** What renaming to this name would do to subscriptions, and why the node refuses it: {effect, refused}. */
function useTrial(draft, text, actions, valid) {
  const [told, setTold] = useState({});
  useEffect(() => {
    setTold({});
    if (draft.kind !== "rename" || !valid || draftedTopic(draft, text) === draft.topic) return undefined;
    let current = true;
    const tell = (found) => current && setTold(found);
    const timer = setTimeout(() => actions.effectOfDraft(draft, text).then(({ subscriptions: lost }) => {
      if (lost) tell({ effect: `${counted(lost, "subscription")} then ${lost === 1 ? "matches" : "match"} no topic` });
    }).catch((error) => {
      // What others did to the topic itself is a conflict, which is told elsewhere.
      const taken = (error.body?.conflicts ?? []).find((each) => each.topic === draftedTopic(draft, text));
      if (taken) tell({ refused: `${taken.topic} exists already` });
      else if (error.status === 400 || error.status === 401) tell({ refused: wordsOf(error) });
    }), PAUSE);
    return () => {
      current = false;
      clearTimeout(timer);
    };
  }, [draft, text, valid]);
  return told;
}

export function NameInput({ draft, edits, actions, tree }) {
  const [text, setText] = useState(draft.kind === "rename" ? lastStep(draft.topic) : "");
  const [tried, setTried] = useState(false);
  const input = useRef(null);
  const hint = useId();
  const conflict = useStore(edits.store, (found) => found.conflict);
  const busy = useStore(edits.store, (found) => found.busy);
  const name = text.trim();
  const problem = problemOf(draft, name, tree);
  const { effect, refused } = useTrial(draft, name, actions, !problem);
  const wrong = refused ?? (name !== "" || tried || draft.kind === "rename" ? problem : null);

  useLayoutEffect(() => {
    input.current.focus({ preventScroll: true });
    input.current.select();
    input.current.scrollIntoView({ block: "nearest" });
  }, []);
  useEffect(() => { edits.store.set({ typed: name }); }, [name]);

  function type(event) {
    setText(event.target.value);
    if (conflict?.mine.kind === "add") dropConflict(edits);
  }

  function key(event) {
    event.stopPropagation();
    if (event.isComposing) return;
    if (event.key === "Escape") actions.cancel();
    if (event.key !== "Enter") return;
    event.preventDefault();
    setTried(true);
    // A conflict waits for a decision: nothing is written before that.
    if (conflict) document.querySelector("[data-testid=conflict]")?.focus();
    else if (!problem && !busy) actions.submit(draft, name);
  }

  const verb = draft.kind === "rename" ? "renames" : "adds";
  return html`<span class="name-input" onClick=${(event) => event.stopPropagation()}>
    <input ref=${input} class=${classes("input", wrong && "invalid")} name="name" data-testid="name" value=${text}
      aria-label=${draft.kind === "rename" ? `New name of ${draft.topic}` : `Name of the topic below ${draft.parent || "the root"}`}
      aria-invalid=${wrong ? "true" : null} aria-describedby=${hint} autocomplete="off" autocapitalize="off"
      spellcheck=${false} onInput=${type} onKeyDown=${key} />
    <span id=${hint} class=${classes("name-hint", wrong && "bad")} role="status">
      ${wrong ? html`<${Text}>${wrong}<//>` : html`<${Text}>${draftedTopic(draft, name || "…")}<//> ·${" "}
        ${effect && html`<span class="warn">${effect} · </span>`}
        <kbd>Enter</kbd> ${verb} it, <kbd>Esc</kbd> cancels`}</span>
    ${!problem && html`<${CurlButton} request=${() => actions.requestOfDraft(draft, name)} />`}
  </span>`;
}
