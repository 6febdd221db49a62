// The drawing of the clusters: boxes of nodes on a bus, curves between representatives. Its positions are layout.js.
import { classes, html } from "../html.js";
import { bytes, count, duration, figure, oneLine, secondsSince } from "../format.js";
import { useShared } from "../state.js";
import { curvesOf, layout, WIDTH } from "./layout.js";
import { MEASURES, betweenClusters, heldFor, insideOf } from "./links.js";

/** Characters of a name: as many as fit, with and without words at its right. */
const LONGEST = 20;
const BESIDE_WORDS = 11;
/** Pixels of a curve without traffic, and of the busiest. */
const THINNEST = 1.5;
const THICKEST = 9;
/** The node that represented each cluster when this page was opened: it stays first. */
const leaders = new Map();

const cut = (text, length) => {
  const shown = [...oneLine(text)];
  return shown.length > length ? `${shown.slice(0, length - 1).join("")}…` : shown.join("");
};

/** A measure as text: messages and bytes a second, or bytes. */
export function measured(measure, value) {
  if (measure === "messages") return `${figure(value)} /s`;
  return measure === "bytes" ? `${bytes(value)}/s` : bytes(value);
}

const WORDS = { alive: "alive", dead: "dead", left: "has left" };

function labelOf(node, cluster) {
  const represents = node.name === cluster.representative ? `, represents ${oneLine(cluster.name)}` : "";
  return `${oneLine(node.name)}, ${WORDS[node.state] ?? node.state}${represents}`;
}

/** What makes an element of the drawing a button that opens a node. */
function button(node, label, selected, open) {
  const pressed = (event) => {
    if (event.key !== "Enter" && event.key !== " ") return;
    event.preventDefault();
    open(node.name);
  };
  return {
    role: "button", tabindex: 0, "data-testid": "node", "data-name": node.name, "data-state": node.state,
    "aria-label": label, "aria-pressed": String(selected), onClick: () => open(node.name),
    onKeyDown: pressed,
  };
}

function Sign({ state, x, y }) {
  if (state === "alive") return html`<circle class="sign-live" cx=${x} cy=${y} r="4" />`;
  if (state === "dead") return html`<path class="sign-dead" d=${`M${x} ${y - 5.5}l5.5 5.5l-5.5 5.5l-5.5 -5.5Z`} />`;
  return html`<circle class="sign-left" cx=${x} cy=${y} r="3.5" />`;
}

function Box({ spot, group, cluster, selected, open }) {
  const { node, x, y, width, height } = spot;
  const represents = node.name === group.cluster.representative;
  const alive = node.state === "alive";
  const end = x + width - 12;
  const held = alive ? 0 : heldFor(cluster, node.name).bytes;
  const name = cut(node.name, alive && !represents ? LONGEST : BESIDE_WORDS);
  const gone = alive ? null : `${node.state} ${duration(Math.max(1, secondsSince(node.since)))}`;
  const figures = alive ? [`in ${figure(node.figures?.published_rate)} /s`, `out ${figure(node.figures?.delivered_rate)} /s`]
    : [held ? `${bytes(held)} kept for its return` : "nothing kept for it"];
  // The name for screen readers begins with what is seen, so that it can be said to it.
  const seen = [name, represents && "represents", gone, ...figures].filter(Boolean).join(" ");
  return html`<g class=${classes("node", node.state, represents && "represents", selected && "selected")} ...${button(node, `${seen}; ${labelOf(node, group.cluster)}`, selected, open)}>
    <rect x=${x} y=${y} width=${width} height=${height} rx="8"><title>${oneLine(node.name)}</title></rect>
    <${Sign} state=${node.state} x=${x + 16} y=${y + 19} />
    <text class="name" x=${x + 28} y=${y + 24}>${name}</text>${" "}
    ${represents && html`<text class="star" x=${end} y=${y + 24} text-anchor="end">represents</text>`}${" "}
    ${gone && html`<text class="gone" x=${end} y=${y + 24} text-anchor="end">${gone}</text>`}${" "}
    <text class="dim" x=${x + 12} y=${y + 54}>${figures[0]}</text>${" "}
    ${figures[1] && html`<text class="dim" x=${end} y=${y + 54} text-anchor="end">${figures[1]}</text>`}
  </g>`;
}

const SHAPES = {
  alive: ({ x, y }) => `M${x + 3} ${y}h14a3 3 0 0 1 3 3v14a3 3 0 0 1 -3 3h-14a3 3 0 0 1 -3 -3v-14a3 3 0 0 1 3 -3Z`,
  dead: ({ x, y }) => `M${x + 10} ${y}l10 10l-10 10l-10 -10Z`,
  left: ({ x, y }) => `M${x + 10} ${y + 3}a7 7 0 1 0 0.01 0Z`,
};

/** A node of a large cluster: one element, so that thousands can be drawn. */
function Square({ spot, group, selected, open }) {
  const { node } = spot;
  const represents = node.name === group.cluster.representative;
  return html`<path class=${classes("node square", node.state, represents && "represents", selected && "selected")}
    d=${(SHAPES[node.state] ?? SHAPES.left)(spot)} ...${button(node, labelOf(node, group.cluster), selected, open)} />`;
}

function Bus({ group }) {
  const spots = group.nodes;
  if (spots.length < 2 || spots[0].squares) return null;
  const middle = (spot) => spot.y + spot.height / 2;
  const side = (spot) => (group.side === "left" ? spot.x : spot.x + spot.width);
  const alive = spots.filter((spot) => spot.node.state === "alive");
  const from = alive.length ? middle(alive[0]) : 0;
  const to = alive.length ? middle(alive.at(-1)) : 0;
  return html`${alive.length > 0 && html`<path class="bus" d=${`M${group.bus} ${from}V${to}${alive.map((spot) => `M${group.bus} ${middle(spot)}H${side(spot)}`).join("")}`} />`}
    ${spots.filter((spot) => spot.node.state !== "alive").map((spot) => html`<path key=${spot.node.name} class=${`bus ${spot.node.state}`}
      d=${`M${side(spot)} ${middle(spot)}H${group.bus}${alive.length ? `V${Math.min(Math.max(middle(spot), from), to)}` : ""}`} />`)}`;
}

function Group({ group, cluster, links, measure, id, open }) {
  const nodes = group.cluster.nodes;
  const alive = nodes.filter((node) => node.state === "alive").length;
  const inside = insideOf(links, group.name, MEASURES[measure].field);
  const words = alive < nodes.length ? `${alive} of ${nodes.length} alive`
    : inside ? `${inside.by.join(", ").toUpperCase()} inside ${measured(measure, inside.value)}`
      : nodes.length === 1 ? "1 node" : `${count(nodes.length)} nodes`;
  return html`<g role="group" aria-label=${`Cluster ${oneLine(group.name)}`}>
    <rect class="cluster" x=${group.x} y=${group.y} width=${group.width} height=${group.height} rx="12" />
    <text class="name" x=${group.x + 18} y=${group.y + 28}>${cut(group.name, 16)}<title>${oneLine(group.name)}</title></text>
    <text class=${alive < nodes.length ? "gone" : "dim"} x=${group.x + group.width - 18} y=${group.y + 28} text-anchor="end">${words}</text>
    <${Bus} group=${group} />
    ${group.nodes.map((spot) => html`<${spot.squares ? Square : Box} key=${spot.node.name} spot=${spot} group=${group}
      cluster=${cluster} selected=${spot.node.name === id} open=${open} />`)}
  </g>`;
}

function Curve({ curve, measure, most }) {
  const { link, path } = curve;
  const share = Math.sqrt(link[MEASURES[measure].field] / most);
  return html`<path class=${classes("curve", link.state === "down" && "down", !link.by.length && "idle")} d=${path}
    style=${{ strokeWidth: `${THINNEST + (THICKEST - THINNEST) * share}px` }} />`;
}

function Label({ curve, measure }) {
  const { link, label } = curve;
  const down = link.state === "down";
  const value = measured(measure, link[MEASURES[measure].field]);
  const words = down ? "broken" : link.by.length ? `${link.by.join(", ").toUpperCase()} ${value}` : "no messages yet";
  const wide = 16 + 6.4 * words.length;
  return html`<rect class="label" x=${label.x - wide / 2} y=${label.y - 11} width=${wide} height="22" rx="11" />
    <text class=${down ? "label-text gone" : "label-text"} x=${label.x} y=${label.y + 4} text-anchor="middle">${words}</text>`;
}

/** The drawing of some clusters; `id` is the selected node, `open(name)` selects one. */
export function Drawing({ cluster, clusters, links, measure, id, open }) {
  useShared((shared) => shared.heard);
  const drawn = layout(clusters, leaders);
  const curves = curvesOf(drawn, betweenClusters({ ...cluster, clusters }, links));
  const most = Math.max(MEASURES[measure].thick, ...curves.map((curve) => curve.link[MEASURES[measure].field]));
  const nodes = clusters.reduce((sum, each) => sum + each.nodes.length, 0);
  return html`<div class="map"><svg viewBox=${`0 0 ${WIDTH} ${drawn.height}`} role="group"
    aria-label=${`${clusters.length} clusters, ${nodes} nodes; the table says the same`}>
    ${drawn.clusters.map((group) => html`<${Group} key=${group.name} group=${group} cluster=${cluster} links=${links} measure=${measure} id=${id} open=${open} />`)}
    ${curves.map((curve) => html`<${Curve} key=${curve.link.key} curve=${curve} measure=${measure} most=${most} />`)}
    ${curves.map((curve) => html`<${Label} key=${curve.link.key} curve=${curve} measure=${measure} />`)}
  </svg></div>`;
}
