// One publication after another: sends a payload to a topic, and says what the node answered.
import { html, useEffect, useState } from "../html.js";
import { curl, eventsPath, quoted, send, urlOf } from "../api.js";
import { count } from "../format.js";
import { nodesOf, state, wordsOf } from "../state.js";
import { Button } from "../parts/controls.js";
import { TYPES } from "./payload_check.js";

const DEFAULT_URL = "http://127.0.0.1:8080/wsn";

/** An argument of a shell; plain names need no quotes. */
export const argument = (text) => (/^[A-Za-z0-9_:.\-/]+$/.test(text) && !text.startsWith("-") ? text : quoted(text));

/** The address of a node's broker for programs; the page's own node is where the page is. */
export function brokerUrl(node) {
  const { session, cluster } = state.get();
  if (session?.kind === "node" && (!node || node === session.node)) return urlOf("wsn").href;
  const url = nodesOf(cluster).find((each) => each.name === node)?.url;
  return url ? `${url.replace(/\/$/, "")}/wsn` : DEFAULT_URL;
}

const urlOption = (node) => (brokerUrl(node) === DEFAULT_URL ? "" : ` --url ${argument(brokerUrl(node))}`);

/** The command that publishes a payload. */
export const publishCommand = (topic, text, node) =>
  `hpwsn publish ${argument(topic)} ${quoted(text)}${urlOption(node)}`;

/** The command that prints the messages of a topic and all below it. */
export const listenCommand = (topic, node) => `hpwsn listen ${argument(topic)}${urlOption(node)}`;

/** The request of a publication as a curl command. */
export const publishCurl = (topic, text, kind, node) => (
  curl("POST", eventsPath(topic), { node, body: text, type: TYPES[kind] }));

/** {busy, answer, error, publish()}: publishes on a topic; `answer` is what the node told of the last publication. */
export function usePublication(topic, node) {
  const [found, setFound] = useState({ busy: false, answer: null, error: null, topic });
  useEffect(() => setFound({ busy: false, answer: null, error: null, topic }), [topic, node]);
  async function publish(text, kind) {
    setFound({ busy: true, answer: null, error: null, topic });
    try {
      const answer = await send("POST", eventsPath(topic), { node, body: text, type: TYPES[kind] });
      setFound({ busy: false, answer, error: null, topic });
    } catch (error) {
      setFound({ busy: false, answer: null, error, topic });
    }
  }
  return { ...found, publish };
}

function wordsOfAnswer({ first, last }) {
  if (first === null) return "Accepted. The offset is known once ActiveMQ can be reached.";
  if (first === last) return `Accepted at offset ${count(first)}.`;
  return `Accepted: ${count(last - first + 1)} events, offsets ${count(first)} to ${count(last)}.`;
}

export const PublishButton = ({ ready, onSend }) => html`<${Button} kind="first" testid="publish-send" aria-disabled=${String(!ready)}
  title="Publish, Ctrl+Enter" onClick=${onSend}>Publish<//>`;

/** What the node answered to the last publication. */
export function PublishResult({ answer, error, busy }) {
  return html`<p class=${error ? "publish-result bad" : "publish-result ok"} role="status" data-testid="publish-result">
    ${busy ? "Publishing…" : error ? wordsOf(error) : answer ? wordsOfAnswer(answer) : null}</p>`;
}
