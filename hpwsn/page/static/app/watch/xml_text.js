// XML as text: where it is not well-formed. Pure, since the policy of the page forbids the browser's own parser.
//
// It checks what people get wrong: tags that do not match, attributes, entities, prefixes without a namespace. The node
// has the last word.

const NAME = /[A-Za-z_:\u00c0-\u{effff}][-A-Za-z0-9._:\u00b7\u00c0-\u{effff}]*/uy;
const SPACE = /[ \t\r\n]*/y;
const REFERENCE = /&(?:#[0-9]{1,7}|#x[0-9a-fA-F]{1,6}|[A-Za-z_][-A-Za-z0-9._]*);/y;
const FORBIDDEN = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff\ud800-\udfff]/u;
const PREDEFINED = new Set(["lt", "gt", "amp", "apos", "quot"]);
const SECTIONS = [
  ["<!--", "-->", "a comment"], ["<![CDATA[", "]]>", "a CDATA section"], ["<?", "?>", "an instruction"],
];
const RESERVED = new Set(["xml", "xmlns"]);

class Wrong extends Error {
  constructor(index, message) {
    super(message);
    this.index = index;
  }
}

function match(pattern, text, index) {
  pattern.lastIndex = index;
  return pattern.exec(text)?.[0] ?? "";
}

/** Checks the entities between two places. */
function checkEntities(text, from, to) {
  for (const { index: at } of text.slice(from, to).matchAll(/&/g)) {
    const index = from + at;
    const found = match(REFERENCE, text, index);
    if (!found) throw new Wrong(index, "& begins an entity that has no end; write &amp; for the character");
    const name = found.slice(1, -1);
    const known = name[0] === "#" || PREDEFINED.has(name);
    if (!known) throw new Wrong(index, `the entity ${found} is not declared; write the character itself`);
  }
}

const prefixOf = (name) => (name.includes(":") ? name.slice(0, name.indexOf(":")) : "");

/** Reads one attribute at an index; returns its name and the index after it. */
function readAttribute(text, at) {
  const name = match(NAME, text, at);
  if (!name) {
    const message = at < text.length ? "a tag wants >, or a name of an attribute" : "a tag has no >";
    throw new Wrong(Math.min(at, text.length), message);
  }
  let index = at + name.length;
  index += match(SPACE, text, index).length;
  if (text[index] !== "=") throw new Wrong(at, `the attribute ${name} has no value; write ${name}="…"`);
  index += 1;
  index += match(SPACE, text, index).length;
  const quote = text[index];
  if (quote !== '"' && quote !== "'") throw new Wrong(index, `the value of ${name} is not in quotes`);
  const end = text.indexOf(quote, index + 1);
  if (end < 0) throw new Wrong(index, `the value of ${name} has no closing quote`);
  const less = text.slice(index, end).indexOf("<");
  if (less >= 0) throw new Wrong(index + less, "write &lt; for < in an attribute");
  checkEntities(text, index, end);
  return { name, index: end + 1 };
}

/** Reads the attributes of a tag from an index; returns {index, names} at the end of the tag. */
function readAttributes(text, start) {
  const names = new Map();
  let index = start;
  for (;;) {
    const space = match(SPACE, text, index);
    index += space.length;
    if (text[index] === ">" || text.startsWith("/>", index)) return { index, names };
    const attribute = readAttribute(text, index);
    if (!space) throw new Wrong(index, "a space is missing before the attribute");
    if (names.has(attribute.name)) throw new Wrong(index, `the attribute ${attribute.name} is there twice`);
    names.set(attribute.name, index);
    index = attribute.index;
  }
}

/** Checks that the prefixes of a tag are declared in it or outside of it. */
function checkPrefixes(name, at, names, scopes) {
  const own = new Set([...names.keys()].filter((each) => each.startsWith("xmlns:")).map((each) => each.slice(6)));
  const isDeclared = (prefix) => own.has(prefix) || scopes.some((each) => each.has(prefix));
  for (const [each, index] of [[name, at], ...names]) {
    const prefix = prefixOf(each);
    if (prefix && !RESERVED.has(prefix) && !isDeclared(prefix)) {
      throw new Wrong(index, `the prefix ${prefix} has no namespace; add xmlns:${prefix}="…"`);
    }
  }
  return own;
}

/** Reads a text from its beginning; `read` returns the index after what begins at an index with `<`. */
function createReader(text) {
  const open = [];
  const scopes = [];
  let roots = 0;

  function readSection(index) {
    const [begins, ends, what] = SECTIONS.find(([each]) => text.startsWith(each, index));
    const found = text.indexOf(ends, index + begins.length);
    if (found < 0) throw new Wrong(index, `${what} has no end; write ${ends}`);
    return found + ends.length;
  }

  function readEndTag(index) {
    const name = match(NAME, text, index + 2);
    const begun = open.pop();
    if (begun === undefined) throw new Wrong(index, `</${name}> closes an element that was not opened`);
    if (begun !== name) throw new Wrong(index, `</${name}> stands where </${begun}> is expected`);
    scopes.pop();
    const after = index + 2 + name.length;
    const end = after + match(SPACE, text, after).length;
    if (text[end] !== ">") throw new Wrong(index, `the tag </${name} has no >`);
    return end + 1;
  }

  function readStartTag(index) {
    const name = match(NAME, text, index + 1);
    if (!name) throw new Wrong(index, "< begins a tag without a name; write &lt; for the character");
    if (!open.length && roots) {
      throw new Wrong(index, "there is a second element; publish one, or use JSON for several events");
    }
    const tag = readAttributes(text, index + 1 + name.length);
    const own = checkPrefixes(name, index, tag.names, scopes);
    roots += 1;
    if (text[tag.index] === "/") return tag.index + 2;
    open.push(name);
    scopes.push(own);
    return tag.index + 1;
  }

  return {
    read(index) {
      if (SECTIONS.some(([begins]) => text.startsWith(begins, index))) return readSection(index);
      if (text[index + 1] === "!") throw new Wrong(index, "the node takes no document type; leave it out");
      return text[index + 1] === "/" ? readEndTag(index) : readStartTag(index);
    },
    checkText(from, to) {
      const words = open.length ? null : text.slice(from, to).match(/\S/);
      if (words) throw new Wrong(from + words.index, `there is text ${roots ? "after" : "before"} the element`);
      checkEntities(text, from, to);
    },
    end() {
      if (open.length) throw new Wrong(text.length, `</${open.at(-1)}> is missing`);
      if (!roots) throw new Wrong(text.length, "there is no element");
    },
  };
}

function check(text) {
  const forbidden = text.match(FORBIDDEN);
  if (forbidden) throw new Wrong(forbidden.index, "XML does not allow this character");
  const reader = createReader(text);
  let index = 0;
  while (index < text.length) {
    const next = text.indexOf("<", index);
    reader.checkText(index, next < 0 ? text.length : next);
    index = next < 0 ? text.length : reader.read(next);
  }
  reader.end();
}

/** Whether a text is one well-formed element: null, or {index, message} of the first thing that is wrong. */
export function checkXml(text) {
  try {
    check(text);
    return null;
  } catch (error) {
    if (error instanceof Wrong) return { index: error.index, message: error.message };
    throw error;
  }
}
