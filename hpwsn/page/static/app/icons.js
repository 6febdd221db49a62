// Icons of 16 × 16 by stroke, as SVG elements. Each is a list of paths; a circle is {cx, cy, r}.
import { html } from "./html.js";

const PATHS = {
  overview: ["M2.5 8.3 8 3.2l5.5 5.1", "M4.2 7v6h7.6V7"],
  topics: ["M3 2.8v8.9h3.2", "M3 6.2h3.2", "M8.7 6.2H13", "M8.7 11.7H13", "M3 2.8h4"],
  subscriptions: ["M2.5 4h11v8h-11z", "M2.5 9h3l1 1.6h3l1-1.6h3"],
  "dead-letters": ["M8 2.6 14 13H2z", "M8 6.6v3", "M8 11.2v.1"],
  topology: [{ cx: 8, cy: 3.6, r: 1.8 }, { cx: 3.6, cy: 12, r: 1.8 }, { cx: 12.4, cy: 12, r: 1.8 },
    "m7.1 5.3-2.7 5", "m8.9 5.3 2.7 5", "M5.4 12h5.2"],
  health: ["M2 8.5h2.8l1.8-4.4 2.9 8.3 1.8-3.9H14"],
  streams: ["M2 4.8c2 0 2-1.5 4-1.5s2 1.5 4 1.5 2-1.5 4-1.5", "M2 8.8c2 0 2-1.5 4-1.5s2 1.5 4 1.5 2-1.5 4-1.5",
    "M2 12.8c2 0 2-1.5 4-1.5s2 1.5 4 1.5 2-1.5 4-1.5"],
  sensors: ["M8 13.8c3-3.4 4.4-5.6 4.4-7.4a4.4 4.4 0 0 0-8.8 0c0 1.8 1.4 4 4.4 7.4z", { cx: 8, cy: 6.4, r: 1.5 }],
  more: ["M2.5 4.5h11", "M2.5 8h11", "M2.5 11.5h11"],
  dots: ["M3.5 8h.01", "M8 8h.01", "M12.5 8h.01"],
  down: ["m4.5 6.3 3.5 3.5 3.5-3.5"],
  right: ["m6.3 4.5 3.5 3.5-3.5 3.5"],
  left: ["m9.7 4.5-3.5 3.5 3.5 3.5"],
  up: ["m4.5 9.7 3.5-3.5 3.5 3.5"],
  search: [{ cx: 7, cy: 7, r: 4.2 }, "m10.2 10.2 3.3 3.3"],
  filter: ["M2.5 4h11", "M4.5 8h7", "M6.5 12h3"],
  minus: ["M3.5 8h9"],
  plus: ["M8 3.5v9", "M3.5 8h9"],
  close: ["m4 4 8 8", "m12 4-8 8"],
  check: ["m3.2 8.4 3.2 3.2 6.4-7"],
  pause: ["M5.6 4v8", "M10.4 4v8"],
  play: ["M5 3.6v8.8L12.4 8z"],
  undo: ["M5.6 4 3 6.6l2.6 2.6", "M3 6.6h6.4a3.2 3.2 0 0 1 0 6.4H6"],
  copy: ["M6 6h7v7H6z", "M10 6V3H3v7h3"],
  edit: ["M10.6 3.2 12.8 5.4 5.4 12.8l-2.8.6.6-2.8z"],
  trash: ["M3 4.5h10", "M6 4.5V3h4v1.5", "M4.2 4.5l.6 8.5h6.4l.6-8.5"],
  download: ["M8 2.8v7", "m5 7 3 3 3-3", "M3 13h10"],
  upload: ["M8 10V3", "m5 5.8 3-3 3 3", "M3 13h10"],
  retry: ["M12.8 8A4.8 4.8 0 1 1 11 4.3", "M11.2 2v2.6H8.6"],
  clock: [{ cx: 8, cy: 8, r: 5.5 }, "M8 5v3.2l2 1.4"],
  moon: ["M13 9.6A5.6 5.6 0 1 1 6.4 3 4.5 4.5 0 0 0 13 9.6z"],
  sun: [{ cx: 8, cy: 8, r: 2.8 }, "M8 1.8v1.4", "M8 12.8v1.4", "M1.8 8h1.4", "M12.8 8h1.4", "m3.6 3.6 1 1",
    "m11.4 11.4 1 1", "m3.6 12.4 1-1", "m11.4 4.6 1-1"],
  system: ["M2.5 3.5h11v7.5h-11z", "M6 13.5h4"],
  send: ["M2.8 8 13.2 3.2 9.4 13l-2-4z"],
  link: ["M6.8 9.2a2.6 2.6 0 0 0 3.7 0l2-2a2.6 2.6 0 0 0-3.7-3.7l-.8.8",
    "M9.2 6.8a2.6 2.6 0 0 0-3.7 0l-2 2a2.6 2.6 0 0 0 3.7 3.7l.8-.8"],
};

/** An icon; it is decoration, so the control around it has the name. */
export function Icon({ name }) {
  return html`<svg class=${`icon icon-${name}`} viewBox="0 0 16 16" aria-hidden="true" focusable="false">
    ${PATHS[name].map((part) => (typeof part === "string" ? html`<path d=${part} />` : html`<circle ...${part} />`))}
  </svg>`;
}

/** The mark of the project: a sender and its waves. */
export function Mark() {
  return html`<svg class="mark" viewBox="0 0 20 20" aria-hidden="true" focusable="false">
    <circle cx="10" cy="10" r="2.2" />
    <path d="M6 14a5.6 5.6 0 0 1 0-8M14 6a5.6 5.6 0 0 1 0 8M3.2 16.8a9.6 9.6 0 0 1 0-13.6M16.8 3.2a9.6 9.6 0 0 1 0 13.6" />
  </svg>`;
}
