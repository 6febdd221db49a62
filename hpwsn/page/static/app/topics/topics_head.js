// The head of the view: source, undo, import, export, and the button that adds a topic; and the tools above the
// tree.
import { html } from "../html.js";
import { change } from "../address.js";
import { count, counted } from "../format.js";
import { useStore } from "../store.js";
import { Button, Chip, Field, Menu } from "../parts/controls.js";
import { askToImport, copyExport, download } from "./import_export.js";
import { Source } from "./surroundings.js";
import { MOST_OPENED } from "./tree_data.js";

/** The button that undoes the last edit, with the number of edits that can be undone. */
export function UndoButton({ edits, actions, editing, testid }) {
  const { undo, busy } = useStore(edits.store);
  return html`<${Button} icon="undo" testid=${testid} disabled=${!undo.length || busy || !editing.editable}
    title=${undo.length ? `Undo: ${undo.at(-1).words}` : "Nothing to undo"} onClick=${actions.undo}>
    Undo${undo.length > 0 && html`<span class="dim">${count(undo.length)}</span>`}<//>`;
}

/** Import and export as entries of a menu. */
export const fileItems = (edits, { editable, why }) => [
  { label: "Import…", icon: "upload", disabled: !editable, why, run: () => askToImport(edits) },
  { label: "Download as TOML", icon: "download", run: () => download(edits.node, "toml") },
  { label: "Download as LDIF", icon: "download", run: () => download(edits.node, "ldif") },
  { label: "Copy as TOML", icon: "copy", run: () => copyExport(edits.node, "toml") },
  { label: "Copy as LDIF", icon: "copy", run: () => copyExport(edits.node, "ldif") },
];

/** `parent` is the topic below which one is added; `ids` is whether this button, or one in the panel, has the id. */
export function TopicsHead({ node, shape, edits, actions, editing, parent, ids }) {
  const [imports, ...exports] = fileItems(edits, editing);
  const { editable, why } = editing;
  return html`<div class="head"><div><h1>Topics</h1><${Source} node=${node} shape=${shape} /></div>
      <div class="actions topics-actions">
        <${UndoButton} edits=${edits} actions=${actions} editing=${editing} testid=${ids.undo ? "undo" : null} />
        <${Button} kind="wide-only" disabled=${!editable} title=${why} onClick=${imports.run}>Import…<//>
        <span class="wide-only"><${Menu} label="Export" text="Export" kind="" items=${exports} /></span>
        <${Button} kind="first" icon="plus" testid=${ids.add ? "topic-add" : null} disabled=${!editable} title=${why}
          onClick=${() => actions.add(parent)}>Add topic<//></div></div>
    ${!editable && html`<p class="note" data-testid="read-only"><span>Topics are only read here: ${why}</span></p>`}`;
}

/** What a search found, as words. */
function found({ total, matches }) {
  if (total <= matches.size) return counted(total, "match", "matches");
  return `the first ${count(matches.size)} of ${count(total)} matches`;
}

/** Search and chips. `onDown` is called when somebody leaves the search for the rows; `items` are for the menu. */
export function TreeTools({ q, filters, search, rows, tree, shape, onDown, items }) {
  const toggle = (name) => {
    const now = filters.includes(name) ? filters.filter((each) => each !== name) : [...filters, name];
    change({ state: now.join(",") || undefined });
  };
  const many = shape.total > MOST_OPENED;
  const why = many ? `${count(shape.total)} topics are too many: open branches, or search` : null;
  const told = [
    search && !search.error && found(search), filters.length > 0 && `only topics with ${filters.join(" and ")}`,
    counted(rows.length, "row"),
  ].filter(Boolean).join(", ");
  return html`<div class="tools topics-tools">
      <${Field} icon="search" label="Search names and descriptions" testid="topic-search" value=${q}
        onText=${(text) => change({ q: text || undefined }, { replace: true })} onClear=${() => change({ q: undefined })}
        onKeyUp=${(event) => { if (event.key === "ArrowDown") onDown(); }} />
      <${Chip} pressed=${filters.includes("subscribers")} onClick=${() => toggle("subscribers")}>With subscribers<//>
      <${Chip} pressed=${filters.includes("traffic")} onClick=${() => toggle("traffic")}>With traffic<//>
      <span class="topics-menu"><${Menu} label="Collapse or expand all, import, export" items=${[
        { label: "Expand all", icon: "down", disabled: many, why, run: () => tree.openAll() },
        { label: "Collapse all", icon: "right", run: () => tree.closeAll() }, ...items,
      ]} /></span>
    </div>
    ${(search || filters.length > 0) && html`<p class="topics-found dim" role="status">${told}</p>`}`;
}
