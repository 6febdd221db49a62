// Charts over time by uPlot, which draws on a canvas. Views that have none do not load it.
import uPlot from "../../vendor/uPlot.esm.js";
import { html, useEffect, useRef, useState } from "../html.js";
import { clock, short } from "../format.js";
import { useShared } from "../state.js";
import { crosshairOf, movedIndex, nearestIndex } from "./crosshair.js";
import { coloursAt, plotOptions } from "./plot.js";

const darkScheme = matchMedia("(prefers-color-scheme: dark)");
const NONE = [];

/**
 * A chart over time by uPlot. `times` are seconds since 1970, ascending; `series` is [{label, values, tone, low,
 * high, dots}] with a tone of "accent", "soft", "warn" or "bad", null for gaps, and with low and high a band
 * between them. The y axis ends at `top` and begins at 0, or at `bottom`; `span` is [from, to] of the x axis instead
 * of all times; `marks` are times of restarts, `lines` thresholds [{value, tone}]. With `ticks`, the values that the y
 * axis names, it ends exactly at `bottom` and `top`; `ranges` are [{low, high, name, active}] of values, drawn over all
 * times. Charts with the same `sync` share
 * their crosshair: the keys left, right, Home and End move it, and `valueText(index)` says what is under it. Out of
 * sight nothing is drawn.
 */
export function Chart({
  times, series, top, bottom = 0, span, height = 120, sync, marks = NONE, lines = NONE, ranges = NONE, ticks,
  label, format = short, valueText, ...rest
}) {
  const place = useRef(null);
  const plot = useRef(null);
  const shown = useRef(null);
  shown.current = { times, series, top, bottom, ticks, span, marks, lines, ranges, format };
  const seen = useInSight(place);
  const theme = useShared((shared) => shared.theme);
  const zone = useShared((shared) => shared.zone);
  const dark = useSystemDark();
  const shape = series.map((each) => `${each.label} ${each.tone}`).join();
  const crosshair = sync ? crosshairOf(sync) : null;

  useEffect(() => {
    if (!seen) return undefined;
    const box = place.current;
    const me = {};
    const pill = document.createElement("span");
    pill.className = "chart-time";
    // uPlot also tells of its cursor when data or sizes change: only that under the mouse is the shared one.
    let hovered = false;
    const moved = (index) => {
      if (hovered) crosshair?.set({ time: index === null ? null : shown.current.times[index], by: me });
    };
    const made = new uPlot(plotOptions({
      width: box.clientWidth || 200, height, series, colours: coloursAt(box), look: () => shown.current,
      utc: zone === "utc", moved,
    }), dataOf(shown.current), box);
    const follow = ({ time, by }) => {
      const left = time === null ? -10 : made.valToPos(time, "x");
      pill.textContent = time === null ? "" : clock(time);
      pill.style.left = `${Math.max(24, Math.min(made.over.clientWidth - 24, left))}px`;
      if (by === me) return;
      hovered = false;
      made.setCursor({ left, top: time === null ? -10 : 1 }, false);
    };
    made.over.append(pill);
    made.over.addEventListener("mousemove", () => { hovered = true; }, { capture: true });
    made.over.addEventListener("mouseleave", () => {
      if (hovered) crosshair?.set({ time: null, by: null });
      hovered = false;
    });
    plot.current = { made, follow };
    const ended = crosshair?.subscribe(follow);
    if (crosshair) follow(crosshair.get());
    const watch = new ResizeObserver(() => {
      made.setSize({ width: box.clientWidth || 200, height });
      if (crosshair) follow(crosshair.get());
    });
    watch.observe(box);
    return () => {
      watch.disconnect();
      ended?.();
      if (crosshair?.get().by === me) crosshair.set({ time: null, by: null });
      plot.current = null;
      made.destroy();
    };
  }, [seen, shape, height, sync, theme, dark, zone]);

  useEffect(() => {
    if (!plot.current) return;
    const { made, follow } = plot.current;
    made.setData(dataOf(shown.current));
    if (crosshair) follow(crosshair.get());
  }, [
    times, top, bottom, span?.[0], span?.[1], marks, lines, ranges, ticks,
    ...series.flatMap((each) => [each.values, each.low]),
  ]);

  return html`<div class="chart" ref=${place} data-drawn=${String(seen)} style=${{ height: `${height}px` }}
    ...${crosshair ? steps({ crosshair, times, label, valueText }) : { role: "img", "aria-label": label }} ...${rest}></div>`;
}

/** What makes a chart a control that moves the crosshair by keys. */
function steps({ crosshair, times, label, valueText }) {
  const { time } = crosshair.get();
  const index = nearestIndex(times, time);
  const last = Math.max(0, times.length - 1);
  return {
    role: "slider", tabindex: 0, "aria-label": label, "aria-valuemin": 0, "aria-valuemax": last,
    "aria-valuenow": index < 0 ? last : index, "aria-valuetext": valueText?.(index) ?? null,
    onKeyDown(event) {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      const now = crosshair.get().time;
      const next = movedIndex(event.key, nearestIndex(times, now), times.length);
      if (event.key === "Escape" && now !== null) crosshair.set({ time: null, by: null });
      else if (next === undefined || !times.length) return;
      else crosshair.set({ time: times[next], by: null });
      event.preventDefault();
      event.stopPropagation();
    },
  };
}

const dataOf = ({ times, series }) => [times, ...series.map((each) => each.values)];

/** Whether an element is in sight or near it. */
export function useInSight(ref, margin = "200px") {
  const [seen, setSeen] = useState(false);
  useEffect(() => {
    const margins = { rootMargin: margin, scrollMargin: margin };
    const watch = new IntersectionObserver((entries) => setSeen(entries.at(-1).isIntersecting), margins);
    watch.observe(ref.current);
    return () => watch.disconnect();
  }, []);
  return seen;
}

function useSystemDark() {
  const [dark, setDark] = useState(darkScheme.matches);
  useEffect(() => {
    const look = () => setDark(darkScheme.matches);
    darkScheme.addEventListener("change", look);
    return () => darkScheme.removeEventListener("change", look);
  }, []);
  return dark;
}
