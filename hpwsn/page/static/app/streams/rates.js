// How a service keeps up: rows per second, lag and batches, over the time that its panel is open.
import { html, useEffect, useMemo, useRef, useState } from "../html.js";
import { count, figure, niceCeiling, scaledBytes, short } from "../format.js";
import { Chart } from "../parts/charts.js";
import { nearestIndex, useCrosshair } from "../parts/crosshair.js";
import { LAG_ALERT, ratesOf } from "./service_words.js";

const GROUP = "service";
/** Points kept: half an hour of one every two seconds. */
const KEPT = 900;
/** Seconds without a point after which there is a gap. */
const GAP = 10;
const NAMES = { times: [], rowsIn: [], rowsOut: [], lag: [], batch: [] };

/** The figures of the service that were seen while the panel is open, as arrays. */
export function useRates(item, gone) {
  const [rates, setRates] = useState(NAMES);
  const uri = useRef(null);
  useEffect(() => {
    if (!item || gone) return;
    const now = Date.now() / 1000;
    const alive = item.state === "running";
    const { rowsIn, rowsOut } = ratesOf(item);
    const told = {
      times: now, rowsIn: alive ? rowsIn : null, rowsOut: alive ? rowsOut : null, lag: alive ? item.lag : null,
      batch: alive ? item.figures?.batch_seconds ?? null : null,
    };
    setRates((before) => {
      const same = uri.current === item.uri;
      const gap = same && before.times.length && now - before.times.at(-1) > GAP;
      uri.current = item.uri;
      const add = (name) => [
        ...(same ? before[name] : []), ...(gap ? [name === "times" ? now - 1 : null] : []), told[name],
      ].slice(-KEPT);
      return Object.fromEntries(Object.keys(NAMES).map((name) => [name, add(name)]));
    });
  }, [item, gone]);
  return rates;
}

function RateChart({ title, times, series, show, lines }) {
  const time = useCrosshair(GROUP);
  const cursor = nearestIndex(times, time);
  const index = cursor >= 0 ? cursor : times.length - 1;
  const greatest = Math.max(0, ...series.flatMap((each) => each.values.filter((value) => value !== null)));
  const span = useMemo(() => {
    const last = times.at(-1) ?? Date.now() / 1000;
    return [Math.min(times[0] ?? last, last - 60), last];
  }, [times]);
  const words = series.map(({ label, values }) => `${label} ${show(values[index] ?? null)}`).join(", ");
  return html`<div class="figure rate" data-testid="rate">
    <div class="figure-head"><h3>${title}</h3>
      <span class="figure-values">${series.map(({ label, tone, values }) => html`<span class="figure-value" key=${label}>
        ${series.length > 1 && html`<i class=${`swatch swatch-${tone}`} aria-hidden="true"></i><small>${label}</small>`}
        <b>${show(values[index] ?? null)}</b></span>`)}</span></div>
    <${Chart} times=${times} series=${series} top=${niceCeiling(greatest)} span=${span} height=${110}
      sync=${GROUP} label=${title} lines=${lines}
      format=${short} valueText=${() => words} /></div>`;
}

function lastBatch({ batch, rows_in: rowsIn, rows_out: rowsOut, batch_seconds: seconds }) {
  return batch === undefined ? "none yet"
    : `${count(batch)}: ${count(rowsIn)} in, ${count(rowsOut)} out, ${figure(seconds)} s`;
}

const LAG_LINES = [{ value: LAG_ALERT }];

/** Charts of the time that the panel is open, and the figures of the last batch. */
export function Rates({ item, rates }) {
  const { times } = rates;
  const { figures = {} } = item;
  const state = scaledBytes(figures.state_bytes);
  const rows = useMemo(() => [
    { label: "in", tone: "accent", values: rates.rowsIn }, { label: "out", tone: "soft", values: rates.rowsOut },
  ], [rates]);
  const lag = useMemo(() => [{ label: "lag", tone: "warn", values: rates.lag }], [rates]);
  const batch = useMemo(() => [{ label: "batch", tone: "accent", values: rates.batch }], [rates]);
  return html`<p class="dim">Of each last batch, since this panel was opened.</p>
    <${RateChart} title="Rows/s" times=${times} series=${rows} show=${figure} />
    <${RateChart} title="Lag, unread events" times=${times} series=${lag} show=${count} lines=${LAG_LINES} />
    <${RateChart} title="Duration of a batch, s" times=${times} series=${batch} show=${figure} />
    <dl class="details" data-testid="last-batch">
      <dt>Last batch</dt><dd>${lastBatch(figures)}</dd>
      <dt>Backlog</dt>
      <dd>${count(figures.backlog)} <span class="dim">most that waited since it was up to date</span></dd>
      <dt>Spark’s state</dt><dd>${count(figures.state_rows)} rows, ${figure(state.value)} ${state.unit}</dd>
      <dt>Failed batches</dt><dd>${count(figures.failures)}</dd>
    </dl>
    <p class="dim">An alert begins at a lag of ${count(LAG_ALERT)}, unless monitoring.service_lag is another value.</p>`;
}
