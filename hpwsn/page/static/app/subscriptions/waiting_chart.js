// What waited for a subscription since its panel was opened: the node keeps no history of one subscription.
import { html, useEffect, useState } from "../html.js";
import { clock, count, niceCeiling } from "../format.js";
import { Chart } from "../parts/charts.js";
import { thinned } from "../parts/sparks.js";

const MOST = 3600;
const SHOWN = 300;

/** The samples {times, values} of the changing value; they begin anew with another `key`. */
function useSamples(key, at, value) {
  const [samples, setSamples] = useState({ key, times: [], values: [] });
  useEffect(() => {
    if (value === undefined) return;
    const now = Date.now() / 1000;
    setSamples((before) => {
      const kept = before.key === key ? before : { key, times: [], values: [] };
      return { key, times: [...kept.times.slice(1 - MOST), now], values: [...kept.values.slice(1 - MOST), value] };
    });
  }, [key, at]);
  return samples.key === key ? samples : { times: [], values: [] };
}

/** The chart of one item; `item` is a new object at each answer. */
export function WaitingChart({ item }) {
  const { times, values } = useSamples(item.id, item, item.waiting);
  if (!times.length) return html`<div class="waiting-chart"></div>`;
  const step = Math.max(1, times.length / SHOWN);
  const ends = Array.from({ length: SHOWN }, (_, index) => times[Math.floor((index + 1) * step) - 1]);
  const shownTimes = step === 1 ? times : ends;
  const shown = thinned(values, SHOWN);
  const top = niceCeiling(Math.max(1, ...shown));
  return html`<div class="waiting-chart">
    <h3>Waiting, since ${clock(times[0]).slice(0, 5)}</h3>
    <${Chart} times=${shownTimes} series=${[{ label: "waiting", values: shown, tone: item.state === "retrying" ? "warn" : "accent" }]} top=${top}
      height=${110} label=${`Waiting notifications since ${clock(times[0])}, now ${count(item.waiting)}, axis from 0 to ${count(top)}`} />
  </div>`;
}
