// One figure of all nodes, large, and its values as a table, also for those who cannot see the charts.
import { html, useMemo } from "../html.js";
import { change } from "../address.js";
import { clock, dateTime, oneLine } from "../format.js";
import { useShared, wordsOf } from "../state.js";
import { Button, Text } from "../parts/controls.js";
import { VirtualRows } from "../parts/lists.js";
import { shownValue, unitOf } from "./charted_figures.js";
import { FigureChart } from "./figure_chart.js";
import { NodeState } from "../topology/node_state.js";

const ROW = 33;

/** The value of a metric at a time, with least and greatest: "12 (3–40)". */
function valueOf(chart, history, metric, time, unit) {
  const series = history?.series[metric];
  if (!series) return "–";
  const index = Math.round((time - history.from) / history.step);
  const [low, mean, high] = ["min", "mean", "max"].map((kind) => shownValue(chart, series[kind][index], unit));
  return low === high ? mean : `${mean} (${low}–${high})`;
}

/** The steps of all histories as times, the newest first. */
function timesOfAll(histories) {
  const all = Object.values(histories);
  if (!all.length) return [];
  const { step } = all[0];
  const steps = all.map((each) => Object.values(each.series)[0]?.mean.length ?? 0);
  const last = Math.max(...all.map((each, index) => each.from + (steps[index] - 1) * step));
  return Array.from({ length: Math.max(...steps) }, (_, index) => last - index * step);
}

function ValueTable({ chart, nodes, histories, unit }) {
  useShared((shared) => shared.zone);
  const times = useMemo(() => timesOfAll(histories), [histories]);
  const columns = nodes.flatMap((node) => chart.series.map((each) => ({ ...each, node: node.name })));
  const row = (time, index) => html`<tr key=${time} aria-rowindex=${index + 2}>
    <th scope="row" class="value-time" title=${dateTime(time)}>${clock(time)}</th>
    ${columns.map(({ node, metric }) => html`<td key=${`${node} ${metric}`} class="number">
      ${valueOf(chart, histories[node], metric, time, unit)}</td>`)}</tr>`;
  return html`<section class="panel values" aria-label="Values"><header><h2>Values</h2>
      <span class="dim">${chart.title}${unit.unit && ` in ${unit.unit}`}: mean, and (least–greatest) where they differ</span></header>
    <div class="wrap" tabindex="0" role="region" aria-label="Table of values"><table
      aria-rowcount=${times.length + 1} data-testid="values">
      <thead><tr aria-rowindex="1"><th scope="col">Time</th>
        ${columns.map(({ node, metric, label }) => html`<th scope="col" class="number"
          key=${`${node} ${metric}`}><${Text}>${node}<//>
          ${chart.series.length > 1 && ` ${label}`}</th>`)}</tr></thead>
      <${VirtualRows} items=${times} height=${ROW} row=${row} columns=${columns.length + 1} />
    </table></div></section>`;
}

/** The chart `chart` of each node, and the table. */
export function LargeFigure({ chart, nodes, found, end }) {
  const unit = unitOf(chart, end);
  return html`<div class="tools">
      <${Button} icon="left" onClick=${() => change({ id: undefined })}>All charts<//>
      <h2>${chart.title} <small class="dim">${unit.unit}</small></h2>${chart.line && html`<span
        class="dim">Dotted line: ${chart.line.words}</span>`}
    </div>
    ${nodes.map((node) => html`<section class="panel large" key=${node.name}
      aria-label=${`${chart.title} of ${oneLine(node.name)}`} data-testid="node"
        data-name=${node.name} data-state=${node.state}>
      <header><${NodeState} node=${node} /><h2><${Text}>${node.name}<//></h2></header>
      ${found.errors[node.name] && html`<p
        class="note">Its figures are not updated: ${wordsOf(found.errors[node.name])}</p>`}
      <${FigureChart} chart=${chart} history=${found.histories[node.name]} node=${node.name} end=${end}
        height=${220} large />
    </section>`)}
    <${ValueTable} chart=${chart} nodes=${nodes} histories=${found.histories} unit=${unit} />`;
}
