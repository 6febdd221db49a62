// Health: since when, and how bad. Charts of each node in scope, all figures of one, and all nodes side by side.
import { html, useEffect, useMemo, useState } from "../html.js";
import { change, useParameter } from "../address.js";
import { counted } from "../format.js";
import { RANGES, useHistories } from "../figures.js";
import { markReady, useScope, useShared } from "../state.js";
import { Button, Field, Segment } from "../parts/controls.js";
import { ListState } from "../parts/lists.js";
import { AllFigures } from "../health/all_figures.js";
import { CHARTED, metricsOf, topsOf } from "../health/charted_figures.js";
import { LargeFigure } from "../health/large_figure.js";
import { NodeCharts } from "../health/node_charts.js";
import { SideBySide } from "../health/side_by_side.js";

const RANGE_NAMES = [["5m", "5 min"], ["1h", "1 hour"], ["24h", "24 hours"]];
const TABS = [["charts", "Charts"], ["figures", "All figures"], ["nodes", "Side by side"]];
const DEFAULT_RANGE = "5m";
/** Nodes whose charts are shown at first, and with each "Show more". */
const SOME = 24;
const NO_FILTERS = { id: undefined, q: undefined, sort: undefined };
const ALL_METRICS = metricsOf(CHARTED);

function Charts({ text, range, opened }) {
  const { nodes } = useScope();
  const cluster = useShared((shared) => shared.cluster);
  const heard = useShared((shared) => shared.heard);
  const [most, setMost] = useState(SOME);
  const chart = CHARTED.find((each) => each.id === opened);
  const some = nodes.slice(0, most);
  const metrics = chart ? metricsOf([chart]) : ALL_METRICS;
  const found = useHistories(some.map((node) => node.name), range, metrics);
  const wanted = text.trim().toLowerCase();
  const charts = chart ? [chart] : CHARTED.filter(({ id, title }) => `${id} ${title}`.toLowerCase().includes(wanted));
  const tops = useMemo(() => topsOf(chart ? [chart] : CHARTED, found.histories), [found.histories, chart]);
  const ready = found.loaded || (cluster && !nodes.length);
  useEffect(() => { if (ready) markReady(); }, [ready]);

  const errors = Object.values(found.errors);
  const refused = errors.length > 0 && errors.every((error) => error.status === 403) ? errors[0] : null;
  const list = {
    items: refused || !charts.length ? [] : some, loading: !cluster, error: refused, updated: heard, partial: [],
    refresh() {},
  };
  return html`<${ListState} list=${list} filtered=${Boolean(wanted)}
    onClear=${() => change({ q: undefined }, { replace: true })}
      empty=${html`The nodes that register at the admin node are here. Start one with <code>hpwsn serve --admin URL --cluster NAME</code>.`} />
    ${list.items.length > 0 && (chart
      ? html`<${LargeFigure} chart=${chart} nodes=${some} found=${found} end=${tops[chart.id]} />`
      : some.map((node) => html`<${NodeCharts} key=${node.name} node=${node} charts=${charts}
        history=${found.histories[node.name]}
          error=${found.errors[node.name]} tops=${tops} />`))}
    ${nodes.length > most && html`<p class="more-nodes">
      <${Button} onClick=${() => setMost(most + SOME)}>Show ${Math.min(SOME, nodes.length - most)} more of ${nodes.length} nodes<//></p>`}`;
}

export default function Health() {
  const { nodes, alive } = useScope();
  const asked = useParameter("tab");
  const tab = TABS.some(([name]) => name === asked) ? asked : "charts";
  const text = useParameter("q") ?? "";
  const given = useParameter("range");
  const range = Object.hasOwn(RANGES, given ?? "") ? given : DEFAULT_RANGE;
  const opened = useParameter("id");
  const hint = tab === "nodes" ? "Find a node" : "Find a figure";
  return html`<div class="head"><div><h1>Health</h1>
      <p>${alive.length} of ${counted(nodes.length, "node")} alive${tab === "charts" && " · one axis per figure, the same for all nodes"}</p></div>
      ${tab === "charts" && html`<div class="actions"><${Segment} label="Range" options=${RANGE_NAMES}
        value=${range} onChange=${(next) => change({ range: next })} /></div>`}
    </div>
    ${!(tab === "charts" && opened) && html`<div class="tools">
      <${Segment} label="What to show" options=${TABS} value=${tab}
        onChange=${(next) => change({ ...NO_FILTERS, tab: next === "charts" ? undefined : next })} />
      <${Field} icon="search" label=${hint} value=${text} testid="figure-search"
        onText=${(next) => change({ q: next }, { replace: true })}
        onClear=${() => change({ q: undefined }, { replace: true })} />
      ${tab === "charts" && html`<span class="dim wide-only">
        ← → move the crosshair, ↑ ↓ choose a chart, Enter opens it</span>`}
    </div>`}
    ${tab === "figures" ? html`<${AllFigures} text=${text} />`
      : tab === "nodes" ? html`<${SideBySide} text=${text} />`
        : html`<${Charts} text=${text} range=${range} opened=${opened} />`}`;
}
