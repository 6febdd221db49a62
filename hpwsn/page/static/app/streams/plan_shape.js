// The plan of a service as boxes and edges, left to right. Pure.
//
// A job registers [{op, inputs: [name or position], text}]; a node that runs the job itself tells
// {inputs: [{name, source}], operators: [{operator, inputs: [name], output}], output}. Both become the same.

const MOST = 120;
const BOX = { width: 122, height: 58 };
const GAP = { x: 24, y: 12 };
const EDGE = 8;

/** The text of an operator without its name: "speed > 60" of "filter speed > 60". */
const rest = (op, text) => (text.startsWith(op) ? text.slice(op.length).trim() : text);

function ofJob(plan, inputs) {
  const boxes = plan.map(({ op, inputs: from = [], text = "" }, position) => ({
    id: `op ${position}`, kind: "operator", title: op, text: rest(op, text),
    from: from.map((each) => (typeof each === "number" ? `op ${each}` : `in ${each}`)),
  }));
  return { boxes, sources: { ...inputs }, last: plan.length ? `op ${plan.length - 1}` : null };
}

function ofAgent(plan) {
  const made = new Map(plan.operators.map((each, position) => [each.output, `op ${position}`]));
  const named = (name) => made.get(name) ?? `in ${name}`;
  const boxes = plan.operators.map(({ operator, inputs = [], output, schema }, position) => {
    const [op] = operator.split(" ", 1);
    return {
      id: `op ${position}`, kind: "operator", title: op, text: rest(op, operator), more: `${output}: ${schema ?? ""}`,
      from: inputs.map(named),
    };
  });
  const sources = Object.fromEntries((plan.inputs ?? []).map(({ name, source }) => [name, source]));
  return { boxes, sources, last: named(plan.output) };
}

/**
 * The boxes of a service {plan, inputs, topic} as [{id, kind: "input" | "operator" | "output", title, text, from}];
 * `left` is the number of operators beyond the first 120, which are not drawn.
 */
export function boxesOf({ plan, inputs = {}, topic }) {
  const known = Array.isArray(plan) ? ofJob(plan, inputs) : plan?.operators ? ofAgent(plan) : null;
  const { boxes, sources, last } = known ?? {
    boxes: [{ id: "op 0", kind: "operator", title: "job", text: "does not tell its operators",
      from: Object.keys(inputs).map((name) => `in ${name}`) }],
    sources: inputs, last: "op 0",
  };
  const some = boxes.slice(0, MOST);
  const names = new Set([...Object.keys(sources), ...some.flatMap((box) => box.from)
    .filter((from) => from.startsWith("in ")).map((from) => from.slice(3))]);
  const starts = [...names].slice(0, MOST)
    .map((name) => ({ id: `in ${name}`, kind: "input", title: name, text: sources[name] ?? "", from: [] }));
  const end = boxes.length > MOST ? some.at(-1).id : last ?? starts[0]?.id;
  const output = { id: "output", kind: "output", title: topic, text: "topic", from: end ? [end] : [] };
  return { boxes: [...starts, ...some, output], left: boxes.length - some.length };
}

/** The level of each box: the longest way from the inputs. The topic is behind all others. */
function levelsOf(boxes) {
  const levels = new Map();
  for (const box of boxes) {
    const before = box.from.map((id) => levels.get(id)).filter((level) => level !== undefined);
    levels.set(box.id, box.kind === "input" ? 0 : Math.max(0, ...before) + 1);
  }
  levels.set("output", Math.max(1, ...levels.values()));
  return levels;
}

/** The columns of the drawing; an edge over several levels has a bend in each between, in the place of a box. */
function columnsOf(boxes, levels) {
  const columns = Array.from({ length: levels.get("output") + 1 }, () => []);
  const edges = [];
  for (const box of boxes) {
    columns[levels.get(box.id)].push(box);
    for (const from of box.from.filter((id) => levels.has(id))) {
      let last = from;
      for (let level = levels.get(from) + 1; level < levels.get(box.id); level += 1) {
        const bend = { id: `${from} ${box.id} ${level}`, kind: "bend", from: [last] };
        columns[level].push(bend);
        edges.push([last, bend.id]);
        last = bend.id;
      }
      edges.push([last, box.id]);
    }
  }
  return { columns, edges };
}

/** Boxes with their places, edges as paths, and the size of the drawing. */
export function placed(boxes) {
  const { columns, edges } = columnsOf(boxes, levelsOf(boxes));
  const tallest = Math.max(...columns.map((column) => column.length));
  const height = tallest * (BOX.height + GAP.y) - GAP.y + 2 * EDGE;
  const at = new Map();
  columns.forEach((column, level) => {
    // A box stands beside what it reads, so that few edges cross.
    const order = (box) => box.from.reduce((sum, id) => sum + (at.get(id)?.y ?? 0), 0) / (box.from.length || 1);
    const top = (height - column.length * (BOX.height + GAP.y) + GAP.y) / 2;
    const x = EDGE + level * (BOX.width + GAP.x);
    (level ? [...column].sort((left, right) => order(left) - order(right)) : column)
      .forEach((box, index) => at.set(box.id, { ...box, ...BOX, x, y: top + index * (BOX.height + GAP.y) }));
  });
  return {
    boxes: [...at.values()].filter((box) => box.kind !== "bend"),
    edges: edges.map(([from, to]) => edge(at.get(from), at.get(to))),
    width: 2 * EDGE + columns.length * (BOX.width + GAP.x) - GAP.x, height,
  };
}

/** The path of an edge, with an arrow at a box; a bend is passed straight. */
function edge(from, to) {
  const arrow = to.kind !== "bend";
  const [x1, y1] = [from.x + from.width, from.y + from.height / 2];
  const [x2, y2] = [arrow ? to.x - 5 : to.x, to.y + to.height / 2];
  const bend = (x2 - x1) / 2;
  const on = arrow ? "" : `H${to.x + to.width}`;
  return { id: `${from.id} ${to.id}`, arrow, path: `M${x1} ${y1}C${x1 + bend} ${y1} ${x2 - bend} ${y2} ${x2} ${y2}${on}` };
}
