// JSON as text: its tokens, and where it is wrong. Pure.
//
// Numbers stay as they were written, since a double cannot hold all of them. Nothing here calls itself, so that
// the depth of a text does not matter.

const SPACE = /[ \t\n\r]*/y;
const NUMBER = /-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?/y;
const WORD = /[A-Za-z_]+/y;
const WORDS = new Set(["true", "false", "null"]);
const ESCAPES = '"\\/bfnrt';
const HEX = /[0-9a-fA-F]{4}/y;

function endOf(pattern, text, index) {
  pattern.lastIndex = index;
  return pattern.test(text) ? pattern.lastIndex : index;
}

/** The end of the string that begins at an index, or {index, message} of what is wrong with it. */
function stringEnd(text, start) {
  for (let index = start + 1; index < text.length; index += 1) {
    const code = text.charCodeAt(index);
    if (code === 0x22) return { end: index + 1 };
    if (code < 0x20) return { index, message: "a text has a line break or control character; write \\n or \\u…" };
    if (code !== 0x5c) continue;
    index += 1;
    if (text[index] === "u") {
      if (endOf(HEX, text, index + 1) === index + 1) return { index, message: "\\u wants four hexadecimal digits" };
      index += 4;
    } else if (index < text.length && !ESCAPES.includes(text[index])) {
      return { index, message: `\\${text[index]} is not an escape; write \\\\ for a backslash` };
    }
  }
  return { index: start, message: "a text has no closing quote" };
}

/** The tokens of a text as {kind, start, end}; the last one is "end", or "wrong" with `message` and `start`. */
export function* tokens(text) {
  let index = endOf(SPACE, text, 0);
  while (index < text.length) {
    const start = index;
    const first = text[index];
    if ("{}[]:,".includes(first)) {
      index += 1;
      yield { kind: first, start, end: index };
    } else if (first === '"') {
      const found = stringEnd(text, index);
      if (found.message) {
        yield { kind: "wrong", start: found.index, end: text.length, message: found.message, from: start };
        return;
      }
      index = found.end;
      yield { kind: "text", start, end: index };
    } else {
      const number = endOf(NUMBER, text, index);
      index = number > start ? number : endOf(WORD, text, index);
      const word = text.slice(start, index);
      if (number === start && !WORDS.has(word)) {
        const told = word ? `${word} is not a value; put texts in quotes` : `${first} is not expected here`;
        yield { kind: "wrong", start, end: Math.max(index, start + 1), message: told };
        return;
      }
      yield { kind: "value", start, end: index };
    }
    index = endOf(SPACE, text, index);
  }
  yield { kind: "end", start: index, end: index };
}

const NAMES = {
  "{": "{", "[": "[", "}": "}", "]": "]", ":": "a colon", ",": "a comma", text: "a text", value: "a value",
};
const NO_OBJECT = 'an event is an object, such as {"value": 1}';

/** What may come at a place of the text. `expected` is value, first (or the end), name, colon, after or nothing. */
function createGrammar() {
  const open = [];
  let expected = "value";
  let events = 0;

  function takeValue(kind) {
    const event = open.length === 0 || (open.length === 1 && open[0] === "[");
    if (event && kind !== "{" && !(kind === "[" && !open.length)) return NO_OBJECT;
    if (event && kind === "{") events += 1;
    if (kind === "{" || kind === "[") open.push(kind);
    expected = kind === "{" || kind === "[" ? "first" : "after";
    return null;
  }

  function close() {
    open.pop();
    expected = open.length ? "after" : "nothing";
    return null;
  }

  const naming = () => open.at(-1) === "{" && (expected === "first" || expected === "name");
  const wantsValue = () => expected === "value" || (expected === "first" && open.at(-1) === "[");

  /** Takes a token; returns what is wrong with it, or null. */
  function take({ kind, message }) {
    const inside = open.at(-1);
    if (kind === "wrong") return naming() ? "the name of a field is a text in double quotes" : message;
    const closes = (kind === "}" && inside === "{") || (kind === "]" && inside === "[");
    if (closes && (expected === "first" || expected === "after")) return close();
    if (wantsValue() && ["{", "[", "text", "value"].includes(kind)) return takeValue(kind);
    if (expected === "after" && kind === ",") expected = inside === "{" ? "name" : "value";
    else if (expected === "colon" && kind === ":") expected = "value";
    else if (kind === "text" && naming()) expected = "colon";
    else return unexpected(expected, inside, kind);
    return null;
  }

  function end() {
    if (expected === "nothing") return events ? null : "the array is empty; put objects into it";
    return open.length ? `the text ends before ${open.at(-1) === "{" ? "}" : "]"}` : "there is nothing";
  }

  return { take, end, events: () => events };
}

function unexpected(expected, inside, kind) {
  const found = NAMES[kind];
  if (expected === "nothing") return `${found} stands after the end; put several objects into an array, [ … ]`;
  if (expected === "colon") return `${found} stands where a colon is expected`;
  if (expected === "after") return `${found} stands where a comma or ${inside === "{" ? "}" : "]"} is expected`;
  if (inside === "{" && expected !== "value") return `${found} stands where a name in quotes is expected`;
  return `${found} stands where a value is expected`;
}

/**
 * Whether a text can be published: {events} if it is an object or an array of objects, or {index, message} of the
 * first thing that is wrong.
 */
export function checkJson(text) {
  const grammar = createGrammar();
  let end = 0;
  for (const token of tokens(text)) {
    const message = token.kind === "end" ? grammar.end() : grammar.take(token);
    if (message) return { index: token.kind === "end" ? end : token.start, message };
    end = token.end;
  }
  return { events: grammar.events() };
}
