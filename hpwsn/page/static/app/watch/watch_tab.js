// The events of a topic and of all below it as they arrive, with a filter, a pause, and how much is skipped.
import { html, useCallback } from "../html.js";
import { counted, count, figure } from "../format.js";
import { Icon } from "../icons.js";
import { state, useShared, wordsOf } from "../state.js";
import { Button, Clock, State, Text } from "../parts/controls.js";
import { Loading, Notice } from "../parts/lists.js";
import { openDraft } from "./drafts.js";
import { FilterField, useFilter } from "./filter_field.js";
import { MOST_RATE, useFollowed } from "./follow.js";
import { MessageList } from "./message_list.js";
import { useTopicFigures } from "./topic_figures.js";

const CONNECTIONS = {
  connecting: ["retrying", "Connecting"], lost: ["retrying", "Connection lost, trying again"],
  hidden: ["paused", "Paused while hidden"],
  waiting: ["paused", "Paused"], refused: ["dead", "Not followed"],
};

/** How many match of how many, and how the connection is. */
export function FollowState({ followed, total, filter }) {
  const frozen = useShared((shared) => shared.paused);
  const { connection, paused, missed, rate, skipped } = followed;
  if (frozen) return html`<${State} shape="paused">Live updates are paused<//>`;
  if (connection !== "open") {
    const [shape, told] = CONNECTIONS[connection];
    return html`<${State} shape=${shape}>${told}<//>`;
  }
  const part = filter && total !== undefined ? ` match, of ${figure(Math.max(rate, total))} /s` : "";
  const words = paused ? `paused · ${count(missed)} new` : `${figure(rate)} /s${part}`;
  const limit = `At most ${MOST_RATE} messages a second are shown`;
  return html`<${State} shape=${paused ? "paused" : "live"}>${words}<//>
    <span class="dim" data-testid="watch-skipped" title=${limit}>${skipped ? `${count(skipped)} skipped` : "none skipped"}</span>`;
}

/** Why a topic cannot be read, with what to do. */
export function Refused({ error, onRetry }) {
  return html`<div class="note bad" role="alert"><p>${wordsOf(error)}</p>
    ${error.status === 401 && html`<${Button} onClick=${() => state.set({ signIn: error })}>Enter a token…<//>`}
    <${Button} onClick=${onRetry}>Try again<//></div>`;
}

/** What keeps a topic from being followed, if anything does. */
export function Trouble({ followed }) {
  const { connection, error, lostAt, retry } = followed;
  if (connection === "refused" && error) return html`<${Refused} error=${error} onRetry=${retry} />`;
  if (connection !== "lost") return null;
  const words = error ? wordsOf(error) : "The node does not answer.";
  return html`<p class="note" role="status"><span>Not updated since <${Clock} at=${lostAt / 1000} />. ${words}</span></p>`;
}

/** What stands in the place of rows while there are none. */
function Waiting({ topic, filter, connection }) {
  if (connection === "connecting") return html`<${Loading} />`;
  if (connection === "refused") return null;
  return html`<${Notice} kind="empty"><p>Waits for the next message on <b><${Text}>${topic}<//></b> and all
    below it${filter ? " that matches the filter" : ""}.</p><//>`;
}

function Watch({ topic, node }) {
  const filter = useFilter();
  const followed = useFollowed(topic, node, filter);
  const figures = useTopicFigures(topic, node);
  const { rows, paused, missed, connection } = followed;
  const again = useCallback((target, text) => openDraft(topic, target, text), [topic]);
  const turn = paused ? followed.resume : followed.pause;
  return html`
    <${FilterField} topic=${topic} node=${node} testid="watch-filter" fromNow=${followed.fromNow} />
    <div class="watch-state">
      <${FollowState} followed=${followed} total=${figures?.rate_below} filter=${filter} />
      <${Button} kind="bare" icon=${paused ? "play" : "pause"} testid="watch-pause" onClick=${turn}>${paused ? "Resume" : "Pause"}<//>
    </div>
    ${paused && missed > 0 && html`<button type="button" class="newer" onClick=${turn}>
      <${Icon} name="up" />Show ${counted(missed, "new message")}</button>`}
    <${Trouble} followed=${followed} />
    <${MessageList} rows=${rows} topic=${topic} node=${node} label="Messages" again=${again}
        testid=${(event) => (event.earlier ? "earlier-event" : "watch-event")}>
      ${!rows.length && html`<${Waiting} topic=${topic} filter=${filter} connection=${connection} />`}
    <//>`;
}

/** The tab; each topic begins anew. */
export function WatchTab({ topic, node }) {
  return html`<${Watch} key=${`${node} ${topic}`} topic=${topic} node=${node} />`;
}
