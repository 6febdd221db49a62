// The settings of uPlot and what is drawn around its lines: bands, thresholds, restarts, values between gaps.
//
// uPlot draws on a canvas and sets styles by the object model only, as the policy of the page wants it.
import uPlot from "../../vendor/uPlot.esm.js";
import { clock } from "../format.js";

/** Seconds between two times of the x axis: whole ones, so that no time is written twice. */
const STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400];
/** Pixels from which an axis has more figures than three. */
const TALL = 180;
/** Pixels from which a range has its name. */
const LABELLED = 16;
const TOKENS = ["accent", "soft", "warn", "bad", "line", "text-3", "surface"];

/** The colour of a token as a canvas can use it; `probe` is any element of the page. */
function colourOf(probe, name) {
  probe.style.color = `var(${name})`;
  const { color } = getComputedStyle(probe);
  probe.style.color = "";
  return color;
}

/** The colours of the theme that applies to an element now. */
export function coloursAt(probe) {
  return Object.fromEntries(TOKENS.map((name) => [name, colourOf(probe, `--${name}`)]));
}

/**
 * Options of uPlot. `look()` gives what may change without another plot: {top, bottom, ticks, span, marks, lines,
 * ranges, series, format}; `utc` is the zone of the x axis; `moved(index)` hears of the cursor.
 */
export function plotOptions({ width, height, series, colours, look, utc, moved }) {
  const grid = { stroke: colours.line, width: 1 };
  const axis = { stroke: colours["text-3"], grid, ticks: { show: false }, font: "11px Inter, sans-serif" };
  const upright = { ...axis, grid: { ...grid, show: false } };
  return {
    width, height, legend: { show: false }, padding: [8, 24, 0, 0],
    ...(utc && { tzDate: (at) => uPlot.tzDate(new Date(at * 1000), "Etc/UTC") }),
    cursor: {
      y: false, drag: { x: false, y: false, setScale: false }, focus: { prox: -1 },
      points: {
        size: 7, width: 1.5, stroke: (plot, index) => plot.series[index].stroke(), fill: () => colours.surface,
      },
    },
    scales: {
      x: { time: true, range: (_, from, to) => look().span ?? [from, to] },
      y: { range: () => (look().ticks ? [look().bottom, look().top] : [look().bottom || 0, look().top || 1]) },
    },
    axes: [
      { ...upright, size: 22, space: 72, incrs: STEPS, values: (_, found) => found.map((at) => clockOf(at, found)) },
      {
        ...axis, size: 38, gap: 4, splits: () => look().ticks ?? ticksOf(look(), height),
        values: (_, found) => found.map((value) => look().format(value)),
      },
    ],
    series: [{}, ...series.map((each) => ({
      label: each.label, stroke: colours[each.tone ?? "accent"], width: 1.5, spanGaps: false, points: { show: false },
    }))],
    hooks: {
      drawClear: [(plot) => clipped(plot, () => {
        drawRanges(plot, look().ranges, colours);
        drawBands(plot, look().series, colours);
      })],
      draw: [(plot) => clipped(plot, () => {
        drawOver(plot, look(), colours);
        drawNames(plot, look().ranges, colours);
      })],
      setCursor: [(plot) => moved(plot.cursor.idx ?? null)],
    },
  };
}

/** The ticks of the y axis: its ends and what halves, quarters or fifths it, so that the end has its figure. */
function ticksOf({ top, bottom = 0 }, height) {
  const end = top || 1;
  const mantissa = Math.round(end / 10 ** Math.floor(Math.log10(end) + 1e-9));
  const parts = height < TALL ? 2 : mantissa === 2 ? 4 : 5;
  const above = Array.from({ length: parts }, (_, index) => (end * (index + 1)) / parts);
  return bottom < 0 ? [bottom, 0, ...above] : [0, ...above];
}

/** Hours and minutes; with seconds where the ticks are nearer than a minute. */
function clockOf(at, ticks) {
  const near = ticks.length > 1 && ticks[1] - ticks[0] < 60;
  return near ? clock(at) : clock(at).slice(0, 5);
}

function clipped(plot, draw) {
  const { ctx, bbox } = plot;
  ctx.save();
  ctx.beginPath();
  ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
  ctx.clip();
  draw();
  ctx.restore();
}

/** The top and the bottom of a range in the plot; null if it is not in sight. */
function sidesOf(plot, { low, high }) {
  const { bbox, scales } = plot;
  if (low > scales.y.max || high < scales.y.min) return null;
  const place = (value, end) => (typeof value === "number" ? plot.valToPos(value, "y", true) : end);
  const [first, last] = [bbox.top, bbox.top + bbox.height];
  return [Math.max(first, place(high, first)), Math.min(last, place(low, last))];
}

/** Ranges of values over the whole time, with lines at their bounds. */
function drawRanges(plot, ranges = [], colours) {
  const { ctx, bbox, scales } = plot;
  const [first, last] = [bbox.left, bbox.left + bbox.width];
  for (const range of ranges) {
    const [top, bottom] = sidesOf(plot, range) ?? [];
    if (top === undefined) continue;
    ctx.globalAlpha = range.active ? 0.16 : 0.3;
    ctx.fillStyle = colours[range.active ? "soft" : "line"];
    ctx.fillRect(first, top, bbox.width, bottom - top);
    ctx.globalAlpha = 1;
    for (const value of [range.low, range.high]) {
      if (typeof value !== "number" || value < scales.y.min || value > scales.y.max) continue;
      const y = plot.valToPos(value, "y", true);
      stroke(plot, colours[range.active ? "accent" : "text-3"], [2, 3], [first, y], [last, y]);
    }
  }
}

/** The names of ranges over everything else: at the left, or each second one at the right. */
function drawNames(plot, ranges = [], colours) {
  const { ctx, bbox } = plot;
  const ratio = window.devicePixelRatio;
  ctx.font = `${11 * ratio}px Inter, sans-serif`;
  ctx.textBaseline = "top";
  ctx.textAlign = "left";
  ranges.forEach((range, index) => {
    const [top, bottom] = sidesOf(plot, range) ?? [0, 0];
    if (bottom - top < LABELLED * ratio) return;
    const width = Math.min(ctx.measureText(range.name).width, bbox.width / 2);
    const x = index % 2 ? bbox.left + bbox.width - width - 6 * ratio : bbox.left + 6 * ratio;
    ctx.globalAlpha = 0.85;
    ctx.fillStyle = colours.surface;
    ctx.fillRect(x - 2 * ratio, top + ratio, width + 4 * ratio, 14 * ratio);
    ctx.globalAlpha = 1;
    ctx.fillStyle = colours[range.active ? "accent" : "text-3"];
    ctx.fillText(range.name, x, top + 3 * ratio, width);
  });
}

function drawBands(plot, series, colours) {
  for (const each of series) {
    if (each.low && each.high) drawBand(plot, each, colours[each.bandTone ?? "soft"]);
  }
}

/** Fills between the least and the greatest values, one polygon for each run without a gap. */
function drawBand(plot, { low, high }, colour) {
  const { ctx } = plot;
  ctx.fillStyle = colour;
  ctx.globalAlpha = 0.35;
  for (const columns of bandColumns(plot, low, high)) {
    ctx.beginPath();
    for (const { x, top } of columns) ctx.lineTo(x, top);
    for (const { x, bottom } of columns.reverse()) ctx.lineTo(x, bottom);
    ctx.fill();
  }
  ctx.globalAlpha = 1;
}

/** The runs of a band as columns {x, top, bottom} of one pixel, however many points a pixel has. */
function bandColumns(plot, low, high) {
  const { bbox, scales } = plot;
  const [times] = plot.data;
  const across = bbox.width / (scales.x.max - scales.x.min);
  const up = bbox.height / (scales.y.max - scales.y.min);
  const runs = [];
  let run = null;
  let column = null;
  for (let index = 0; index < times.length; index += 1) {
    if (low[index] === null || low[index] === undefined) {
      run = null;
      continue;
    }
    const x = Math.round(bbox.left + (times[index] - scales.x.min) * across);
    const top = bbox.top + (scales.y.max - high[index]) * up;
    const bottom = bbox.top + (scales.y.max - low[index]) * up;
    if (!run) runs.push(run = []);
    else if (column.x === x) {
      column.top = Math.min(column.top, top);
      column.bottom = Math.max(column.bottom, bottom);
      continue;
    }
    column = { x, top, bottom };
    run.push(column);
  }
  return runs;
}

function drawOver(plot, { lines = [], marks = [], series }, colours) {
  for (const each of lines) drawLevel(plot, each.value, colours[each.tone ?? "warn"]);
  for (const at of marks) drawMark(plot, at, colours.warn);
  series.forEach((each, index) => drawDots(plot, index + 1, colours[each.tone ?? "accent"], each.dots));
}

function stroke(plot, colour, dash, from, to) {
  const { ctx } = plot;
  ctx.strokeStyle = colour;
  ctx.lineWidth = window.devicePixelRatio;
  ctx.setLineDash(dash.map((each) => each * window.devicePixelRatio));
  ctx.beginPath();
  ctx.moveTo(...from);
  ctx.lineTo(...to);
  ctx.stroke();
}

/** A threshold, if it is within the axis. */
function drawLevel(plot, value, colour) {
  const { bbox, scales } = plot;
  if (value > scales.y.max) return;
  const y = plot.valToPos(value, "y", true);
  stroke(plot, colour, [2, 3], [bbox.left, y], [bbox.left + bbox.width, y]);
}

/** A moment, such as a restart: a line with a triangle at its head. */
function drawMark(plot, at, colour) {
  const { ctx, bbox } = plot;
  const x = plot.valToPos(at, "x", true);
  if (!(x >= bbox.left && x <= bbox.left + bbox.width)) return;
  stroke(plot, colour, [4, 4], [x, bbox.top], [x, bbox.top + bbox.height]);
  const size = 4 * window.devicePixelRatio;
  ctx.fillStyle = colour;
  ctx.beginPath();
  ctx.moveTo(x - size, bbox.top);
  ctx.lineTo(x + size, bbox.top);
  ctx.lineTo(x, bbox.top + 1.5 * size);
  ctx.fill();
}

/** Values between two gaps, which a line cannot show; with `all`, every value. */
function drawDots(plot, which, colour, all) {
  const { ctx, bbox, scales } = plot;
  const [times] = plot.data;
  const values = plot.data[which];
  const radius = 1.5 * window.devicePixelRatio;
  const across = bbox.width / (scales.x.max - scales.x.min);
  ctx.fillStyle = colour;
  for (let index = 0; index < values.length; index += 1) {
    const alone = (values[index - 1] ?? null) === null && (values[index + 1] ?? null) === null;
    if ((values[index] ?? null) === null || !(all || alone)) continue;
    const x = bbox.left + (times[index] - scales.x.min) * across;
    ctx.beginPath();
    ctx.arc(x, plot.valToPos(values[index], "y", true), radius, 0, 2 * Math.PI);
    ctx.fill();
  }
}
