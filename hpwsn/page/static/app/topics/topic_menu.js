// The menu of a topic, at a row or in the panel: the same actions as by keys.
import { html, useEffect, useLayoutEffect, useRef } from "../html.js";
import { curl } from "../api.js";
import { oneLine } from "../format.js";
import { Icon } from "../icons.js";
import { copyText } from "../parts/controls.js";
import { createStore, useStore } from "../store.js";
import { whyNot } from "./topic_actions.js";
import { lastStep } from "./topic_names.js";

const open = createStore({ menu: null });
const EDGE = 8;

/** Opens the menu of a topic at a place of the window; `items` as of `itemsOfMenu`. */
export const openMenu = (menu) => open.set({ menu: { ...menu, before: document.activeElement } });

/** The entries of a topic's menu: {label, icon, keys, risk, why, run}; `why` is set where it is not possible. */
export function itemsOfMenu({ topic, item, node, actions, editing, cut, select }) {
  const stop = whyNot(item, editing);
  const noAdd = editing.editable ? null : editing.why;
  return [
    select && { label: "Open", icon: "right", keys: "Enter", run: () => select(topic) },
    { label: "Add below", icon: "plus", keys: "Insert", why: noAdd, run: () => actions.add(topic) },
    item && !item.declared && { label: "Declare", icon: "check", why: noAdd, run: () => actions.declare(topic) },
    { label: "Rename", icon: "edit", keys: "F2", why: stop, run: () => actions.rename(topic) },
    {
      label: cut === topic ? "Do not move" : "Cut, to move", icon: "topics", keys: "Ctrl X", why: stop,
      run: () => actions.cut(topic),
    },
    cut && cut !== topic && {
      label: `Move ${oneLine(lastStep(cut))} below`, icon: "down", keys: "Ctrl V", why: noAdd,
      run: () => actions.paste(topic),
    },
    { label: "Move…", icon: "topics", why: stop, run: () => actions.moveSomewhere(topic) },
    { label: "Remove…", icon: "trash", keys: "Delete", risk: true, why: stop, run: () => actions.remove(topic) },
    { label: "Copy the topic", icon: "copy", run: () => copyText(topic, "Copied") },
    {
      label: "Copy as curl", icon: "copy",
      run: () => copyText(curl("GET", `topics/${encodeURIComponent(topic)}`, { node }), "Copied as curl"),
    },
  ].filter(Boolean);
}

/** The place of the open menu; once in the view. */
export function TopicMenu() {
  const menu = useStore(open, (found) => found.menu);
  return menu && html`<${Floating} key=${menu} ...${menu} />`;
}

function Floating({ x, y, label, items, before }) {
  const box = useRef(null);
  const close = (refocus) => {
    open.set({ menu: null });
    if (refocus && before?.isConnected) before.focus();
  };
  useLayoutEffect(() => {
    const { width, height } = box.current.getBoundingClientRect();
    box.current.style.left = `${Math.max(EDGE, Math.min(x, innerWidth - width - EDGE))}px`;
    box.current.style.top = `${Math.max(EDGE, Math.min(y, innerHeight - height - EDGE))}px`;
    box.current.querySelector("[role=menuitem]")?.focus();
  }, []);
  useEffect(() => {
    const outside = (event) => { if (!box.current?.contains(event.target)) close(false); };
    document.addEventListener("pointerdown", outside);
    return () => document.removeEventListener("pointerdown", outside);
  }, []);
  function key(event) {
    event.stopPropagation();
    if (event.key === "Escape" || event.key === "Tab") {
      event.preventDefault();
      close(true);
    }
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    const found = [...box.current.querySelectorAll("[role=menuitem]")];
    found[(found.indexOf(document.activeElement) + step + found.length) % found.length]?.focus();
  }
  return html`<div class="menu-items topic-menu" role="menu" aria-label=${label} ref=${box} onKeyDown=${key}>
    ${items.map((item) => html`<button type="button" role="menuitem" key=${item.label} class=${item.risk ? "risk" : null}
      aria-disabled=${item.why ? "true" : null} title=${item.why}
      onClick=${() => { if (!item.why) { close(true); item.run(); } }}>
      <${Icon} name=${item.icon} /><bdi>${item.label}</bdi>${item.keys && html`<kbd>${item.keys}</kbd>`}</button>`)}
  </div>`;
}
