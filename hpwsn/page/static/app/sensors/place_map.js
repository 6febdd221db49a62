// A map of sensors by plain coordinates: a grid of degrees, marks by state, nothing from other servers.
//
// The list beside it says the same, so that nothing here needs a mouse: marks are no controls, the buttons are.
import { classes, html, useEffect, useLayoutEffect, useMemo, useRef, useState } from "../html.js";
import { ago, count, counted, oneLine } from "../format.js";
import { Button } from "../parts/controls.js";
import {
  frameOf, frameText, marksOf, parseFrame, roundValues, scaleBar, shifted, viewOf, wrapped, zoomed,
} from "./map_view.js";
import { STATES, latitudeText, longitudeText } from "./sensor_words.js";

const ZOOM = 2;
const WHEEL = 1.25;
const SETTLED = 250;
/** Pixels that the mouse moves before it drags. */
const DRAGGED = 4;
/** Where the arrow keys move the map, and by which part of it. */
const STEPS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
const STEP = 0.25;
const EARTH = { west: -180, south: -90, east: 180, north: 90 };

/** The shape of a state around 0, 0. */
function Shape({ state }) {
  switch (STATES[state].shape) {
    case "retrying": return html`<path d="M0-6.5 6.2 5H-6.2z" />`;
    case "expired": return html`<circle r="4.5" class="hollow" />`;
    case "paused": return html`<path class="bars" d="M-4-5H-1.2V5H-4zM1.2-5H4V5H1.2z" />`;
    default: return html`<circle r="5" />`;
  }
}

const titleOf = (item) => `${oneLine(item.id)}, ${STATES[item.word].word.toLowerCase()}, last report ${
  ago(item.state.last_seen)}`;

function Mark({ mark: { item, x, y }, selected, open }) {
  return html`<g class=${classes("mark-of", `is-${item.word}`, selected && "selected")} transform=${`translate(${x} ${y})`}
      data-testid="mark" data-id=${item.id} data-state=${item.word} onClick=${() => open(item)}>
    <title>${titleOf(item)}</title><circle r="12" class="target" />
    ${selected && html`<circle r="11" class="halo" />`}<${Shape} state=${item.word} />
    ${selected && html`<text y="-15" text-anchor="middle">${oneLine(item.id).slice(0, 40)}</text>`}</g>`;
}

/** Sensors that are drawn together, with the worst state among them. */
function Group({ group: { items, x, y }, enter }) {
  const worst = items.reduce((found, { word }) => (STATES[word].rank < STATES[found].rank ? word : found), "reporting");
  const numbers = Object.keys(STATES).map((word) => [word, items.filter((item) => item.word === word).length]);
  const words = numbers.filter(([, number]) => number).map(([word, number]) => `${count(number)} ${STATES[word].word.toLowerCase()}`);
  const radius = Math.min(18, 9 + 2.2 * Math.log10(items.length) + 1);
  return html`<g class=${`mark-of group is-${worst}`} transform=${`translate(${x} ${y})`} data-testid="mark-group" data-count=${items.length}
      data-state=${worst} onClick=${() => enter(items)}>
    <title>${`${counted(items.length, "sensor")}: ${words.join(", ")}. A click shows them larger.`}</title>
    <circle r=${radius} class="around" /><text y="4" text-anchor="middle">${items.length < 1000 ? items.length : `${Math.floor(items.length / 1000)}k`}</text>
    ${worst !== "reporting" && html`<g class="badge" transform=${`translate(${radius - 2} ${-radius + 2}) scale(0.8)`}><${Shape} state=${worst} /></g>`}</g>`;
}

function Grid({ view }) {
  const { frame, width, height } = view;
  const meridians = roundValues(frame.west, frame.east, Math.max(2, width / 130));
  const parallels = roundValues(Math.max(-90, frame.south), Math.min(90, frame.north), Math.max(2, height / 90));
  const bar = scaleBar(view);
  return html`<g class="grid">
    ${meridians.map((each) => {
      const x = (each - frame.west) * (width / (frame.east - frame.west));
      return html`<g key=${`m ${each}`}><path d=${`M${x} 0V${height}`} /><text x=${x + 4} y=${height - 6}>${longitudeText(wrapped(each))}</text></g>`;
    })}
    ${parallels.map((each) => html`<g key=${`p ${each}`}><path d=${`M0 ${view.y(each)}H${width}`} /><text x="6" y=${view.y(each) - 4}>${latitudeText(each)}</text></g>`)}
  </g>
  <g class="scale" transform=${`translate(${width - 12} ${height - 24})`}>
    <path d=${`M${-bar.pixels}-4V0H0V-4`} /><text x="-4" y="-6" text-anchor="end">${bar.metres >= 1000 ? `${count(bar.metres / 1000)} km` : `${count(bar.metres)} m`}</text></g>`;
}

/** The width and height of an element in pixels. */
function useSize(ref) {
  const [size, setSize] = useState([0, 0]);
  useLayoutEffect(() => {
    const look = () => setSize([Math.round(ref.current.clientWidth), Math.round(ref.current.clientHeight)]);
    look();
    const watch = new ResizeObserver(look);
    watch.observe(ref.current);
    return () => watch.disconnect();
  }, []);
  return size;
}

/** Zooming with the wheel and dragging with the mouse; `frame` is what is shown meanwhile, null otherwise. */
function useMoves({ moves, show }) {
  const [frame, setFrame] = useState(null);
  const svg = useRef(null);
  const drag = useRef(null);
  const dragged = useRef(false);
  const timer = useRef(0);
  const now = useRef(null);
  const choose = useRef(null);
  choose.current = (next) => {
    show(next);
    setFrame(null);
  };
  useEffect(() => () => clearTimeout(timer.current), []);

  useEffect(() => {
    if (!moves) return undefined;
    const wheel = (event) => {
      if (event.ctrlKey || event.metaKey || !event.deltaY) return;
      event.preventDefault();
      const box = svg.current.getBoundingClientRect();
      const { view } = now.current;
      const at = {
        longitude: view.longitudeAt(event.clientX - box.left), latitude: view.latitudeAt(event.clientY - box.top),
      };
      const next = zoomed(view.frame, event.deltaY < 0 ? 1 / WHEEL : WHEEL, at);
      setFrame(next ?? EARTH);
      clearTimeout(timer.current);
      timer.current = setTimeout(() => choose.current(next), SETTLED);
    };
    svg.current.addEventListener("wheel", wheel, { passive: false });
    return () => svg.current?.removeEventListener("wheel", wheel);
  }, [moves]);
  function end() {
    const to = drag.current?.to;
    drag.current = null;
    if (to) choose.current(to);
  }
  const pointer = {
    onPointerDown(event) {
      dragged.current = false;
      if (event.button || event.pointerType === "touch") return;
      clearTimeout(timer.current);
      drag.current = { x: event.clientX, y: event.clientY, view: now.current.view, to: null };
    },
    onPointerMove(event) {
      const from = drag.current;
      if (!from) return;
      const [right, down] = [event.clientX - from.x, event.clientY - from.y];
      if (!dragged.current && Math.hypot(right, down) < DRAGGED) return;
      if (!dragged.current) svg.current.setPointerCapture(event.pointerId);
      dragged.current = true;
      from.to = shifted(from.view, right, down);
      setFrame(from.to);
    },
    onPointerUp: end,
    onPointerCancel: end,
  };
  return { frame, svg, now, pointer, wasDragged: () => dragged.current };
}

/** The frame around all items with a place; null without any. */
function wholeOf(items) {
  const frame = frameOf(items.filter((item) => item.place).map((item) => item.place));
  return frame && frame.east - frame.west > 360 ? EARTH : frame;
}

/** The chosen area as a rectangle of a view; null where it fills the view. */
function areaOf(chosen, view) {
  const across = view.width / (view.frame.east - view.frame.west);
  const [width, height] = [(chosen.east - chosen.west) * across, (chosen.north - chosen.south) * view.scale];
  if (width > view.width * 0.98 && height > view.height * 0.98) return null;
  return { x: (chosen.west - view.frame.west) * across, y: view.y(chosen.north), width, height };
}

/**
 * `items` are drawn, and all of `everywhere` are in the map where no `area` ("west,south,east,north") is chosen.
 * `open(item)` opens one, `openKey` is open; `onArea(text)` gets another area, or undefined for all. Without `onArea`
 * the map stays as it is.
 */
export function PlaceMap({ items, everywhere, area, onArea, openKey, open, label }) {
  const box = useRef(null);
  const [width, height] = useSize(box);
  const placed = useMemo(() => items.filter((item) => item.place), [items]);
  const whole = useMemo(() => wholeOf(everywhere), [everywhere]);
  const chosen = parseFrame(area);
  const show = (frame) => onArea?.(frame ? frameText(frame) : undefined);
  const { frame, svg, now, pointer, wasDragged } = useMoves({ moves: Boolean(onArea), show });
  const view = width && height ? viewOf(frame ?? chosen ?? whole ?? EARTH, width, height) : null;
  now.current = { view };
  const marks = view ? marksOf(placed, view) : { singles: [], groups: [] };
  // The open one is drawn alone, and over all others, also where it is in a group.
  const selected = view && marksOf(placed.filter((item) => item.key === openKey), view).singles[0];
  function keys(event) {
    const step = STEPS[event.key];
    if (!step || !view || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    show(shifted(view, -step[0] * width * STEP, -step[1] * height * STEP));
  }
  const click = (item) => { if (!wasDragged()) open(item); };
  const enter = (members) => { if (!wasDragged()) show(frameOf(members.map((item) => item.place))); };
  const inside = chosen && !frame && view ? areaOf(chosen, view) : null;
  return html`<div class="place-map" ref=${box} data-testid="map" data-marks=${marks.singles.length} data-groups=${marks.groups.length}>
    <svg ref=${svg} class=${onArea ? "moves" : null} width=${width} height=${height} viewBox=${`0 0 ${width || 1} ${height || 1}`}
        role="img" aria-label=${label} ...${onArea ? pointer : {}}>
      ${view && html`<${Grid} view=${view} />
        ${inside && html`<rect class="area" ...${inside} />`}
        ${marks.groups.map((group) => html`<${Group} key=${group.items[0].key} group=${group} enter=${enter} />`)}
        ${marks.singles.filter(({ item }) => item.key !== openKey).map((mark) => html`<${Mark} key=${mark.item.key} mark=${mark} open=${click} />`)}
        ${selected && html`<${Mark} key=${selected.item.key} mark=${selected} selected open=${click} />`}`}
    </svg>
    ${onArea && html`<div class="map-tools" role="group" aria-label="Map; the arrow keys move it" onKeyDown=${keys}>
      <${Button} icon="plus" label="Show a smaller area" testid="zoom-in" disabled=${!view} onClick=${() => show(zoomed(view.frame, 1 / ZOOM))} />
      <${Button} icon="minus" label="Show a larger area" testid="zoom-out" disabled=${!view} onClick=${() => show(zoomed(view.frame, ZOOM))} />
      <${Button} disabled=${!chosen} testid="zoom-all" onClick=${() => show(null)}>All<//>
    </div>`}
  </div>`;
}
