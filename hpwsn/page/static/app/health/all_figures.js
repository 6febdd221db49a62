// All figures of one node, as it tells them now in /status, in a table with a search.
import { html, useEffect, useMemo, useState } from "../html.js";
import { change } from "../address.js";
import { get } from "../api.js";
import { count, oneLine } from "../format.js";
import { markReady, state, useNode, useScope, useShared } from "../state.js";
import { CurlButton, Text } from "../parts/controls.js";
import { ListState, VirtualRows } from "../parts/lists.js";
import { useRowHeight } from "../subscriptions/rows.js";
import { matches, statusFigures } from "./status_figures.js";

const EVERY = 2000;
const NOTHING = { node: null, status: null, error: null, updated: null };

/** The /status of a node: of the page's own node by the live stream, of others by asking again and again. */
export function useStatus(node) {
  const own = useShared((shared) => shared.session?.kind === "node" && shared.session.node === node);
  const live = useShared((shared) => (own ? shared.live.status : null));
  const [found, setFound] = useState(NOTHING);
  const [again, setAgain] = useState(0);
  useEffect(() => {
    if (!node) return undefined;
    let stopped = false;
    let timer = 0;
    async function look(first) {
      if (first || (!document.hidden && !state.get().paused)) {
        try {
          const status = await get("status", { node });
          if (!stopped) setFound({ node, status, error: null, updated: Date.now() });
        } catch (error) {
          if (!stopped) setFound((before) => ({ ...(before.node === node ? before : NOTHING), node, error }));
        }
      }
      if (!stopped && !own) timer = setTimeout(look, EVERY);
    }
    look(true);
    return () => {
      stopped = true;
      clearTimeout(timer);
    };
  }, [node, own, again]);
  const fresh = found.node === node ? found : NOTHING;
  const refresh = () => setAgain(again + 1);
  if (!live) return { ...fresh, refresh };
  return { status: live, error: null, updated: state.get().heard, refresh };
}

/** The chosen node, as a list to choose from, if there are several. */
function NodeChoice({ node }) {
  const cluster = useShared((shared) => shared.cluster);
  const names = (cluster?.clusters ?? []).flatMap((each) => each.nodes.map((one) => one.name));
  if (names.length < 2) return null;
  return html`<select aria-label="Node" data-testid="figures-node" value=${node}
    onChange=${(event) => change({ scope: `node:${event.target.value}` })}>
    ${names.map((name) => html`<option key=${name} value=${name} selected=${name === node}>
      ${oneLine(name)}</option>`)}</select>`;
}

/** The tab "All figures"; `text` is the search. */
export function AllFigures({ text }) {
  const node = useNode();
  useScope();
  const { status, error, updated, refresh } = useStatus(node);
  const height = useRowHeight();
  const zone = useShared((shared) => shared.zone);
  const all = useMemo(() => (status ? statusFigures(status) : []), [status, zone]);
  const items = text ? all.filter((each) => matches(each, text)) : all;
  useEffect(() => { if (status || error) markReady(); }, [status, error]);
  const list = { items, loading: !status && !error, error, updated, partial: [], refresh };
  const row = (each, index) => html`<tr key=${each.path} aria-rowindex=${index + 2} data-testid="figure"
    data-figure=${each.path}>
    <td class="c3 dim"><${Text}>${each.group}<//></td>
    <td class="c1"><${Text}>${each.name}<//></td>
    <td class="c2 number clip-value" title=${oneLine(each.value)}><${Text}>${each.shown}<//></td>
    <td class="c4 dim">${each.unit}</td></tr>`;
  return html`<section class="panel fill" aria-label=${`All figures of ${oneLine(node ?? "the node")}`}>
    <header><h2><${Text}>${node}<//></h2>
      <span class="dim">${count(items.length)} of ${count(all.length)} figures</span>
      <span class="header-end"><${NodeChoice} node=${node} />
        <${CurlButton} request=${{ path: "status", node }} /></span></header>
    <${ListState} list=${list} filtered=${Boolean(text)} empty="A node tells its figures here."
      onClear=${() => change({ q: undefined }, { replace: true })} />
    ${items.length > 0 && html`<div class="wrap" tabindex="0" role="region" aria-label="Figures">
      <table class="cards figures-table" aria-rowcount=${items.length + 1} data-testid="figures">
        <thead><tr aria-rowindex="1"><th scope="col">Group</th><th scope="col">Figure</th>
          <th scope="col" class="number">Value</th><th scope="col">Unit</th></tr></thead>
        <${VirtualRows} items=${items} height=${height} row=${row} columns=${4} />
      </table></div>`}
  </section>`;
}
