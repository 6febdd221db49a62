// Where nodes and links are in the drawing. Pure: positions depend on names and membership, never on figures.
//
// Clusters stand in two columns in the order of their names, each below the shorter column. The nodes of a
// cluster hang on one bus; more than MOST_BOXES are squares. The curves of links begin and end at the inner side.

export const WIDTH = 720;
export const MOST_BOXES = 12;
export const BOX = { width: 194, height: 72 };
export const SQUARE = 20;

const COLUMN = 252;
const EDGE = 8;
const HEAD = 46;
const FOOT = 16;
const GAP = 20;
const BETWEEN = 32;
const SQUARE_GAP = 8;
const IN_ROW = Math.floor((BOX.width + SQUARE_GAP) / (SQUARE + SQUARE_GAP));
/** Where the labels of links are on their curves, in turn, so that they do not cover each other. */
const LABELS_AT = [0.5, 0.36, 0.64, 0.25, 0.75];
const LABEL_HEIGHT = 26;
const CURVES = 40;

const byName = (left, right) => (left.name < right.name ? -1 : Number(left.name > right.name));

/** The nodes of a cluster by name, but first the one that represented it when the page was opened. */
export function ordered(cluster, leaders) {
  if (!leaders.has(cluster.name) && cluster.representative) leaders.set(cluster.name, cluster.representative);
  const leader = leaders.get(cluster.name);
  return [...cluster.nodes].sort((left, right) => (
    (right.name === leader) - (left.name === leader) || byName(left, right)));
}

function heightOf(nodes) {
  if (nodes.length > MOST_BOXES) {
    return HEAD + Math.ceil(nodes.length / IN_ROW) * (SQUARE + SQUARE_GAP) - SQUARE_GAP + FOOT;
  }
  return HEAD + nodes.length * (BOX.height + GAP) - GAP + FOOT;
}

function placed(nodes, x, y) {
  const squares = nodes.length > MOST_BOXES;
  return nodes.map((node, index) => ({
    node, squares,
    x: squares ? x + (index % IN_ROW) * (SQUARE + SQUARE_GAP) : x,
    y: y + HEAD + (squares ? Math.floor(index / IN_ROW) * (SQUARE + SQUARE_GAP) : index * (BOX.height + GAP)),
    width: squares ? SQUARE : BOX.width, height: squares ? SQUARE : BOX.height,
  }));
}

/** {height, clusters: [{name, cluster, side, x, y, width, height, bus, nodes: [{node, x, y, …}]}], curves}. */
export function layout(clusters, leaders) {
  const columns = [{ side: "left", height: 0, clusters: [] }, { side: "right", height: 0, clusters: [] }];
  for (const cluster of [...clusters].sort(byName)) {
    const column = columns[1].height < columns[0].height ? columns[1] : columns[0];
    const nodes = ordered(cluster, leaders);
    const top = column.height ? column.height + BETWEEN : 0;
    column.clusters.push({ cluster, nodes, top });
    column.height = top + heightOf(nodes);
  }
  const height = Math.max(columns[0].height, columns[1].height) + 2 * EDGE;
  const alone = columns[1].clusters.length === 0;
  const drawn = columns.flatMap((column) => column.clusters.map(({ cluster, nodes, top }) => {
    const x = alone ? (WIDTH - COLUMN) / 2 : column.side === "left" ? EDGE : WIDTH - EDGE - COLUMN;
    const y = EDGE + (height - 2 * EDGE - column.height) / 2 + top;
    const inside = nodes.length === 1 && alone ? x + (COLUMN - BOX.width) / 2
      : column.side === "left" ? x + COLUMN - 18 - BOX.width : x + 18;
    return {
      name: cluster.name, cluster, side: column.side, x, y, width: COLUMN, height: heightOf(nodes),
      bus: column.side === "left" ? x + 20 : x + COLUMN - 20, nodes: placed(nodes, inside, y),
    };
  }));
  return { height, clusters: drawn, alone };
}

/** Where a link leaves a cluster: at the inner side of a node, the `index`-th of `total` links there. */
function anchor(group, name, index, total) {
  const spot = group.nodes.find((each) => each.node.name === name) ?? group.nodes[0];
  const left = group.side === "left";
  const squares = spot.squares;
  const x = squares ? (left ? group.x + group.width : group.x) : (left ? spot.x + spot.width : spot.x);
  const y = spot.y + (spot.height * (index + 1)) / (total + 1);
  return { x, y, out: left ? 1 : -1 };
}

const at = (t, a, b, c, d) => (1 - t) ** 3 * a + 3 * (1 - t) ** 2 * t * b + 3 * (1 - t) * t ** 2 * c + t ** 3 * d;

/** The curves of links, [{link, path, label: {x, y}}]; `links` are [{from, to, …}] with nodes of two clusters. */
export function curvesOf(drawn, links) {
  const groups = new Map();
  for (const group of drawn.clusters) for (const { node } of group.nodes) groups.set(node.name, group);
  const shown = links.filter((link) => groups.has(link.from) && groups.has(link.to)).slice(0, CURVES);
  const ends = new Map();
  for (const link of shown) {
    for (const name of [link.from, link.to]) ends.set(name, [...(ends.get(name) ?? []), link]);
  }
  const labels = [];
  return shown.map((link, index) => {
    const [from, to] = [link.from, link.to].map((name) => (
      anchor(groups.get(name), name, ends.get(name).indexOf(link), ends.get(name).length)));
    const same = from.out === to.out;
    const reach = same ? 60 + Math.min(60, Math.abs(from.y - to.y) / 8) : Math.abs(to.x - from.x) / 2;
    const [b, c] = [from.x + from.out * reach, to.x + to.out * reach];
    const t = LABELS_AT[index % LABELS_AT.length];
    const label = { x: at(t, from.x, b, c, to.x), y: at(t, from.y, from.y, to.y, to.y) };
    while (labels.some((other) => Math.abs(other.x - label.x) < 110 && Math.abs(other.y - label.y) < LABEL_HEIGHT)) {
      label.y += LABEL_HEIGHT;
    }
    labels.push(label);
    return { link, label, path: `M${from.x} ${from.y}C${b} ${from.y} ${c} ${to.y} ${to.x} ${to.y}` };
  });
}
