// The filter "Topic: any": a chip that opens a field with the topics that match what is typed.
import { html, useEffect, useRef, useState } from "../html.js";
import { get } from "../api.js";
import { Icon } from "../icons.js";
import { useNode } from "../state.js";
import { Text } from "../parts/controls.js";

const MOST = 8;
const PAUSE = 150;

function useTopics(open, text) {
  const node = useNode();
  const [found, setFound] = useState([]);
  useEffect(() => {
    if (!open) return undefined;
    let current = true;
    const timer = setTimeout(() => {
      get("topics", { node, query: { q: text.trim(), limit: MOST } })
        .then((answer) => current && setFound(answer.items.map((item) => item.topic)))
        .catch(() => current && setFound([]));
    }, PAUSE);
    return () => {
      current = false;
      clearTimeout(timer);
    };
  }, [open, text, node]);
  return found;
}

/** `topic` is the one that is filtered by, if any; `onTopic` gets another, or undefined for any. */
export function TopicFilter({ topic, onTopic }) {
  const [open, setOpen] = useState(false);
  const [text, setText] = useState("");
  const box = useRef(null);
  const found = useTopics(open, text);
  useEffect(() => {
    if (!open) return undefined;
    setText("");
    box.current.querySelector("input").focus();
    const outside = (event) => { if (!box.current?.contains(event.target)) setOpen(false); };
    document.addEventListener("pointerdown", outside);
    return () => document.removeEventListener("pointerdown", outside);
  }, [open]);

  function choose(chosen) {
    setOpen(false);
    onTopic(chosen);
    box.current.querySelector("button").focus();
  }

  function key(event) {
    if (event.key === "Escape" && open) {
      event.preventDefault();
      setOpen(false);
      box.current.querySelector("button").focus();
    }
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!step || !open) return;
    event.preventDefault();
    const places = [...box.current.querySelectorAll("input, .menu-items button")];
    places[(places.indexOf(document.activeElement) + step + places.length) % places.length]?.focus();
  }

  return html`<div class="menu topic-filter wide-only" ref=${box} onKeyDown=${key}>
    <button type="button" class="chip" aria-pressed=${String(Boolean(topic))} aria-expanded=${String(open)} data-testid="topic-filter" onClick=${() => setOpen(!open)}>
      Topic: ${topic ? html`<span class="clip"><${Text}>${topic}<//></span>` : "any"} <${Icon} name="down" /></button>
    ${open && html`<div class="menu-items" role="group" aria-label="Topics">
      <input class="input" aria-label="Topic whose subscribers to list" placeholder="A:B or {namespace}A:B" value=${text} autocomplete="off" spellcheck=${false}
        data-testid="topic-filter-text" onInput=${(event) => setText(event.target.value)}
        onKeyDown=${(event) => { if (event.key === "Enter" && text.trim()) choose(text.trim()); }} />
      ${topic && html`<button type="button" onClick=${() => choose(undefined)}>Any topic</button>`}
      ${found.map((each) => html`<button type="button" key=${each} onClick=${() => choose(each)}><${Text}>${each}<//></button>`)}
    </div>`}
  </div>`;
}
