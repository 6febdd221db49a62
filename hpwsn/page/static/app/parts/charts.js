// Lines over time: sparks by SVG, and charts by uPlot, which draws on a canvas.
import { html, useEffect, useRef, useState } from "../html.js";
import { clock, niceCeiling, short } from "../format.js";
import { useShared } from "../state.js";

const darkScheme = matchMedia("(prefers-color-scheme: dark)");

/** The path of a line through values (null leaves a gap) in a box of `width` × `height`, from 0 to `top`. */
export function linePath(values, width, height, top) {
  if (!values.length) return "";
  const step = values.length > 1 ? width / (values.length - 1) : 0;
  let path = "";
  let pen = "M";
  values.forEach((value, index) => {
    if (value === null || value === undefined) {
      pen = "M";
      return;
    }
    const y = height - (Math.min(value, top) / top) * height;
    path += `${pen}${(index * step).toFixed(1)} ${y.toFixed(1)}`;
    pen = "L";
  });
  return path;
}

/** At most `most` values: each the greatest of its part, so that peaks stay. */
export function thinned(values, most) {
  if (values.length <= most) return values;
  const size = values.length / most;
  return Array.from({ length: most }, (_, index) => {
    const part = values.slice(Math.floor(index * size), Math.floor((index + 1) * size)).filter((each) => each !== null);
    return part.length ? Math.max(...part) : null;
  });
}

/** A small line without axes; `tone` is "warn" or "bad" for a line in that colour. */
export function Spark({ values, top, height = 36, tone }) {
  const shown = thinned(values, 90);
  const end = top ?? niceCeiling(Math.max(0, ...shown.filter((value) => value !== null)));
  const line = linePath(shown, 100, height, end);
  const known = shown.findLastIndex((value) => value !== null);
  const first = shown.findIndex((value) => value !== null);
  const at = (index) => ((index / Math.max(1, shown.length - 1)) * 100).toFixed(1);
  const area = known > first && first >= 0 && !shown.slice(first, known + 1).includes(null)
    ? `${line}L${at(known)} ${height}L${at(first)} ${height}Z` : "";
  return html`<svg class=${`spark ${tone ?? ""}`} viewBox=${`0 0 100 ${height}`} preserveAspectRatio="none" aria-hidden="true">
    <path class="spark-zero" d=${`M0 ${height}H100`} />
    ${area && html`<path class="spark-area" d=${area} />`}<path class="spark-line" d=${line} /></svg>`;
}

/** The colour of a token as the canvas can use it; `probe` is any element of the page. */
function colourOf(probe, name) {
  probe.style.color = `var(${name})`;
  const { color } = getComputedStyle(probe);
  probe.style.color = "";
  return color;
}

/**
 * A chart over time by uPlot. `times` are seconds since 1970, `series` is [{label, values, tone}] with a tone
 * of "accent", "soft", "warn" or "bad"; `top` ends the y axis; `marks` are times of vertical lines. Charts with the
 * same `sync` share their cursor.
 */
export function Chart({ times, series, top, height = 120, sync, marks = [], label, format = short }) {
  const place = useRef(null);
  const plot = useRef(null);
  const shownMarks = useRef(marks);
  shownMarks.current = marks;
  const shownTop = useRef(top);
  shownTop.current = top;
  const theme = useShared((shared) => shared.theme);
  const [systemDark, setSystemDark] = useState(() => darkScheme.matches);
  useEffect(() => {
    const look = () => setSystemDark(darkScheme.matches);
    darkScheme.addEventListener("change", look);
    return () => darkScheme.removeEventListener("change", look);
  }, []);
  const zone = useShared((shared) => shared.zone);
  const shape = series.map((each) => `${each.label} ${each.tone}`).join();

  useEffect(() => {
    const box = place.current;
    const names = ["accent", "soft", "warn", "bad"];
    const colours = Object.fromEntries(names.map((name) => [name, colourOf(box, `--${name}`)]));
    const grid = { stroke: colourOf(box, "--line"), width: 1 };
    const axis = { stroke: colourOf(box, "--text-3"), grid, ticks: { show: false }, font: "11px Inter, sans-serif" };
    const options = {
      width: box.clientWidth || 200, height, legend: { show: false }, padding: [6, 4, 0, 0],
      cursor: { y: false, sync: sync ? { key: sync, setSeries: false } : undefined, drag: { x: false, y: false } },
      scales: { x: { time: true }, y: { range: () => [0, shownTop.current || 1] } },
      axes: [
        { ...axis, size: 22, space: 70, values: (_, found) => found.map((at) => clock(at).slice(0, 5)) },
        { ...axis, size: 38, space: 28, values: (_, found) => found.map((value) => format(value)) },
      ],
      series: [{}, ...series.map((each) => ({
        label: each.label, stroke: colours[each.tone ?? "accent"], width: 1.5, spanGaps: false, points: { show: false },
      }))],
      hooks: { draw: [(drawn) => drawMarks(drawn, shownMarks.current, colours.warn)] },
    };
    plot.current = new window.uPlot(options, dataOf(times, series), box);
    const watch = new ResizeObserver(() => plot.current?.setSize({ width: box.clientWidth || 200, height }));
    watch.observe(box);
    return () => {
      watch.disconnect();
      plot.current?.destroy();
      plot.current = null;
    };
  }, [shape, height, sync, theme, systemDark, zone]);

  useEffect(() => {
    plot.current?.setData(dataOf(times, series));
  });

  return html`<div class="chart" ref=${place} role="img" aria-label=${label}></div>`;
}

const dataOf = (times, series) => [times, ...series.map((each) => each.values)];

function drawMarks(plot, marks, colour) {
  const { ctx, bbox } = plot;
  ctx.save();
  ctx.strokeStyle = colour;
  ctx.setLineDash([4, 4]);
  for (const at of marks) {
    const x = plot.valToPos(at, "x", true);
    if (x < bbox.left || x > bbox.left + bbox.width) continue;
    ctx.beginPath();
    ctx.moveTo(x, bbox.top);
    ctx.lineTo(x, bbox.top + bbox.height);
    ctx.stroke();
  }
  ctx.restore();
}
