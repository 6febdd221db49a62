// Events of a topic as the node writes them, and what a row of the page keeps of one. Pure.
//
// A row keeps the beginning of a payload: 500 rows of 64 KB would be 32 MB. The whole is read again when the row is
// opened. Payloads stay text, so that numbers keep their digits.
import { fieldsOf } from "./json_forms.js";

/** Bytes above which the node cuts a payload. */
export const CUT = 65_536;
/** Characters of a payload that a row keeps. */
const KEPT = 4096;
const DATA = '"data": ';
const FIELDS_OF_CUT = 12;
const LEAF = /<([^\s<>/!?"'=]{1,80})(?:\s[^<>]*)?>([^<]{1,200})</g;

const encoder = new TextEncoder();
const decoder = new TextDecoder();

/** The length of a text in bytes. */
export const bytesOf = (text) => encoder.encode(text).length;

/** A copy of a text: a slice would keep all of the text that it was cut from. */
const copied = (text) => decoder.decode(encoder.encode(text));
const copiedFields = (fields) => JSON.parse(JSON.stringify(fields));

/**
 * An event from its JSON: {offset, topic, time, id, trace, fields, text, whole, size, cut}. `text` is the payload as
 * JSON, or of a cut one the beginning of its XML; `whole` says whether it is complete; `size` is in bytes.
 */
export function readEvent(json, kept = KEPT) {
  const at = json.indexOf(DATA);
  const plain = at >= 0 && !json.startsWith(`${DATA}null, "raw"`, at);
  const { traceparent, raw, truncated, size, ...head } = JSON.parse(plain ? `${json.slice(0, at)}"data": null}` : json);
  const payload = plain ? json.slice(at + DATA.length, -1) : raw ?? "";
  const text = copied(payload.slice(0, kept));
  return {
    offset: head.offset, topic: head.topic, time: head.time, id: head.id, trace: traceparent ?? null,
    text, cut: Boolean(truncated), whole: !truncated && text.length === payload.length,
    size: truncated ? size : bytesOf(payload), fields: plain ? copiedFields(fieldsOf(payload)) : fieldsOfXml(text),
  };
}

/** The first leaves of the beginning of an XML text as [name, value] pairs. */
export function fieldsOfXml(text) {
  const fields = [];
  for (const [, name, value] of text.matchAll(LEAF)) {
    if (value.trim()) fields.push([name, value.trim()]);
    if (fields.length === FIELDS_OF_CUT) break;
  }
  return fields.length ? fields : [["", text.slice(0, 200)]];
}

/** The events of a poll as JSON texts: each is on a line of its own. */
export const linesOf = (page) => page.trim().slice(1, -1).split(",\n").filter(Boolean);

/** The fields of an event as one line of words. */
export const wordsOf = (event) => event.fields.map((pair) => pair.filter(Boolean).join(" ")).join(" ");
