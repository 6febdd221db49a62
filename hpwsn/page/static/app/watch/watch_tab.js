// The events of a topic and of all below it as they arrive, with a filter, a pause, and how much is skipped.
import { html, useCallback } from "../html.js";
import { counted } from "../format.js";
import { Icon } from "../icons.js";
import { Button, Text } from "../parts/controls.js";
import { Loading, Notice } from "../parts/lists.js";
import { openDraft } from "./drafts.js";
import { FilterField, useFilter } from "./filter_field.js";
import { useFollowed } from "./follow.js";
import { FollowState, Trouble } from "./follow_state.js";
import { MessageList } from "./message_list.js";
import { useTopicFigures } from "./topic_figures.js";

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
