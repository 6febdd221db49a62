// The filter of a list of events: checked by the node while it is typed, applied by Enter. A wrong one is marked at its
// column, and the last valid one stays in force.
import { classes, html, useEffect, useId, useRef, useState } from "../html.js";
import { change, useParameter } from "../address.js";
import { send } from "../api.js";
import { oneLine } from "../format.js";
import { Icon } from "../icons.js";
import { Button, Tag } from "../parts/controls.js";
import { MarkedText } from "./marked_text.js";
import { marked } from "./payload_check.js";

const PAUSE = 150;

/** The filter in the address; undefined for none. */
export const useFilter = () => useParameter("filter") || undefined;

/** Checks a filter: {dialect} or {error, column}; anything but a wrong filter is thrown. */
async function check(filter, topic, node) {
  try {
    return await send("POST", "filters/check", { node, body: { filter, topic } });
  } catch (problem) {
    if (problem.status !== 400) throw problem;
    return { error: problem.message, column: problem.body.column ?? null };
  }
}

/** What is wrong with a filter, without the filter itself and what is around it. */
export function wordsOfWrong(filter, { error, column }) {
  const place = column === null ? -1 : error.lastIndexOf(`column ${column}: `);
  const plain = place >= 0 ? error.slice(place + `column ${column}: `.length) : error.replace(/^.* filter: /s, "");
  const word = column === null ? null : /^[\p{L}_][\p{L}\p{N}_.-]*/u.exec([...filter].slice(column - 1).join(""))?.[0];
  const said = word && plain.includes("a text in quotes") ? `put texts in quotes, "${word}"` : plain;
  const sentence = oneLine(said).replace(/[.;]$/, "");
  return column === null ? `${sentence[0]?.toUpperCase() ?? ""}${sentence.slice(1)}.` : `Column ${column}: ${sentence}.`;
}

/** The result of the check of what is typed; null while it is under way or empty. */
function useCheck(text, topic, node) {
  const [found, setFound] = useState({ text: null, result: null });
  const trimmed = text.trim();
  useEffect(() => {
    if (!trimmed) return undefined;
    let current = true;
    const timer = setTimeout(() => check(text, topic, node)
      .then((result) => current && setFound({ text, result })).catch(() => {}), PAUSE);
    return () => {
      current = false;
      clearTimeout(timer);
    };
  }, [text, topic, node]);
  return [trimmed && found.text === text ? found.result : null, (result) => setFound({ text, result })];
}

/** The text of the field, with what is wrong as a part of its own. */
function partsOf(text, wrong) {
  if (!wrong || wrong.column === null) return [["", text]];
  return marked([["", text]], [...text].slice(0, wrong.column - 1).join("").length);
}

/** What the check says of what is typed. */
function Told({ text, result, applied }) {
  if (result?.error) {
    const runs = applied ? "The last valid filter still runs." : "All messages are still shown.";
    return `${wordsOfWrong(text, result)} ${text.trim() === applied ? "" : runs}`;
  }
  if (!result || text.trim() === applied) return null;
  return html`Press <kbd>Enter</kbd> to apply it.`;
}

/**
 * The field; it writes `filter` into the address. `testid` names its input. `fromNow` is called at Enter, and what it
 * returns just before the filter is applied.
 */
export function FilterField({ topic, node, testid, fromNow = () => () => {} }) {
  const applied = useFilter() ?? "";
  const [text, setText] = useState(applied);
  const [failed, setFailed] = useState(null);
  const [result, setResult] = useCheck(text, topic, node);
  const input = useRef(null);
  const told = useId();
  const seen = useRef(applied);
  useEffect(() => {
    if (seen.current !== applied) setText(applied);
    seen.current = applied;
  }, [applied]);

  const apply = (filter, begin = fromNow()) => {
    if (filter !== applied) begin();
    seen.current = filter;
    change({ filter: filter || undefined }, { replace: true });
  };
  async function enter() {
    const wanted = text;
    const begin = fromNow();
    if (!wanted.trim()) return apply("", begin);
    try {
      const found = result ?? await check(wanted, topic, node);
      setFailed(null);
      setResult(found);
      if (found.ok) apply(wanted.trim(), begin);
    } catch (problem) {
      setFailed(problem);
    }
    return undefined;
  }
  function key(event) {
    if (event.key === "Enter" && !event.isComposing) enter();
    if (event.key !== "Escape" || text === applied) return;
    event.stopPropagation();
    setText(applied);
  }
  function clear() {
    setText("");
    apply("");
    input.current?.focus();
  }

  const wrong = result?.error ? result : null;
  const bad = Boolean(wrong || failed);
  return html`<div class="filter">
    <div class=${classes("field mono", wrong && "invalid")}>
      <${Icon} name="filter" />
      <${MarkedText} parts=${partsOf(text, wrong)} inputRef=${input}>
        <input type="text" class="marked-input" ref=${input} value=${text} data-testid=${testid} aria-label="Filter of messages"
          placeholder="Filter, such as level > 0.6" aria-invalid=${wrong ? "true" : null} aria-describedby=${told}
          autocomplete="off" autocapitalize="off" spellcheck=${false} onInput=${(event) => setText(event.target.value)}
          onKeyDown=${key} />
      <//>
      ${result?.dialect === "xpath" && html`<${Tag}>XPath<//>`}
      ${text && html`<${Button} kind="bare" icon="close" label="Clear the filter" onClick=${clear} />`}
    </div>
    <p class=${bad ? "filter-told bad" : "filter-told dim"} id=${told} role=${bad ? "alert" : null}>
      ${failed ? failed.message : html`<${Told} text=${text} result=${result} applied=${applied} />`}</p>
  </div>`;
}
