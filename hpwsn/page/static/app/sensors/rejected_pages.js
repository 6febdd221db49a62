// Rejected readings as the API lists them, each with the text of its reading: JSON.parse would round long numbers.
import { request } from "../api.js";

const TOKEN = /"(?:[^"\\]|\\.)*"|[{}[\],:]|[^\s{}[\],:"]+/g;
/** The depth of the fields of an item in {"items": [{…}]}. */
const DEPTH = 3;

/** The texts of a field of all items in an answer {"items": [{…}, …]}; pure. */
export function fieldTexts(text, name) {
  const wanted = JSON.stringify(name);
  const found = [];
  let [depth, start, last] = [0, -1, ""];
  for (const { 0: token, index } of text.matchAll(TOKEN)) {
    if (start >= 0 && depth === DEPTH && (token === "," || token === "}")) {
      found.push(text.slice(start, index).trim());
      start = -1;
    }
    if (token === ":" && depth === DEPTH && start < 0 && last === wanted) start = index + 1;
    else if (token === "{" || token === "[") depth += 1;
    else if (token === "}" || token === "]") depth -= 1;
    last = token;
  }
  return found;
}

/** A page of rejected readings; each item has `payload`, the text of its reading. */
export async function readRejected(path, options) {
  const text = await (await request("GET", path, options)).text();
  const answer = JSON.parse(text);
  const payloads = fieldTexts(text, "reading");
  return { ...answer, items: answer.items.map((item, index) => ({ ...item, payload: payloads[index] ?? "null" })) };
}

/** The readings with a key that lasts: time, sensor, reason, and a number for several of these. */
export function keyed(items) {
  const seen = new Map();
  return items.map((item) => {
    const base = `${item.rejected} ${item.sensor ?? ""} ${item.reason} ${item.at ?? ""}`.trim();
    const number = seen.get(base) ?? 0;
    seen.set(base, number + 1);
    return { ...item, key: number ? `${base} ${number}` : base };
  });
}

/** The newest first; of two nodes by time. */
export const newestFirst = (left, right) => Number(left.rejected < right.rejected)
  - Number(left.rejected > right.rejected);
