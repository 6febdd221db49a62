// The state of a node as the topology has it: alive, dead, left; with shape, word, and for how long.
import { html } from "../html.js";
import { Ago, State } from "../parts/controls.js";

const SHAPES = { alive: "live", dead: "dead", left: "expired" };
const WORDS = { alive: "Alive", dead: "Dead", left: "Left" };

/** Shape and word; for how long, unless the node is alive. `since` puts a word such as "for" between. */
export function NodeState({ node, since = "" }) {
  const words = WORDS[node.state] ?? node.state;
  return html`<${State} shape=${SHAPES[node.state] ?? "paused"}>${words}${node.state !== "alive"
    && html`${since ? ` ${since} ` : " "}<${Ago} at=${node.since} bare />`}<//>`;
}
