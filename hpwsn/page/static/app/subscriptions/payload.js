// The payload of a dead letter: as JSON if it was published so, else as the XML that is stored; long ones are cut.
import { html, useEffect, useState } from "../html.js";
import { eventsPath, request } from "../api.js";
import { bytes, visible } from "../format.js";
import { Button, Segment, copyText } from "../parts/controls.js";
import { Loading } from "../parts/lists.js";
import { fieldText, indented } from "./json_text.js";

/** Characters of a payload that are shown; all of it can be downloaded. */
const SHOWN = 64 * 1024;
const EVENT = /^<(?:[\w-]+:)?event\b[^>]*"urn:hpwsn:1"/;
const FORMS = [["json", "JSON"], ["xml", "XML"]];

/** The JSON of the event that a dead letter is, from the log; null if it is not kept there, or is not JSON. */
async function jsonOf({ topic, offset, payload, at }) {
  if (!topic || !EVENT.test(payload) || payload.length > SHOWN) return null;
  try {
    const query = { after: offset - 1, upto: offset, max: 1 };
    const text = await (await request("GET", eventsPath(topic), { node: at, query })).text();
    const data = fieldText(text, "data");
    return data && data !== "null" ? indented(data) : null;
  } catch {
    return null;
  }
}

function useJson(letter) {
  const [found, setFound] = useState({ id: null, json: null });
  useEffect(() => {
    let current = true;
    jsonOf(letter).then((json) => current && setFound({ id: letter.id, json }));
    return () => { current = false; };
  }, [letter.id, letter.at]);
  return found.id === letter.id ? found : null;
}

function download(letter) {
  const url = URL.createObjectURL(new Blob([letter.payload], { type: "application/xml" }));
  const link = document.createElement("a");
  link.href = url;
  link.download = `dead-letter-${letter.id}.xml`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

/** The payload of `letter`, which is as the API shows one dead letter. */
export function Payload({ letter }) {
  const [form, setForm] = useState("json");
  const found = useJson(letter);
  if (letter.payload === null) {
    return html`<p class="note" data-testid="payload">The payload is not shown, because the topic is internal now.</p>`;
  }
  if (!found) return html`<${Loading} rows=${3} />`;
  const text = found.json !== null && form === "json" ? found.json : letter.payload;
  const size = new Blob([letter.payload]).size;
  const cut = text.length > SHOWN;
  return html`<div class="payload-box">
    <div class="tools">
      <h3>Payload, ${bytes(size)}</h3>
      ${found.json !== null && html`<${Segment} label="Form of the payload" options=${FORMS} value=${form} onChange=${setForm} />`}
      <${Button} kind="bare" icon="copy" label="Copy the payload" onClick=${() => copyText(text, "Copied the payload")} />
      <${Button} kind="bare" icon="download" label="Download the payload" testid="download" onClick=${() => download(letter)} />
    </div>
    ${cut && html`<p class="note">Only the first ${bytes(SHOWN)} are shown; the download has all of it.</p>`}
    <pre class="payload" data-testid="payload" tabindex="0" role="region" aria-label="Payload"><bdi>${visible(cut ? text.slice(0, SHOWN) : text)}</bdi></pre>
  </div>`;
}
