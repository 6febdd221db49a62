// Topics as texts, `A:B:C` or `{namespace}A:B`: their names, parents and children, and which names are allowed.
// Pure.

const STEP = /(?:\{[^{}]*\})?[^:{}]+/g;
/** First and last characters of the ranges that a name of XML may begin with, and those allowed later. */
const FIRST = [
  [0x41, 0x5a], [0x5f, 0x5f], [0x61, 0x7a], [0xc0, 0xd6], [0xd8, 0xf6], [0xf8, 0x2ff], [0x370, 0x37d], [0x37f, 0x1fff],
  [0x200c, 0x200d], [0x2070, 0x218f], [0x2c00, 0x2fef], [0x3001, 0xd7ff], [0xf900, 0xfdcf], [0xfdf0, 0xfffd],
  [0x10000, 0xeffff],
];
const LATER = [...FIRST, [0x2d, 0x2e], [0x30, 0x39], [0xb7, 0xb7], [0x300, 0x36f], [0x203f, 0x2040]];
const MOST_STEPS = 64;
const LONGEST = 4096;

/** The names of a topic from the root down; the first has the namespace of the topic, if it is not the usual one. */
export const stepsOf = (topic) => topic.match(STEP) ?? [];

/** A step as {namespace, name}; the namespace is "" where none is written. */
export function splitStep(step) {
  const end = step.startsWith("{") ? step.indexOf("}") : -1;
  return { namespace: end < 0 ? "" : step.slice(1, end), name: step.slice(end + 1) };
}

/** The topic above; "" for a root. */
export const parentOf = (topic) => stepsOf(topic).slice(0, -1).join(":");

/** The last step of a topic. */
export const lastStep = (topic) => stepsOf(topic).at(-1) ?? topic;

/** All topics above one, the root first. */
export function ancestorsOf(topic) {
  const steps = stepsOf(topic);
  return steps.slice(1).map((_, index) => steps.slice(0, index + 1).join(":"));
}

/** The topic with this name below another one; below "" it is a root. */
export const childOf = (parent, name) => (parent ? `${parent}:${name}` : name);

/** Whether a topic is another one or below it. */
export const covers = (above, topic) => topic === above || topic.startsWith(`${above}:`);

/** What a topic is called after `from` has become `to`; other topics keep their names. */
export const rebased = (topic, from, to) => (covers(from, topic) ? to + topic.slice(from.length) : topic);

/**
 * The place of a topic after a move below another one. A root takes its namespace along, and a name in the
 * namespace of a new root is written without it.
 */
export function movedBelow(topic, parent) {
  const steps = stepsOf(topic);
  const { namespace, name } = splitStep(steps.at(-1));
  const own = splitStep(steps[0]).namespace;
  const target = parent ? splitStep(stepsOf(parent)[0]).namespace : null;
  if (target === null) return namespace || own ? `{${namespace || own}}${name}` : name;
  return childOf(parent, namespace && namespace !== target ? `{${namespace}}${name}` : name);
}

const isIn = (ranges, character) => {
  const code = character.codePointAt(0);
  return ranges.some(([first, last]) => first <= code && code <= last);
};
const shown = (character) => (/\s/u.test(character) ? "a space" : `'${character}'`);

function problemOfStep(step) {
  let name = step;
  if (step.startsWith("{")) {
    const end = step.indexOf("}");
    if (end < 2) return "a namespace is written {urn:example}Name";
    name = step.slice(end + 1);
  }
  const [first, ...rest] = [...name];
  if (first === undefined) return "a name is empty";
  if (!isIn(FIRST, first)) {
    return isIn(LATER, first) ? `a name begins with a letter or '_', not with ${shown(first)}`
      : `${shown(first)} is not allowed in a name`;
  }
  const wrong = rest.find((character) => !isIn(LATER, character));
  return wrong === undefined ? null : `${shown(wrong)} is not allowed in a name: use letters, digits, '_', '-' and '.'`;
}

/** The steps of a text that somebody types, also of one that is not valid. */
const typedSteps = (text) => text.match(/(?:\{[^{}]*\}?)?[^:]*/g).filter((step, index) => step !== "" || index === 0);

/** Why a text cannot be the name of a topic below `parent`, or null. With `deep` it may have several steps. */
export function problemOfName(text, { parent = "", deep = false } = {}) {
  if (text === "") return "a name is needed";
  const steps = typedSteps(text);
  if (!deep && steps.length > 1) return "':' is not allowed in a name";
  if (/(^|[^}]):(:|$)/.test(text.replace(/\{[^{}]*\}/g, "")) || text.startsWith(":")) return "a name is empty";
  for (const step of steps) {
    const problem = problemOfStep(step);
    if (problem) return problem;
  }
  if (stepsOf(parent).length + steps.length > MOST_STEPS) return `a topic has at most ${MOST_STEPS} names`;
  if (childOf(parent, text).length > LONGEST) return `a topic has at most ${LONGEST} characters`;
  return null;
}

const OWN_NAMESPACE = "{urn:hpwsn:topics}";

/** A topic as the API writes it: names joined by colons, without the namespace of topics that have none. */
export function canonicalTopic(text) {
  const joined = text?.replace(/(\{[^}]*\})|\//g, (_, namespace) => namespace ?? ":");
  return joined?.startsWith(OWN_NAMESPACE) ? joined.slice(OWN_NAMESPACE.length) : joined;
}
