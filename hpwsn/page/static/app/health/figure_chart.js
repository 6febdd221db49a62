// One figure of one node: its title with the unit, the value now or under the crosshair, and its chart.
import { html, useMemo } from "../html.js";
import { href } from "../address.js";
import { clock, oneLine, short } from "../format.js";
import { useShared } from "../state.js";
import { Chart } from "../parts/charts.js";
import { nearestIndex, useCrosshair } from "../parts/crosshair.js";
import { lastKnown, shownValue, timesOf, unitOf } from "./charted_figures.js";

/** The group of all charts of this view. */
export const GROUP = "health";
const NOTHING = { series: {}, restarts: [], from: 0, step: 1 };

/** Times and series of a chart from a history, remembered as long as the history is the same. */
export function useChartData(chart, history) {
  return useMemo(() => {
    const found = history ?? NOTHING;
    const times = timesOf(found);
    const series = chart.series.map(({ metric, label, tone, band }) => {
      const { min, mean, max } = found.series[metric] ?? { min: [], mean: [], max: [] };
      const banded = band && found.step > 1;
      return { metric, label, tone, values: mean, min, max, low: banded ? min : null, high: banded ? max : null };
    });
    return { times, series, restarts: found.restarts, step: found.step };
  }, [chart, history]);
}

/** The values of a chart at a step as [{label, tone, value, between}]; `between` is "3–40" for steps of samples. */
export function valuesAt(chart, series, index, unit) {
  return series.map(({ label, tone, values, min, max }) => {
    const value = values[index] ?? null;
    const [low, high] = [min[index], max[index]].map((each) => shownValue(chart, each, unit));
    return {
      label, tone, value: shownValue(chart, value, unit),
      between: value !== null && low !== high ? `${low}–${high}` : null,
    };
  });
}

/** The values of a step in words, for screen readers. */
function wordsAt(chart, data, index, unit) {
  if (index < 0) return "no sample";
  const known = data.series.some(({ values }) => values[index] !== null && values[index] !== undefined);
  const found = valuesAt(chart, data.series, index, unit);
  const words = found.map(({ label, value, between }) => (
    `${data.series.length > 1 ? `${label} ` : ""}${value}${between ? `, ${between.replace("–", " to ")}` : ""}`));
  return `${clock(data.times[index])}: ${known ? `${words.join("; ")} ${unit.unit}` : "no sample"}`;
}

function Values({ found, single }) {
  return html`<span class="figure-values">${found.map(({ label, tone, value, between }) => html`
    <span key=${label} class="figure-value">
    ${single ? between && html`<small>${between}</small>`
      : html`<i class=${`swatch swatch-${tone}`} aria-hidden="true"></i><small>${label}</small>`}
    <b>${value}</b></span>`)}</span>`;
}

/** A chart in a panel of a node; `active` is in the order of Tab, `end` is the end of the axis. */
export function FigureChart({ chart, history, node, end, height = 96, active = true, large, ...rest }) {
  useShared((shared) => shared.zone);
  const time = useCrosshair(GROUP);
  const data = useChartData(chart, history);
  const unit = unitOf(chart, end);
  const cursor = nearestIndex(data.times, time);
  const index = cursor >= 0 ? cursor : lastKnown(data.series.map((each) => each.values));
  const found = valuesAt(chart, data.series, index, unit);
  const title = `${chart.title}${unit.unit ? ` ${unit.unit}` : ""}`;
  const lines = useMemo(() => (chart.line ? [{ value: chart.line.value }] : []), [chart]);
  return html`<div class="figure" data-testid="chart" data-figure=${chart.id} data-node=${node} data-end=${end}>
    <div class="figure-head">
      <h3>${large ? title : html`<a href=${href("health", { id: chart.id })} tabindex="-1"
        title=${`${chart.title} of all nodes`}>${chart.title}</a>`}</h3>
      ${!large && unit.unit && html`<small>${unit.unit}</small>`}
      <${Values} found=${found} single=${data.series.length === 1} />
    </div>
    <${Chart} times=${data.times} series=${data.series} top=${end} height=${height} sync=${GROUP}
      marks=${data.restarts} lines=${lines} label=${`${title} of ${oneLine(node)}`}
      format=${(value) => short(value * unit.factor)} tabindex=${active ? 0 : -1}
      valueText=${(at) => wordsAt(chart, data, at >= 0 ? at : index, unit)} ...${rest} />
  </div>`;
}
