// What a payload is, and whether it can be published: JSON or XML, by its first character. Pure.
import { checkJson, tokens } from "./json_text.js";

export const TYPES = { json: "application/json", xml: "application/xml" };

/** Characters above which a payload is left to the node, and above which it is not coloured. */
const LONGEST_CHECK = 1 << 20;
const LONGEST_COLOUR = 20_000;
const TAG = /<\/?[^\s<>/]*|\/?>/g;

/** The kind of a payload, "json" or "xml". */
export const kindOf = (text) => (/^\s*</.test(text) ? "xml" : "json");

function placeOf(text, index) {
  const before = text.slice(0, index);
  const line = before.split("\n").length;
  return { line, column: [...before.slice(before.lastIndexOf("\n") + 1)].length + 1 };
}

/**
 * The check of a payload: {empty, events, error}. `events` is how many are published; null if the payload is too long
 * to be checked here, or is XML and `checkXml`, which few need, is not loaded yet. `error` is {message, index, line,
 * column} or null.
 */
export function checkPayload(text, kind, checkXml) {
  if (!text.trim()) return { empty: true, events: 0, error: null };
  if (text.length > LONGEST_CHECK || (kind === "xml" && !checkXml)) return { empty: false, events: null, error: null };
  const found = kind === "xml" ? checkXml(text) ?? { events: 1 } : checkJson(text);
  if (!found.message) return { empty: false, events: found.events, error: null };
  return { empty: false, events: 0, error: { ...found, ...placeOf(text, found.index) } };
}

/** A payload as parts [kind, text] for colours; kinds are "name" and "". */
export function coloured(text, kind) {
  if (text.length > LONGEST_COLOUR) return [["", text]];
  return kind === "xml" ? colouredXml(text) : colouredJson(text);
}

function colouredXml(text) {
  const parts = [];
  let end = 0;
  for (const found of text.matchAll(TAG)) {
    parts.push(["", text.slice(end, found.index)], ["name", found[0]]);
    end = found.index + found[0].length;
  }
  return [...parts, ["", text.slice(end)]];
}

function colouredJson(text) {
  const parts = [];
  let end = 0;
  let last = null;
  for (const token of tokens(text)) {
    if (token.kind === ":" && last?.kind === "text") {
      parts.push(["", text.slice(end, last.start)], ["name", text.slice(last.start, last.end)]);
      end = last.end;
    }
    last = token;
  }
  return [...parts, ["", text.slice(end)]];
}

/** The same parts with the kind "wrong" added from an index to the end of its word, as [kind, text, wrong]. */
export function marked(parts, index) {
  const text = parts.map(([, part]) => part).join("");
  const word = /^[\p{L}\p{N}_.-]+/u.exec(text.slice(index))?.[0].length ?? 1;
  const [from, to] = [index, index + word];
  const found = [];
  let start = 0;
  for (const [kind, part] of parts) {
    for (const [left, right, wrong] of [[0, from, false], [from, to, true], [to, Infinity, false]]) {
      const piece = part.slice(Math.max(0, left - start), Math.max(0, right - start));
      if (piece) found.push([kind, piece, wrong]);
    }
    start += part.length;
  }
  if (from >= text.length) found.push(["", " ", true]);
  return found;
}
