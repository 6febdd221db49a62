// The plan of a service drawn left to right: inputs, operators, topic. It scrolls sideways if it is wide.
import { html, useMemo } from "../html.js";
import { oneLine } from "../format.js";
import { boxesOf, placed } from "./plan_shape.js";

const TITLE = 16;
const TEXT = 19;

const cut = (text, most) => {
  const line = oneLine(text);
  return line.length > most ? `${line.slice(0, most - 1)}…` : line;
};

/** A text as at most two lines, broken between words if that is possible. */
function lines(text) {
  const line = oneLine(text);
  if (line.length <= TEXT) return [line];
  const space = line.lastIndexOf(" ", TEXT);
  const end = space > 0 ? space : TEXT;
  return [line.slice(0, end), cut(line.slice(end).trim(), TEXT)];
}

function Box({ box }) {
  const { x, y, width, height, kind, title, text, more } = box;
  return html`<g class=${`plan-box plan-${kind}`} data-testid="plan-box" data-kind=${kind}>
    <title>${oneLine([title, text, more].filter(Boolean).join(" · "))}</title>
    <rect x=${x} y=${y} width=${width} height=${height} rx="6" />
    <text class="plan-title" x=${x + 10} y=${y + (text ? 18 : 33)}>${cut(title, TITLE)}</text>
    ${text && lines(text).map((line, index) => html`<text key=${index} class="plan-text" x=${x + 10}
      y=${y + 34 + 14 * index}>${line}</text>`)}
  </g>`;
}

/** The plan in words, for screen readers: an operator a line. */
function Words({ boxes }) {
  const names = new Map(boxes.map((box) => [box.id, box.title]));
  return html`<ol class="for-screen-readers">${boxes.map(({ id, title, text, from }) => html`<li key=${id}>
    ${oneLine(`${title} ${text}`)}${from.length > 0 && `, reads ${oneLine(from.map((each) => names.get(each) ?? each).join(", "))}`}</li>`)}</ol>`;
}

/** `service` is a service as GET /streams/URI tells it. */
export function PlanDrawing({ service }) {
  const { plan, inputs, topic } = service;
  const key = JSON.stringify([plan, inputs, topic]);
  const { boxes, left, drawn } = useMemo(() => {
    const found = boxesOf({ plan, inputs, topic });
    return { ...found, drawn: placed(found.boxes) };
  }, [key]);
  return html`<div class="plan" tabindex="0" role="region" aria-label="Plan" data-testid="plan">
      <svg width=${drawn.width} height=${drawn.height} viewBox=${`0 0 ${drawn.width} ${drawn.height}`}
        aria-hidden="true" focusable="false">
        <defs><marker id="plan-arrow" viewBox="0 0 6 6" refX="1" refY="3" markerWidth="6" markerHeight="6"
          orient="auto"><path d="M0 0 6 3 0 6z" /></marker></defs>
        ${drawn.edges.map(({ id, path, arrow }) => html`<path key=${id} class="plan-edge" d=${path}
          marker-end=${arrow ? "url(#plan-arrow)" : null} />`)}
        ${drawn.boxes.map((box) => html`<${Box} key=${box.id} box=${box} />`)}
      </svg>
      <${Words} boxes=${boxes} />
    </div>
    ${left > 0 && html`<p class="dim">${left} more operators are not drawn.</p>`}`;
}
