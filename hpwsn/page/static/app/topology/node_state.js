// The state of a node as the topology has it: alive, dead, left; with shape, word, and for how long.
import { html } from "../html.js";
import { Ago, State } from "../parts/controls.js";

const SHAPES = { alive: "live", dead: "dead", left: "expired" };
const WORDS = { alive: "Alive", dead: "Dead", left: "Left" };

/** Shape and word; for how long, unless the node is alive. `since` puts a word such as "for" between. */
export function NodeState({ node, since = "" }) {
  const words = WORDS[node.state] ?? node.state;
  const gone = node.state !== "alive";
  return html`<${State} shape=${SHAPES[node.state] ?? "paused"}><span>${words}${gone && html` ${since && `${since} `}<${Ago} at=${node.since} bare />`}</span><//>`;
}
