// Renewing a subscription: for a duration, until a moment, or without an end.
import { html, useState } from "../html.js";
import { dateTime } from "../format.js";
import { wordsOf } from "../state.js";
import { Button, CurlButton, Segment, Text } from "../parts/controls.js";
import { Dialog, openDialog } from "../parts/dialogs.js";
import { toast } from "../parts/toasts.js";
import { requestsOf, run } from "./actions.js";
import { shortConsumer } from "./words.js";

const WAYS = [["for", "For"], ["until", "Until"], ["never", "Without an end"]];
const SPANS = [["PT15M", "15 min"], ["PT1H", "1 h"], ["P1D", "1 d"], ["P7D", "7 d"], ["P30D", "30 d"]];
const DURATION = /^P(?=.)(\d+D)?(T(?=\d)(\d+H)?(\d+M)?(\d+S)?)?$/;

/** Asks how long a subscription is to last, and renews it; returns the answer of the node. */
export const askToRenew = (item) => openDialog(RenewDialog, { item });

/** A moment of an input "datetime-local" as the API reads it; null if it is not one. */
function moment(text) {
  const at = new Date(text);
  return text && Number.isFinite(at.getTime()) ? at.toISOString() : null;
}

function RenewDialog({ close, item }) {
  const [way, setWay] = useState("for");
  const [span, setSpan] = useState("PT1H");
  const [until, setUntil] = useState("");
  const [error, setError] = useState(null);
  const [busy, setBusy] = useState(false);
  const expires = way === "never" ? null : way === "for" ? span : moment(until);
  const wrong = way === "for" ? !DURATION.test(span) : way === "until" && !expires;
  const request = requestsOf(item, expires).renew;

  async function renew() {
    setBusy(true);
    try {
      const answer = await run(request);
      toast(`Renewed ${shortConsumer(item)}: ${answer.terminates ? `it ends ${dateTime(answer.terminates)}` : "it never ends"}`);
      close(answer);
    } catch (problem) {
      setError(problem);
      setBusy(false);
    }
  }

  return html`<${Dialog} title="Renew the subscription" close=${() => close()}>
    <div class="dialog-body">
      <p><${Text}>${shortConsumer(item)}<//> now ${item.terminates ? `ends ${dateTime(item.terminates)}` : "never ends"}.</p>
      <div><${Segment} label="How long" options=${WAYS} value=${way} onChange=${setWay} /></div>
      ${way === "for" && html`<div class="tools">
        ${SPANS.map(([value, words]) => html`<button type="button" class="chip" key=${value} aria-pressed=${String(value === span)} onClick=${() => setSpan(value)}>${words}</button>`)}</div>
        <label>From now, as a duration such as PT90M or P1DT12H
          <input class="input mono" data-testid="renew-duration" value=${span} aria-invalid=${wrong ? "true" : null} spellcheck=${false}
            autocomplete="off" onInput=${(event) => setSpan(event.target.value.trim().toUpperCase())} /></label>`}
      ${way === "until" && html`<label>Local date and time
        <input class="input" type="datetime-local" data-testid="renew-until" value=${until} aria-invalid=${wrong && until ? "true" : null}
          onInput=${(event) => setUntil(event.target.value)} /></label>`}
      ${way === "never" && html`<p>It lasts until somebody ends it, also while its consumer is away.</p>`}
    </div>
    ${error && html`<p class="note bad" role="alert">${wordsOf(error)}</p>`}
    <div class="dialog-foot">
      <span></span><${CurlButton} request=${request} />
      <${Button} testid="cancel" onClick=${() => close()}>Cancel<//>
      <${Button} kind="first" testid="ok" disabled=${busy || wrong} onClick=${renew}>Renew subscription<//>
    </div>
  <//>`;
}
