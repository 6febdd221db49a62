// How following a topic goes, as words: the rate, what is skipped, and what keeps the topic from being followed.
import { html } from "../html.js";
import { count, figure } from "../format.js";
import { state, useShared, wordsOf } from "../state.js";
import { Button, Clock, State } from "../parts/controls.js";
import { MOST_RATE } from "./follow.js";

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
