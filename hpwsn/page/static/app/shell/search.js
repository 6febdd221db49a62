// Search over topics, subscriptions and nodes, in the bar; Enter or a click goes there, Escape goes to the view.
import { html, useEffect, useRef, useState } from "../html.js";
import { go } from "../address.js";
import { get } from "../api.js";
import { Icon } from "../icons.js";
import { nodesOf, state, useNode, useShared } from "../state.js";
import { Text } from "../parts/controls.js";

const MOST = 6;
const PAUSE = 120;

async function search(text, node) {
  const query = { q: text, limit: MOST };
  const [topics, subscriptions] = await Promise.all(["topics", "subscriptions"].map((path) => (
    get(path, { node, query }).then((answer) => answer.items).catch(() => []))));
  const wanted = text.toLowerCase();
  const named = nodesOf(state.get().cluster).filter((each) => each.name.toLowerCase().includes(wanted));
  const nodes = named.slice(0, MOST);
  return [
    ...topics.map((each) => ({ kind: "topic", text: each.topic, open: () => go("topics", { topic: each.topic }) })),
    ...nodes.map((each) => ({ kind: "node", text: each.name, open: () => go("topology", { id: each.name }) })),
    ...subscriptions.map(({ id, consumer }) => ({
      kind: "subscription", text: consumer || id, open: () => go("subscriptions", { q: id, id }),
    })),
  ];
}

/** Moves the focus behind the bar and the rail, so that Tab goes on in the view. */
const focusView = () => document.getElementById("main")?.focus({ preventScroll: true });

export function Search() {
  const [text, setText] = useState("");
  const [found, setFound] = useState(null);
  const [active, setActive] = useState(0);
  const [open, setOpen] = useState(false);
  const box = useRef(null);
  const node = useNode();
  const wide = useShared((shared) => shared.searching);

  useEffect(() => {
    if (!text.trim()) {
      setFound(null);
      return undefined;
    }
    let current = true;
    const timer = setTimeout(async () => {
      const results = await search(text.trim(), node);
      if (!current) return;
      setFound(results);
      setActive(0);
    }, PAUSE);
    return () => {
      current = false;
      clearTimeout(timer);
    };
  }, [text, node]);

  function choose(result) {
    setText("");
    setOpen(false);
    state.set({ searching: false });
    focusView();
    result.open();
  }

  function key(event) {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step && found?.length) {
      event.preventDefault();
      setActive((active + step + found.length) % found.length);
    } else if (event.key === "Enter" && found?.[active]) choose(found[active]);
    else if (event.key === "Escape") {
      setText("");
      setOpen(false);
      state.set({ searching: false });
      focusView();
    }
  }

  const listed = open && found;
  return html`<div class=${wide ? "search wide" : "search"} role="search" ref=${box}
      onFocusOut=${(event) => { if (!box.current.contains(event.relatedTarget)) { setOpen(false); state.set({ searching: false }); } }}>
    <${Icon} name="search" />
    <input id="find" type="text" role="combobox" aria-label="Find a topic, subscription or node" placeholder="Find a topic, subscription, node…"
      aria-expanded=${String(Boolean(listed))} aria-controls="found" aria-autocomplete="list" autocomplete="off" spellcheck=${false}
      aria-activedescendant=${listed && found.length ? `found-${active}` : null} data-testid="search"
      value=${text} onInput=${(event) => { setText(event.target.value); setOpen(true); }}
      onFocus=${() => { setOpen(true); state.set({ searching: true }); }} onKeyDown=${key} />
    <kbd aria-hidden="true">/</kbd>
    <ul id="found" class="found" role="listbox" aria-label="Found" hidden=${!listed}>
      ${listed && (found.length ? found.map((result, index) => html`<li key=${`${result.kind} ${result.text} ${index}`} id=${`found-${index}`} role="option"
        aria-selected=${String(index === active)} onPointerDown=${(event) => { event.preventDefault(); choose(result); }}>
        <span class="dim">${result.kind}</span> <${Text}>${result.text}<//></li>`)
        : html`<li role="option" aria-disabled="true" aria-selected="false" class="dim">Nothing has this text.</li>`)}
    </ul>
  </div>`;
}
