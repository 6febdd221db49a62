// JSON as text: indented, and the text of one field, without reading numbers, which JavaScript would round. Pure.

const TOKEN = /"(?:[^"\\]|\\.)*"|[{}[\],:]|[^\s{}[\],:"]+/g;

/** A JSON text with each field and each element on a line of its own. */
export function indented(text) {
  const tokens = text.match(TOKEN) ?? [];
  const lines = [""];
  const put = (token) => { lines[lines.length - 1] += token; };
  let depth = 0;
  const turn = () => lines.push("  ".repeat(depth));
  tokens.forEach((token, index) => {
    if (token === "{" || token === "[") {
      put(token);
      depth += 1;
      if (!"}]".includes(tokens[index + 1])) turn();
    } else if (token === "}" || token === "]") {
      depth -= 1;
      if (!"{[".includes(tokens[index - 1])) turn();
      put(token);
    } else if (token === ",") {
      put(token);
      turn();
    } else put(token === ":" ? ": " : token);
  });
  return lines.join("\n");
}

/** The JSON text of a field of the first object in an array; null if there is none. */
export function fieldText(text, name) {
  let depth = 0;
  let start = -1;
  let last = "";
  for (const found of text.matchAll(TOKEN)) {
    const token = found[0];
    if (start >= 0 && depth === 2 && (token === "," || token === "}")) return text.slice(start, found.index).trim();
    if (token === ":" && depth === 2 && start < 0 && last === JSON.stringify(name)) start = found.index + 1;
    else if (token === "{" || token === "[") depth += 1;
    else if (token === "}" || token === "]") depth -= 1;
    last = token;
  }
  return null;
}
