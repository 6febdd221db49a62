// An open event: its payload indented, as it came, or as the XML that is stored; what else is known of it; actions.
//
// The XML is read when it is asked for, and the rest of a payload of which the row keeps the beginning. At first 16 KB
// are shown, since a browser takes long to break a line of 64 KB.
import { html, useEffect, useState } from "../html.js";
import { ApiError, curl, eventsPath } from "../api.js";
import { bytes, count, visible } from "../format.js";
import { useMay, wordsOf } from "../state.js";
import { Segment, Text, copyText } from "../parts/controls.js";
import { saveText } from "./downloads.js";
import { CUT, bytesOf, readEvent } from "./events.js";
import { indented } from "./json_forms.js";
import { readOne } from "./log_pages.js";

const SHOWN = 16_384;
const MOST_SHOWN = 200_000;
const FORMS = [["pretty", "Pretty"], ["raw", "Raw"], ["xml", "XML"]];
const OWN_ROOT = /^<(\w+:)?event\s[^>]*urn:hpwsn:1/;

/** The JSON of an event in full, and its stored XML once it is wanted: {whole, xml, error}. */
function usePayload(event, node, wantsXml) {
  const [found, setFound] = useState({ whole: event.whole ? event : null, xml: null, error: null });
  const part = wantsXml ? "xml" : "whole";
  useEffect(() => {
    if (found[part]) return undefined;
    let current = true;
    load(event, node, part)
      .then((value) => current && setFound((before) => ({ ...before, [part]: value, error: null })))
      .catch((error) => current && setFound((before) => ({ ...before, error })));
    return () => { current = false; };
  }, [part]);
  return found;
}

async function load(event, node, part) {
  const line = await readOne(event.topic, node, event.offset, { payload: part === "xml" ? "raw" : undefined });
  if (line === null) throw new ApiError(404, "This message is no longer in the log.");
  if (part === "whole") return readEvent(line, Infinity);
  const { raw, size } = JSON.parse(line);
  return { text: raw, size: size ?? bytesOf(raw) };
}

async function download(event, node) {
  const line = await readOne(event.topic, node, event.offset, { payload: "raw", cut: false });
  const { raw } = JSON.parse(line);
  saveText(`${event.topic}-${event.offset}${raw.startsWith("<") ? ".xml" : ".txt"}`, raw);
}

/** The payload as it was published: JSON, or XML if it did not come as JSON. */
async function original(event, node) {
  const xml = await load(event, node, "xml");
  if (!OWN_ROOT.test(xml.text) && xml.text.startsWith("<")) return xml.text;
  return (event.whole ? event : await load(event, node, "whole")).text;
}

function Payload({ text, json, all, onAll }) {
  const most = all ? MOST_SHOWN : SHOWN;
  const plain = { parts: [["", text.slice(0, most)]], whole: text.length <= most };
  const { parts, whole } = json ? indented(text, most) : plain;
  const coloured = parts.map(([kind, part]) => (kind ? html`<span class=${kind}>${visible(part)}</span>` : visible(part)));
  return html`<pre tabindex="-1">${coloured}${!whole && "…"}</pre>
    ${!whole && !all && html`<button type="button" class="link" onClick=${onAll}>Show all of it</button>`}`;
}

const Link = ({ testid, children, ...rest }) => html`<button type="button" class="link" data-testid=${testid} ...${rest}>${children}</button>`;

/** What is known of an event beside its payload and what its line tells; null if there is nothing. */
function Facts({ event, topic, xml }) {
  const facts = [
    event.topic !== topic && html`topic <${Text}>${event.topic}<//>`,
    event.trace && html`trace <${Text}>${event.trace}<//>`,
    xml && `${count(xml.size)} bytes as XML`,
  ].filter(Boolean);
  return facts.length > 0 && html`<p class="dim message-facts">${facts.map((fact, index) => [index > 0 && " · ", fact])}</p>`;
}

/** `topic` is the one that is read; `again(topic, payload)` takes the payload to publish it again. */
export function EventDetail({ event, topic, node, again }) {
  const [form, setForm] = useState(event.cut ? "xml" : "pretty");
  const [all, setAll] = useState(false);
  const [problem, setProblem] = useState(null);
  const { whole, xml, error } = usePayload(event, node, form === "xml");
  const mayPublish = useMay("publish");
  const shown = form === "xml" ? xml : whole;
  const attempt = (action) => action().catch(setProblem);
  const failed = problem ?? (shown ? null : error);
  const query = { after: event.offset - 1, upto: event.offset, payload: form === "xml" ? "raw" : undefined };
  const copyCurl = () => copyText(curl("GET", eventsPath(event.topic), { node, query }), "Copied as curl");
  const repeat = () => attempt(async () => again(event.topic, await original(event, node)));
  const choose = (value) => {
    setForm(value);
    setAll(false);
  };

  return html`<div class="message-detail">
    <${Facts} event=${event} topic=${topic} xml=${form === "xml" && !event.cut ? xml : null} />
    ${shown && html`<${Payload} text=${shown.text} json=${form === "pretty"} all=${all} onAll=${() => setAll(true)} />`}
    ${!shown && !failed && html`<p class="dim">Reading it…</p>`}
    ${failed && html`<p class="bad" role="alert">${wordsOf(failed)}</p>`}
    ${event.cut && html`<p class="dim">The first ${bytes(CUT)} of ${bytes(event.size)}.</p>`}
    <div class="message-actions">
      ${!event.cut && html`<${Segment} label="Form of the payload" options=${FORMS} value=${form} onChange=${choose} />`}
      ${event.cut && html`<${Link} testid="download" onClick=${() => attempt(() => download(event, node))}>Download<//>`}
      <${Link} disabled=${!shown} onClick=${() => copyText(shown.text, "Payload copied")}>Copy<//>
      ${mayPublish && again && !event.cut && html`<${Link} testid="publish-again" onClick=${repeat}>Publish again…<//>`}
      <${Link} onClick=${copyCurl}>Copy as curl<//>
    </div>
  </div>`;
}
