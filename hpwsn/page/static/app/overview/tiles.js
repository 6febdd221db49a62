// Six tiles: what the nodes in scope do now, the highest of the range, and its course as a line.
import { html } from "../html.js";
import { bytes, count, duration, figure, niceCeiling, scaledBytes, short } from "../format.js";
import { RANGES, STEPS, combined, combinedSeries, useHistories } from "../figures.js";
import { Spark } from "../parts/sparks.js";
import { Text } from "../parts/controls.js";

/** Points of the line of dead letters: each has the new ones of its part of the range. */
const PARTS = 60;
const LATE = new Set(["ConsumersBehind", "Backlog", "QueuesNearLimit"]);

const rate = (value) => ({ text: figure(value), unit: "/s" });
const number = (value) => ({ text: count(value), unit: "" });
const size = (value) => {
  const scaled = scaledBytes(value);
  return { text: figure(scaled.value), unit: scaled.unit };
};
const time = (value) => {
  const [text, unit] = duration(value).split(" ");
  return { text, unit };
};

const spanOf = (top) => (top < 1 ? `${short(top * 1000)} ms` : `${short(top)} s`);

function highest(format) {
  return ({ peak }) => (peak === null ? "no figures yet" : `highest ${format(peak)}`);
}

function latency({ alive, value, peak }) {
  if (value === null) return peak === null ? "no delivery yet" : `highest ${duration(peak)}`;
  return `p50 ${duration(combined("deliver_p50", alive.map((node) => node.figures?.deliver_p50)))}`;
}

function waiting({ alerts, peak }) {
  const late = alerts.find((alert) => LATE.has(alert.name.split(":")[0]));
  const many = late?.text.match(/^[\d,]+ (?:subscription|queue)s?/)?.[0];
  return many ? `${many} behind` : highest(count)({ peak });
}

const SPANS = { "5m": "5 min", "1h": "hour", "24h": "24 h" };

function lost({ added, range }) {
  const sum = added.reduce((all, each) => all + (each ?? 0), 0);
  return sum ? `${count(sum)} in the last ${SPANS[range]}` : `none in the last ${SPANS[range]}`;
}

const lostAxis = (top, range) => `${short(top)} / ${duration(RANGES[range] / PARTS).replace(/^1 /, "")}`;

function journal({ alive, peak }) {
  if (alive.length < 2) return highest(bytes)({ peak });
  const most = alive.reduce((left, right) => (
    (right.figures?.journal_bytes ?? 0) > (left.figures?.journal_bytes ?? 0) ? right : left));
  return html`fullest: <${Text}>${most.name}<//>, ${bytes(most.figures?.journal_bytes)}`;
}

/** By figure of the API: `value` gives text and unit, `sub` the line below it, `axis` the end of the axis. */
export const TILES = [
  { metric: "published_rate", title: "Published", value: rate, sub: highest(figure), axis: short },
  { metric: "delivered_rate", title: "Delivered", value: rate, sub: highest(figure), axis: short },
  { metric: "deliver_p99", title: "Delivery latency, p99", value: time, sub: latency, axis: spanOf },
  { metric: "waiting", title: "Waiting", value: number, sub: waiting, axis: short },
  { metric: "dead_letters", title: "Dead letters", value: number, sub: lost, axis: lostAxis },
  { metric: "journal_bytes", title: "Journal", value: size, sub: journal, axis: bytes },
];

/** The highest value in the range: of one node the highest sample, of several the highest mean of a step. */
function peakOf(metric, histories, value) {
  const known = histories.length === 1 ? histories[0].series[metric]?.max ?? [] : combinedSeries(metric, histories);
  const values = [...known, value].filter((each) => each !== null && each !== undefined);
  return values.length ? Math.max(...values) : null;
}

/** By how much a figure grew in each part of the range; null where it is not known. */
function growth(metric, histories, range) {
  const values = combinedSeries(metric, histories);
  const steps = Math.max(1, Math.round(RANGES[range] / STEPS[range] / PARTS));
  let before = null;
  return Array.from({ length: Math.ceil(values.length / steps) }, (_, part) => {
    let sum = null;
    for (const value of values.slice(part * steps, (part + 1) * steps)) {
      if (value === null) continue;
      sum = (sum ?? 0) + Math.max(0, before === null ? 0 : value - before);
      before = value;
    }
    return sum;
  });
}

function toneOf(metric, value, alerts) {
  if (metric === "dead_letters") return value ? "bad" : undefined;
  return metric === "waiting" && alerts.some((alert) => LATE.has(alert.name.split(":")[0])) ? "warn" : undefined;
}

function Tile({ tile, nodes, histories, range, alerts }) {
  const alive = nodes.filter((node) => node.state === "alive");
  const value = combined(tile.metric, alive.map((node) => node.figures?.[tile.metric]));
  const known = nodes.map((node) => histories[node.name]).filter(Boolean);
  const peak = peakOf(tile.metric, known, value);
  const isGrowth = tile.metric === "dead_letters";
  const line = isGrowth ? growth(tile.metric, known, range) : combinedSeries(tile.metric, known);
  const top = isGrowth ? niceCeiling(Math.max(0, ...line)) : niceCeiling(peak ?? 0);
  const axisTop = tile.metric === "deliver_p99" && !peak ? 0.001 : top;
  const tone = toneOf(tile.metric, value, alerts);
  const { text, unit } = value === null ? { text: "–", unit: "" } : tile.value(value);
  return html`<div class="tile" data-testid="tile" data-metric=${tile.metric}>
    <h3>${tile.title}</h3>
    <div class=${`tile-value ${tone ?? ""}`}>${text}${unit && html`<small>${unit}</small>`}</div>
    <div class="tile-sub">${tile.sub({ alive, alerts, value, peak, added: line, range })}</div>
    <div class="plot"><${Spark} values=${line} top=${axisTop} tone=${tone} /><small>${tile.axis(axisTop, range)}</small></div>
  </div>`;
}

/** The tiles of some nodes. */
export function Tiles(props) {
  return html`<section class="panel figures" aria-labelledby="figures-title">
    <h2 class="for-screen-readers" id="figures-title">Figures of the nodes in scope</h2>
    <div class="tiles">${TILES.map((tile) => html`<${Tile} key=${tile.metric} tile=${tile} ...${props} />`)}</div></section>`;
}

/** Nodes whose histories are read; the figures of all others are shown without lines. */
const MOST_HISTORIES = 48;

/** The histories of the figures of some nodes, by name. */
export function useTileHistories(nodes, range, metrics) {
  const known = nodes.slice(0, MOST_HISTORIES).map((node) => node.name);
  return useHistories(known, range, metrics).histories;
}
