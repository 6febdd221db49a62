// Earlier events of a topic and of all below it, from the log: the newest first, in pages, with the filter of Watch.
import { html, useCallback, useEffect, useRef, useState } from "../html.js";
import { change, useParameter } from "../address.js";
import { eventsPath } from "../api.js";
import { count, counted } from "../format.js";
import { wordsOf } from "../state.js";
import { Button, CurlButton, Field, Text } from "../parts/controls.js";
import { Loading, Notice } from "../parts/lists.js";
import { toast } from "../parts/toasts.js";
import { openDraft } from "./drafts.js";
import { FilterField, useFilter } from "./filter_field.js";
import { useHistory } from "./history.js";
import { downloadEvents } from "./history_download.js";
import { MessageList } from "./message_list.js";
import { Refused } from "./follow_state.js";

const OFFSET = /^[0-9]{1,15}$/;

function Jump({ from }) {
  const [text, setText] = useState(from === undefined ? "" : String(from));
  const plain = text.replaceAll(/[,\s]/g, "");
  const wrong = plain !== "" && !OFFSET.test(plain);
  const go = (offset) => change({ id: offset || undefined }, { replace: true });
  const clear = () => {
    setText("");
    go("");
  };
  return html`<${Field} label="Jump to offset" testid="history-jump" value=${text} invalid=${wrong} inputmode="numeric"
    onText=${setText} onEnter=${() => { if (!wrong) go(plain); }} onClear=${clear} />`;
}

/** Saves what the filter and the offset choose, and can be stopped. */
function Download({ topic, node, filter, ends, from }) {
  const [progress, setProgress] = useState(null);
  const stop = useRef(null);
  useEffect(() => () => stop.current?.abort(), []);
  async function start() {
    stop.current = new AbortController();
    setProgress(0);
    try {
      const wanted = { topic, node, filter, ends, from, signal: stop.current.signal };
      const { events, whole } = await downloadEvents({ ...wanted, onProgress: setProgress });
      toast(whole ? `${counted(events, "event")} saved` : `The newest ${count(events)} events saved; curl reads all`);
    } catch (error) {
      if (error.name !== "AbortError") toast(wordsOf(error), { bad: true });
    }
    setProgress(null);
  }
  if (progress !== null) return html`<${Button} onClick=${() => stop.current.abort()}>Stop at ${count(progress)}<//>`;
  return html`<${Button} icon="download" testid="history-download" disabled=${!ends} onClick=${start}>NDJSON<//>`;
}

/** What stands below the last row: why there are no rows, or what comes before them. */
function End({ topic, filtered, history }) {
  const { events, ends, next, loading, error, more } = history;
  if (loading) return html`<${Loading} rows=${events.length ? 2 : 6} />`;
  if (error) return null;
  const clear = () => change({ filter: undefined, id: undefined }, { replace: true });
  if (!events.length && filtered) {
    const words = next === null ? "No kept message matches." : "No match in what was searched so far.";
    return html`<${Notice} kind="no-match"><p>${words}</p>
      ${next !== null && html`<${Button} onClick=${more}>Search further<//>`} <${Button} onClick=${clear}>Clear filters<//><//>`;
  }
  if (!events.length) {
    return html`<${Notice} kind="empty"><p>The log has no message on <b><${Text}>${topic}<//></b> or below it. Messages
      that are published appear here, until retention removes them.</p><//>`;
  }
  if (next !== null) return html`<p class="history-end"><${Button} onClick=${more}>Earlier messages<//></p>`;
  const words = ends.oldest > 1 ? `Retention has removed what was before offset ${count(ends.oldest)}.`
    : "This is the beginning of the log.";
  return html`<p class="history-end dim" data-testid="history-end">${words}</p>`;
}

function Failure({ history }) {
  const { error, events, restart } = history;
  if (!error) return null;
  if (error.status) return html`<${Refused} error=${error} onRetry=${restart} />`;
  const words = events.length ? "What is listed was read before." : "";
  return html`<p class="note bad" role="alert"><span>${wordsOf(error)} ${words}</span>
    <${Button} onClick=${restart}>Try again<//></p>`;
}

/** The offset in the address up to which events are listed; undefined for the end of the log. */
function useFrom() {
  const from = useParameter("id") ?? "";
  return OFFSET.test(from) ? Number(from) : undefined;
}

function History({ topic, node }) {
  const filter = useFilter();
  const from = useFrom();
  const history = useHistory({ topic, node, filter, from });
  const { events, ends, newer, more, restart } = history;
  const again = useCallback((target, text) => openDraft(topic, target, text), [topic]);
  const place = { topic, node };
  return html`
    <${FilterField} ...${place} testid="history-filter" />
    <div class="tools history-tools"><${Jump} key=${from} from=${from} />
      <${Download} ...${place} filter=${filter} ends=${ends} from=${from} />
      <${CurlButton} request=${{ path: eventsPath(topic), node, query: { filter, upto: from } }} /></div>
    ${newer > 0 && from === undefined && html`<button type="button" class="newer" onClick=${restart}>
      ${count(newer)} newer: read again</button>`}
    <${Failure} history=${history} />
    <${MessageList} ...${place} rows=${events} label="Earlier messages" offsets again=${again} onEnd=${more}
        testid=${() => "history-event"}>
      <${End} topic=${topic} filtered=${Boolean(filter) || from !== undefined} history=${history} />
    <//>`;
}

/** The tab; each topic begins anew. */
export function HistoryTab({ topic, node }) {
  return html`<${History} key=${`${node} ${topic}`} topic=${topic} node=${node} />`;
}
