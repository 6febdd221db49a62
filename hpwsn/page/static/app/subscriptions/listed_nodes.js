// Which nodes a list asks, and which nodes in scope do not answer: their part is missing, which the page says.
import { html } from "../html.js";
import { count, oneLine } from "../format.js";
import { useScope, useShared } from "../state.js";
import { Text } from "../parts/controls.js";
import { Notice } from "../parts/lists.js";

// A dead node sends no figures any more; its last ones tell how much is missing.
const lastFigures = new Map();

/**
 * The nodes of the scope as {names, absent, alive}: `names` are those to ask, null for this process alone, undefined
 * until that is known; `absent` are those that do not answer.
 */
export function useListedNodes() {
  const { nodes, alive } = useScope();
  const known = useShared((shared) => shared.cluster !== null);
  const away = useShared((shared) => shared.connection === "away");
  const admin = useShared((shared) => shared.session?.kind === "admin");
  if (!known) return { names: away && !admin ? null : undefined, absent: [], alive: [] };
  for (const node of alive) if (node.figures) lastFigures.set(node.name, node.figures);
  const absent = nodes.filter((node) => node.state !== "alive");
  return { names: alive.map((node) => node.name).sort(), absent, alive };
}

/** What is missing from a list: "dock-2 is dead: its 38 are not listed"; `figure` names their number. */
export function Absent({ nodes, figure }) {
  return nodes.map((node) => {
    const number = (node.figures ?? lastFigures.get(node.name))?.[figure];
    const what = number ? `its ${count(number)} ${number === 1 ? "is" : "are"}` : "what it has is";
    return html`<span class="dim absent" key=${node.name}> · <${Text}>${node.name}<//> ${node.state === "dead" ? "is dead" : "has left"}: ${what} not listed</span>`;
  });
}

/** In place of a list that no node can answer. */
export function NoNode({ nodes }) {
  return html`<${Notice} kind="partial">${nodes.length
    ? html`<p>No node in scope answers: ${nodes.map((node) => oneLine(node.name)).join(", ")}.</p>` : html`<p>There is no node in scope.</p>`}
    <a href="topology">Show the nodes</a><//>`;
}

/** A sum of figures over nodes; null if no node has it. */
export function sumOf(nodes, figure) {
  const known = nodes.map((node) => node.figures?.[figure]).filter((value) => typeof value === "number");
  return known.length ? known.reduce((sum, value) => sum + value, 0) : null;
}
