// The overview of a node where nothing was published yet: three steps, and the tiles.
import { html, useEffect } from "../html.js";
import { markReady, useScope } from "../state.js";
import { Button, State } from "../parts/controls.js";
import { FirstRun } from "../watch/first_run.js";
import { TILES, Tiles, useTileHistories } from "./tiles.js";

const METRICS = [...TILES.map((each) => each.metric), "deliver_p50"];
const RANGE = "5m";

/** The whole view; `leave` shows the usual overview instead. */
export function NewNode({ leave }) {
  const { nodes } = useScope();
  const histories = useTileHistories(nodes, RANGE, METRICS);
  useEffect(markReady, []);
  return html`
    <div class="head"><div><h1 class="verdict"><${State} shape="live">This node is ready<//></h1>
      <p>Three steps, here or in a terminal.</p></div>
      <div class="actions"><${Button} onClick=${leave}>Show the overview<//></div></div>
    <${FirstRun} />
    <${Tiles} nodes=${nodes} histories=${histories} range=${RANGE} alerts=${[]} />`;
}
