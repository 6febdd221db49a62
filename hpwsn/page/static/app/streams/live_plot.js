// A numeric field of a service's topic as it comes: the stream of this tab follows the topic meanwhile.
import { html, useEffect, useMemo, useRef, useState } from "../html.js";
import { change, useParameter } from "../address.js";
import { eventsPath, send, urlOf } from "../api.js";
import { count, counted, figure, niceCeiling, oneLine, short } from "../format.js";
import { state, useShared, wordsOf } from "../state.js";
import { openStream, takeStream } from "../stream.js";
import { CurlButton, Field } from "../parts/controls.js";
import { Chart } from "../parts/charts.js";
import { nearestIndex, useCrosshair } from "../parts/crosshair.js";
import { SPAN, liveValues } from "./live_values.js";
import { numericFields } from "./service_words.js";

const GROUP = "live plot";
const MAX_RATE = 50;
const DRAWN_EVERY = 500;

/** The values of the topic while the component is shown, drawn again twice a second: {buffer, now, skipped, …}. */
function useValues({ at, topic }, filter) {
  const buffer = useRef(liveValues());
  const told = useRef({ skipped: 0, events: 0 });
  const [found, setFound] = useState(() => ({ ...told.current, now: Date.now() / 1000, problem: null, open: false }));
  useEffect(() => {
    buffer.current = liveValues();
    told.current = { skipped: 0, events: 0 };
    const url = () => urlOf(eventsPath(topic), { node: at, query: { max_rate: MAX_RATE, filter } });
    function onEvent({ type, data }) {
      const event = JSON.parse(data);
      if (type === "skipped") told.current.skipped += event.skipped;
      else if (type === "message") {
        told.current.events += 1;
        buffer.current.add(event, Date.now() / 1000);
      }
    }
    const onState = (name, error) => {
      setFound((before) => ({ ...before, open: name === "open", problem: error ?? null }));
    };
    const release = takeStream(() => openStream({ url, onEvent, onState }));
    const timer = setInterval(() => {
      if (document.hidden || state.get().paused) return;
      const now = Date.now() / 1000;
      buffer.current.prune(now);
      setFound((before) => ({ ...before, now, ...told.current }));
    }, DRAWN_EVERY);
    return () => {
      clearInterval(timer);
      release();
    };
  }, [at, topic, filter]);
  return { ...found, buffer: buffer.current };
}

/** The filter of the plot; a wrong one is marked, and the last valid one goes on. */
function FilterField({ item, filter }) {
  const [text, setText] = useState(filter);
  const [problem, setProblem] = useState(null);
  useEffect(() => setText(filter), [filter]);
  async function use(wanted) {
    try {
      const body = { filter: wanted, topic: item.topic };
      if (wanted.trim()) await send("POST", "filters/check", { node: item.at, body });
      setProblem(null);
      change({ filter: wanted.trim() || undefined }, { replace: true });
    } catch (error) {
      setProblem(error);
    }
  }
  return html`<${Field} icon="filter" label="Filter" hint="Filter, for example cid = 'cam-1'" mono value=${text}
      invalid=${problem} testid="plot-filter" onEnter=${use} onClear=${() => { setText(""); use(""); }}
      onText=${(next) => { setText(next); setProblem(null); }} />
    ${problem && html`<p class="note bad" role="alert"><span>${wordsOf(problem)}</span></p>`}`;
}

/** Least, mean, greatest and last of the values that are shown; null without any. */
function summary(values) {
  if (!values.length) return null;
  let [least, greatest, sum] = [Infinity, -Infinity, 0];
  for (const value of values) {
    least = Math.min(least, value);
    greatest = Math.max(greatest, value);
    sum += value;
  }
  return { least, greatest, mean: sum / values.length, last: values.at(-1) };
}

/** How many values there are, between which, and how many events were skipped. */
function Told({ values, found, told: { events, skipped, problem, open } }) {
  const paused = useShared((shared) => shared.paused);
  const waiting = paused ? "Paused." : open ? "Waiting for the next event of the topic." : "Connecting.";
  return html`<p class="dim">${!events && !problem && waiting}
    ${events > 0 && counted(values.length, "value")}
    ${found && `, least ${figure(found.least)}, mean ${figure(found.mean)}, greatest ${figure(found.greatest)}`}
    ${skipped > 0 && html` · ${count(skipped)} events skipped: at most ${MAX_RATE}/s are sent`}</p>`;
}

/** The tab "Live plot" of a service. */
export function LivePlot({ item }) {
  const filter = useParameter("filter") ?? "";
  const wanted = useParameter("as");
  const told = useValues(item, filter);
  const { buffer, now, problem } = told;
  const names = [...new Set([...numericFields(item), ...buffer.names()])];
  const field = names.includes(wanted) ? wanted : names[0];
  const { times, values } = useMemo(() => buffer.series(field), [buffer, field, now]);
  const time = useCrosshair(GROUP);
  const index = nearestIndex(times, time);
  const found = summary(values);
  const shown = index >= 0 ? values[index] : found?.last ?? null;
  const low = Math.min(0, found?.least ?? 0);
  const series = useMemo(() => [{ label: field ?? "value", tone: "accent", values, dots: true }], [values, field]);
  const span = useMemo(() => [now - SPAN, now], [now]);
  return html`<div class="tools plot-tools">
      <label class="plot-field">Field <select data-testid="plot-field" value=${field} disabled=${!names.length}
        onChange=${(event) => change({ as: event.target.value }, { replace: true })}>
        ${names.map((name) => html`<option key=${name} value=${name} selected=${name === field}>
          ${oneLine(name)}</option>`)}
        ${!names.length && html`<option>none yet</option>`}</select></label>
      <${CurlButton} request=${{ path: eventsPath(item.topic), node: item.at, query: { max_rate: MAX_RATE, filter }, accept: "text/event-stream" }} />
    </div>
    <${FilterField} item=${item} filter=${filter} />
    ${problem && html`<p class="note bad" role="alert"><span>${wordsOf(problem)}</span></p>`}
    <div class="figure live-plot" data-testid="live-plot" data-values=${values.length} data-last=${found?.last}>
      <div class="figure-head"><h3>Last 5 minutes</h3>
        <span class="figure-values"><span class="figure-value"><b>${figure(shown)}</b></span></span></div>
      <${Chart} times=${times} series=${series} top=${niceCeiling(found?.greatest ?? 0)}
        bottom=${low && -niceCeiling(-low)} span=${span} height=${220} sync=${GROUP}
        label=${`${oneLine(field ?? "Values")}, last 5 minutes`} format=${short} valueText=${() => String(figure(shown))} />
    </div>
    <${Told} values=${values} found=${found} told=${told} />`;
}
