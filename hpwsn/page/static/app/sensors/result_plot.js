// The results of a virtual sensor as they come, with its bands. The stream of this tab follows its topic meanwhile,
// which makes the page a user of the sensor: it runs as long as the plot is open.
import { html, useEffect, useMemo, useRef, useState } from "../html.js";
import { eventsPath, urlOf } from "../api.js";
import { count, counted, figure, oneLine } from "../format.js";
import { state, useShared, wordsOf } from "../state.js";
import { openStream, takeStream } from "../stream.js";
import { Ago, Clock, CurlButton, State, Text } from "../parts/controls.js";
import { Chart } from "../parts/charts.js";
import { nearestIndex, useCrosshair } from "../parts/crosshair.js";
import { lastEvents, logEnds, readEvents } from "../watch/log_pages.js";
import { axisOf, lastChange, resultBuffer, seriesOf, spanOf } from "./result_values.js";
import { exactSpan, rangeText } from "./sensor_words.js";

const GROUP = "virtual sensor";
const MAX_RATE = 50;
const DRAWN_EVERY = 500;
/** Earlier results that are read from the log when the plot is opened. */
const EARLIER = 500;
/** Characters of the name of a band in the plot. */
const LONGEST_NAME = 40;

/** The results that the log already has, the oldest first. */
async function earlierResults(topic, node) {
  const { end, oldest } = await logEnds(topic, node);
  const { after, events } = await lastEvents(topic, node, EARLIER, { upto: end, oldest });
  const lines = events ? await readEvents(topic, node, { after, upto: end }) : [];
  return lines.slice(-EARLIER).map((line) => JSON.parse(line));
}

/** The results while the component is shown, drawn again twice a second: {results, now, problem, open, skipped}. */
function useResults({ at, topic, every }) {
  const buffer = useRef(null);
  const skipped = useRef(0);
  const [found, setFound] = useState({ results: [], now: Date.now() / 1000, problem: null, open: false, skipped: 0 });
  useEffect(() => {
    const mine = resultBuffer(spanOf(every));
    buffer.current = mine;
    skipped.current = 0;
    const add = (event) => {
      // An event of another form is no result; whoever watches the topic sees it.
      if (event?.data !== null && typeof event?.data === "object") mine.add(event);
    };
    function onEvent({ type, data }) {
      const event = JSON.parse(data);
      if (type === "skipped") skipped.current += event.skipped;
      else if (type === "message") add(event);
    }
    const onState = (name, error) => {
      setFound((before) => ({ ...before, open: name === "open", problem: error ?? null }));
    };
    const url = () => urlOf(eventsPath(topic), { node: at, query: { max_rate: MAX_RATE } });
    const release = takeStream(() => openStream({ url, node: at, onEvent, onState }));
    // Without what was before, the plot begins empty.
    earlierResults(topic, at).then((events) => events.forEach(add)).catch(() => {});
    function draw() {
      if (document.hidden || state.get().paused) return;
      const now = Math.max(Date.now() / 1000, mine.results().at(-1)?.time ?? 0);
      mine.prune(now);
      setFound((before) => ({ ...before, now, results: [...mine.results()], skipped: skipped.current }));
    }
    const timer = setInterval(draw, DRAWN_EVERY);
    return () => {
      clearInterval(timer);
      release();
    };
  }, [at, topic, every]);
  return found;
}

/** The bands with their ranges; those that hold the last value are marked by word and shape. */
function Bands({ bands, states }) {
  if (!bands.length) return null;
  return html`<ul class="bands" aria-label="Bands">${bands.map((band, index) => {
    const active = states.includes(band.name);
    return html`<li key=${index} data-testid="band" data-active=${String(active)}>
      <${State} shape=${active ? "live" : "expired"}><${Text}>${band.name}<//><//>${" "}
      <span class="dim">${rangeText(band.low, band.high)}${active ? ", now" : ""}</span></li>`;
  })}</ul>`;
}

function Waiting({ item, found: { open, problem } }) {
  const paused = useShared((shared) => shared.paused);
  if (problem) return null;
  if (paused) return html`<p class="dim">Paused.</p>`;
  if (!open) return html`<p class="dim">Connecting.</p>`;
  return html`<p class="dim">Waiting for the next result: one comes every ${exactSpan(item.every)}, ${exactSpan(item.lateness)}
    after the end of its window, if ${item.quorum > 1 ? `${count(item.quorum)} sensors` : "a sensor"} reported in it.</p>`;
}

/** What the last result says, in words. */
function Last({ last, results }) {
  const changed = lastChange(results);
  return html`<dl class="details" data-testid="last-result">
    <dt>Last text</dt><dd><b data-testid="last-text"><${Text}>${last.text}<//></b></dd>
    <dt>States</dt><dd>${last.states.length ? html`<span class="tags">${last.states.map((each) => html`<span class="tag" key=${each}><${Text}>${each}<//></span>`)}</span>` : "none"}
      ${changed !== null && html` <span class="dim">since <${Clock} at=${changed} /></span>`}</dd>
    <dt>Window</dt><dd>ended <${Clock} at=${last.time} />, <${Ago} at=${last.time} />; ${counted(last.count ?? 0, "reading")} of ${counted(last.sensors ?? 0, "sensor")}</dd>
  </dl>`;
}

/** The tab "Live plot" of a virtual sensor. */
export function ResultPlot({ item }) {
  const found = useResults(item);
  const { results, now, problem, skipped } = found;
  const bands = item.bands ?? [];
  const last = results.at(-1);
  const { times, values } = useMemo(() => seriesOf(results, item.every), [results, item.every]);
  const known = values.filter((each) => each !== null);
  const { low, high, ticks } = axisOf(known, bands);
  const states = last?.states ?? [];
  const ranges = useMemo(() => bands.map((band) => ({
    ...band, name: oneLine(band.name).slice(0, LONGEST_NAME), active: states.includes(band.name),
  })),
    [JSON.stringify(bands), states.join("\n")]);
  const series = useMemo(() => [{ label: item.quantity, tone: "accent", values, dots: true }], [values, item.quantity]);
  const length = spanOf(item.every);
  const span = useMemo(() => [now - length, now], [now, length]);
  const time = useCrosshair(GROUP);
  const index = nearestIndex(times, time);
  const value = index >= 0 ? values[index] : last?.value ?? null;
  const kept = useMemo(() => ticks, [ticks.join()]);
  const unit = results.findLast((each) => each.unit)?.unit ?? "";
  return html`
    ${problem && html`<p class="note bad" role="alert"><span>${wordsOf(problem)}</span></p>`}
    <div class="figure live-plot" data-testid="virtual-plot" data-values=${known.length} data-last=${known.at(-1)}>
      <div class="figure-head"><h3><${Text}>${item.quantity}<//>${unit && html`, <${Text}>${unit}<//>`}, last ${exactSpan(length)}</h3>
        <span class="figure-values"><span class="figure-value"><b>${value === null ? "–" : shown(value)}</b></span></span></div>
      <${Chart} times=${times} series=${series} bottom=${low} top=${high} ticks=${kept} ranges=${ranges} span=${span}
        height=${220} sync=${GROUP} label=${`Results, last ${exactSpan(length)}`} format=${shown} valueText=${() => (value === null ? "no value" : shown(value))} />
    </div>
    <${Bands} bands=${bands} states=${states} />
    ${last ? html`<${Last} last=${last} results=${results} />` : html`<${Waiting} item=${item} found=${found} />`}
    ${skipped > 0 && html`<p class="dim">${count(skipped)} events skipped: at most ${MAX_RATE}/s are sent</p>`}
    <div class="tools plot-foot"><span class="dim">This plot uses the sensor: it runs while the plot is open.</span>
      <${CurlButton} request=${{ path: eventsPath(item.topic), node: item.at, accept: "text/event-stream" }} /></div>`;
}

const shown = (value) => (Math.abs(value) >= 10_000 ? figure(value) : String(Number(value.toPrecision(5))));
