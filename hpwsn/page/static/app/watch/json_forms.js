// JSON texts for people: their fields on one line, and with line breaks and indents. Pure.
//
// Nothing here calls itself, so that the depth of a text does not matter, and all ends at a number of characters.
import { tokens } from "./json_text.js";

const INDENT = "  ";
const DEEPEST_INDENT = 40;
const LONGEST_VALUE = 500;

/** The value of a token as a person reads it: texts without quotes, at most `room` characters. */
function valueOf(text, token, room) {
  const long = token.end - token.start > room;
  if (text[token.start] !== '"') return text.slice(token.start, long ? token.start + room : token.end);
  const part = text.slice(token.start + 1, long ? token.start + 1 + room : token.end - 1);
  // An escape that the cut has halved is left out.
  const whole = part.replace(/\\(?:u[0-9a-fA-F]{0,3})?$/, (found, at) => (
    (part.slice(0, at).match(/\\*$/)[0].length % 2 ? found : "")));
  let value;
  try {
    value = JSON.parse(`"${whole}"`);
  } catch {
    value = whole;
  }
  return long ? `${value}…` : value;
}

/** The place in a JSON text: `step` takes a token and returns whether it is a value, `name` is that of the value. */
function createPath() {
  const open = [];
  let name = null;
  const inObject = () => open.at(-1)?.kind === "{";
  return {
    step(kind, nameOf) {
      if (kind === "{" || kind === "[") {
        open.push({ kind, name });
        name = null;
      } else if (kind === "}" || kind === "]") {
        open.pop();
        name = null;
      } else if (kind === ",") name = null;
      else if (kind === "text" && inObject() && name === null) name = nameOf();
      else return kind === "text" || kind === "value";
      return false;
    },
    name: () => [...open.slice(1).map((each) => each.name), name].filter(Boolean).join("."),
    inArray: () => open.at(-1)?.kind === "[",
  };
}

/** The first fields of a JSON text as [name, value] pairs, in about `room` characters; a view cuts what is too long. */
export function fieldsOf(text, most = 50, room = 2000) {
  const fields = [];
  const path = createPath();
  let used = 0;
  for (const token of tokens(text)) {
    if (token.kind === "end" || token.kind === "wrong" || used > room || fields.length > most) break;
    if (!path.step(token.kind, () => valueOf(text, token, LONGEST_VALUE))) continue;
    const name = path.name();
    const value = valueOf(text, token, LONGEST_VALUE);
    const last = fields.at(-1);
    if (last && path.inArray() && last[0] === name) last[1] += `, ${value}`;
    else fields.push([name, value]);
    used += name.length + value.length + 2;
  }
  return fields;
}

/** What stands before a token: a line break and indent, a space, or nothing. */
function spaceBefore(kind, before, depth) {
  const closes = kind === "}" || kind === "]";
  const opened = before === "{" || before === "[";
  if (before === ":") return " ";
  if (closes ? opened : !opened && before !== ",") return "";
  return `\n${INDENT.repeat(Math.min(depth, DEEPEST_INDENT))}`;
}

/**
 * A JSON text with line breaks and indents, as parts [kind, text] with the kind "name" or "": {parts, whole}. It ends
 * after about `room` characters; the first `most` names are parts of their own.
 */
export function indented(text, room, most = 200) {
  const parts = [];
  const open = [];
  let plain = "";
  let length = 0;
  let before = "";
  for (const { kind, start, end } of tokens(text)) {
    if (kind === "wrong") return { parts: [["", text.slice(0, room)]], whole: text.length <= room };
    if (kind === "end" || length >= room) {
      parts.push(["", plain]);
      return { parts, whole: kind === "end" };
    }
    if (kind === "}" || kind === "]") open.pop();
    const space = spaceBefore(kind, before, open.length);
    plain += space;
    const piece = text.slice(start, Math.min(end, start + room - length));
    const isName = kind === "text" && open.at(-1) === "{" && before !== ":";
    if (isName && parts.length < 2 * most) {
      parts.push(["", plain], ["name", piece]);
      plain = "";
    } else plain += piece;
    length += space.length + piece.length;
    if (kind === "{" || kind === "[") open.push(kind);
    before = kind;
  }
  return { parts, whole: true };
}
