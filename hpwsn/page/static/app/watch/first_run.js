// The three steps of a new node: publish a message, watch it arrive, subscribe a program; each also as a command.
import { html, useEffect, useState } from "../html.js";
import { href } from "../address.js";
import { eventsPath, get, urlOf } from "../api.js";
import { useMay, useNode, useShared } from "../state.js";
import { Command, State, Text } from "../parts/controls.js";
import { Loading, Notice } from "../parts/lists.js";
import { problemOfName, stepsOf } from "../topics/topic_names.js";
import { useFollowed } from "./follow.js";
import { MessageList } from "./message_list.js";
import { PayloadEditor, usePayloadCheck } from "./payload_editor.js";
import {
  PublishButton, PublishResult, argument, brokerUrl, listenCommand, publishCommand, usePublication,
} from "./publication.js";
import { FollowState, Trouble } from "./follow_state.js";

const TOPIC = "hello:world";
const PAYLOAD = '{"text": "first message"}';
const PAUSE = 600;
/** Levels and number of the topics of a fixed tree among which the first one is chosen. */
const DEPTH = 16;
const LOOKED_AT = 100;

const rootOf = (topic) => stepsOf(topic)[0] ?? "";

function Step({ number, title, children }) {
  return html`<section class="panel step" aria-label=${title}>
    <header><h2><span class="step-number" aria-hidden="true">${number}</span>${title}</h2></header>
    <div class="step-body">${children}</div></section>`;
}

function TopicField({ label, topic, testid, onTopic, children }) {
  const wrong = problemOfName(topic, { deep: true });
  return html`<div>
    <label class=${wrong ? "field topic-field invalid" : "field topic-field"}><span>Topic</span>
      <input type="text" class="mono" value=${topic} data-testid=${testid} aria-label=${label}
        aria-invalid=${wrong ? "true" : null} autocomplete="off" autocapitalize="off" spellcheck=${false}
        onInput=${(event) => onTopic(event.target.value.trim())} />${children}</label>
    ${wrong && html`<p class="filter-told bad" role="alert">${wrong}</p>`}</div>`;
}

function Publish({ topic, node, draft, onTopic, onDraft }) {
  const check = usePayloadCheck(draft.text, draft.kind);
  const publication = usePublication(topic, node);
  const may = useMay("publish");
  const ready = may && check.ready && !publication.busy && !problemOfName(topic, { deep: true });
  const sendIt = () => { if (ready) publication.publish(draft.text, check.kind); };
  return html`<${Step} number="1" title="Publish a message">
    <${TopicField} label="Topic to publish on" topic=${topic} testid="publish-topic" onTopic=${onTopic} />
    <${PayloadEditor} text=${draft.text} check=${check} onSend=${sendIt}
        onText=${(text) => onDraft({ ...draft, text })} onKind=${(kind) => onDraft({ ...draft, kind })}>
      <${PublishButton} ready=${ready} onSend=${sendIt} />
    <//>
    <${PublishResult} ...${publication} />
    <${Command} prompt="$">${publishCommand(topic, draft.text, node)}<//>
  <//>`;
}

/** The messages of step 2; `onFollowed` gets whether they are followed. */
function Arrivals({ topic, node, again, onFollowed }) {
  const followed = useFollowed(topic, node, undefined);
  const { rows, connection } = followed;
  useEffect(() => onFollowed(connection === "open"), [connection]);
  return html`
    ${connection !== "open" && html`<div class="watch-state"><${FollowState} followed=${followed} /></div>`}
    <${Trouble} followed=${followed} />
    <div class=${rows.length ? "arrivals" : "arrivals none"}>
      <${MessageList} rows=${rows} topic=${topic} node=${node} label="Messages" again=${again}
          testid=${(event) => (event.earlier ? "earlier-event" : "watch-event")}>
        ${!rows.length && (connection === "connecting" ? html`<${Loading} rows=${2} />` : html`<${Notice} kind="empty">
          <p>Waits for the first message<br />on <b><${Text}>${topic}<//></b> and all below it.</p><//>`)}
      <//>
    </div>
    ${rows.length > 0 && html`<div class="step-next">
      <a class="button" href=${href("topics", { topic, tab: "watch" })} data-testid="first-run-next">Open <${Text}>${topic}<//> in Topics</a>
      <span class="dim">to filter, to see who subscribes, and to edit topics.</span></div>`}`;
}

function Watch({ published, node, again }) {
  const [chosen, setChosen] = useState(null);
  const topic = chosen ?? rootOf(published);
  const [watched, setWatched] = useState(topic);
  const [live, setLive] = useState(false);
  useEffect(() => {
    if (topic === watched || problemOfName(topic, { deep: true })) return undefined;
    const timer = setTimeout(() => setWatched(topic), PAUSE);
    return () => clearTimeout(timer);
  }, [topic, watched]);
  return html`<${Step} number="2" title="Watch it arrive">
    <${TopicField} label="Topic to watch" topic=${topic} testid="watch-topic" onTopic=${setChosen}>
      ${live && html`<${State} shape="live">Live<//>`}<//>
    <${Arrivals} key=${watched} topic=${watched} node=${node} again=${again} onFollowed=${setLive} />
    <${Command} prompt="$">${listenCommand(watched, node)}<//>
  <//>`;
}

function Subscribe({ topic, node }) {
  const events = urlOf(eventsPath(topic), { node }).href;
  return html`<${Step} number="3" title="Subscribe a program">
    <h3>SOAP, WS-Notification 1.3</h3>
    <${Command}>${`${brokerUrl(node)}?wsdl`}<//>
    <h3>JSON, as it happens</h3>
    <${Command}>${`curl -N -H 'Accept: text/event-stream' ${argument(events)}`}<//>
    <h3>Python, in a checkout of HPwsn</h3>
    <${Command}>pip install ./client<//>
    <p class="dim">The first lines of README.md have a subscriber in 15 lines.</p>
  <//>`;
}

/** The topic to begin with: a public one of the tree without others below it, where only its topics are taken. */
function useFirstTopic(node) {
  const fixed = useShared((shared) => shared.live.status?.directory?.open === false);
  const [topic, setTopic] = useState(fixed ? null : TOPIC);
  useEffect(() => {
    if (topic !== null) return;
    get("topics", { node, query: { depth: DEPTH, limit: LOOKED_AT } })
      .then(({ items }) => items.find((item) => item.declared && !item.children && item.visibility !== "internal"))
      .then((found) => setTopic(found?.topic ?? TOPIC)).catch(() => setTopic(TOPIC));
  }, []);
  return topic;
}

/** The steps; they stay until whoever shows them takes them away. */
export function FirstRun() {
  const node = useNode();
  const topic = useFirstTopic(node);
  return topic === null ? html`<${Loading} />` : html`<${Steps} node=${node} first=${topic} />`;
}

function Steps({ node, first }) {
  const [topic, setTopic] = useState(first);
  const [draft, setDraft] = useState({ text: PAYLOAD, kind: null });
  const again = (target, text) => {
    setTopic(target);
    setDraft({ text, kind: null });
  };
  return html`<div class="steps" data-testid="first-run">
    <${Publish} topic=${topic} node=${node} draft=${draft} onTopic=${setTopic} onDraft=${setDraft} />
    <${Watch} published=${topic} node=${node} again=${again} />
    <${Subscribe} topic=${rootOf(topic) || TOPIC} node=${node} />
  </div>`;
}
