// Dialogs before topics are removed or moved: what the edit does, tried by the node first.
import { html, useState } from "../html.js";
import { get } from "../api.js";
import { count, counted, figure } from "../format.js";
import { state } from "../state.js";
import { Button, Field, Text } from "../parts/controls.js";
import { Dialog, ask, openDialog } from "../parts/dialogs.js";
import { effectOf, makeEdit, requestOf } from "./changes.js";
import { covers, lastStep, movedBelow, parentOf, problemOfName } from "./topic_names.js";

const LISTED = 50;

/** Sentences about what happens to subscriptions. `open` is whether the node creates topics on use, if known. */
function fates({ subscriptions, waiting }, open) {
  if (!subscriptions) return ["No subscription loses all its topics."];
  const one = subscriptions === 1;
  const then = open
    ? `${one ? "It stays and matches" : "They stay and match"} again when somebody uses the topic.`
    : `${one ? "It stays and waits" : "They stay and wait"}, or ${one ? "ends" : "end"} if topics.on_remove is "end".`;
  return [
    `${counted(subscriptions, "subscription")} then ${one ? "matches" : "match"} no topic. ${then}`,
    waiting > 0 && `${counted(waiting, "notification")} ${waiting === 1 ? "waits" : "wait"} for ${one ? "it" : "them"}.`,
  ].filter(Boolean);
}

function traffic(item, open) {
  if (!(item.rate_below > 0)) return [];
  const then = open === false ? "; publishers will get TopicNotSupportedFault" : "";
  return [`${figure(item.rate_below)} messages/s are published here now${then}.`];
}

/** Whether undeclared topics appear on use; undefined if the status of the node is not known. */
function isOpen(node) {
  const status = state.get().live.status;
  return status?.node === node ? status.directory?.open : undefined;
}

function Effect({ sentences, topic, below, total }) {
  return html`<p>${sentences.join(" ")}</p>
    ${below.length > 0 && html`<div class="topics-below"><table><tbody>
      ${below.map((item) => html`<tr key=${item.topic}>
        <td class="clip whole"><${Text}>${item.topic.slice(topic.length + 1)}<//></td>
        <td class="number">${counted(item.subscribers, "subscriber")}</td>
        <td class="number">${figure(item.rate)} /s</td></tr>`)}
    </tbody></table></div>
    ${total > below.length && html`<p class="dim">and ${count(total - below.length)} more</p>`}`}`;
}

/** The effect of a change, and the topic and those below it with their figures of now. */
async function tried(edits, change) {
  const read = (query) => get("topics", { node: edits.node, query }).catch(() => ({ items: [], total: 0 }));
  const [effect, alone, below] = await Promise.all([
    effectOf(edits.node, [change]), read({ topic: change.topic }), read({ under: change.topic, limit: LISTED }),
  ]);
  return { effect, below, now: alone.items[0] ?? {} };
}

const andBelow = (number) => (number ? ` and the ${counted(number, "topic")} below it` : "");

/**
 * Asks, and removes a topic with all below it. `onConflict(error)` is called if others were faster, `done` as by
 * makeEdit. Returns the answer of the node, or undefined.
 */
export async function askToRemove(edits, item, { onConflict, done }) {
  const change = { op: "remove", topic: item.topic, etag: item.etag };
  const { effect, below, now } = await tried(edits, change);
  const request = requestOf(edits.node, [{ ...change, below: effect.topics - 1 }]);
  const open = isOpen(edits.node);
  const words = `Removed ${item.topic}${andBelow(effect.topics - 1)}`;
  return ask({
    title: html`Remove <${Text}>${item.topic}<//>${andBelow(effect.topics - 1)}?`,
    body: html`<${Effect} sentences=${[...fates(effect, open), ...traffic(now, open)]} topic=${item.topic}
      below=${below.items} total=${below.total} />`,
    verb: `Remove ${counted(effect.topics, "topic")}`, danger: true, note: "You can undo this.", request,
    run: () => makeEdit(edits, { request, words, done }).catch((error) => caught(error, onConflict)),
  });
}

/** The same for a move to another name; the changes `before` are made with it. */
export async function askToMove(edits, item, { to, before, onConflict }) {
  const change = { op: "move", topic: item.topic, to, etag: item.etag };
  const { effect, below, now } = await tried(edits, change);
  const request = requestOf(edits.node, [...before, change]);
  const open = isOpen(edits.node);
  const words = `Moved ${item.topic} to ${to}`;
  const moved = below.items.filter((each) => each.declared).length;
  return ask({
    title: html`Move <${Text}>${item.topic}<//>${andBelow(below.next ? effect.topics - 1 : moved)} to <${Text}>${to}<//>?`,
    body: html`<${Effect} sentences=${[...fates(effect, open), ...traffic(now, open)]} topic=${item.topic}
      below=${below.items} total=${below.total} />`,
    verb: `Move ${counted(1 + (below.next ? effect.topics - 1 : moved), "topic")}`, note: "You can undo this.", request,
    run: () => makeEdit(edits, { request, words })
      .catch((error) => caught(error, onConflict)),
  });
}

/** Asks before a topic becomes internal; `run` does it. */
export const askToHide = ({ topic, effect, request, run }) => ask({
  title: html`Make <${Text}>${topic}<//> internal?`,
  body: `Then only jobs read it and all below it. ${counted(effect.subscriptions, "subscription")} then ${
    effect.subscriptions === 1 ? "matches" : "match"} no public topic, and ${
    counted(effect.waiting, "waiting notification")} ${effect.waiting === 1 ? "is" : "are"} not sent.`,
  verb: "Make 1 topic internal", danger: true, note: "You can undo this.", request, run,
});

function caught(error, onConflict) {
  if (error.status !== 409) throw error;
  onConflict(error);
  return null;
}

/** Asks below which topic one is to be; returns the new name of the topic, or undefined. */
export const askWhere = (topic) => openDialog(Where, { topic });

function Where({ topic, close }) {
  const [parent, setParent] = useState(parentOf(topic));
  const to = movedBelow(topic, parent.trim());
  const problem = parent.trim() && problemOfName(parent.trim(), { deep: true });
  const inside = covers(topic, parent.trim()) ? "a topic cannot be below itself" : null;
  const wrong = problem || inside;
  const go = () => !wrong && to !== topic && close(to);
  return html`<${Dialog} title=${html`Move <${Text}>${topic}<//>`} close=${() => close()}>
    <div class="dialog-body">
      <label>Below which topic; empty for a root
        <${Field} label="Topic above" hint="A:B" value=${parent} onText=${setParent} onEnter=${go} invalid=${wrong}
          testid="parent" autofocus /></label>
      <p role="status">${wrong ? html`<span class="bad">${wrong}</span>`
        : html`<${Text}>${lastStep(topic)}<//> becomes <b><${Text}>${to}<//></b>.`}</p>
    </div>
    <div class="dialog-foot"><span class="dim">What it does to subscriptions is shown next.</span>
      <${Button} testid="cancel" onClick=${() => close()}>Cancel<//>
      <${Button} kind="first" testid="ok" disabled=${Boolean(wrong) || to === topic} onClick=${go}>Move topic…<//></div>
  <//>`;
}
