// The texts of the events log with nodes, topics and subscriptions as links. Nothing in them is markup.
import { html } from "../html.js";
import { href } from "../address.js";
import { Text } from "../parts/controls.js";

/** The id and the topics of a subscription, before its consumer. */
const SUBSCRIPTION = /^(?:created|ended): subscription (\S+) to (.+?) for /;
const BAD = /\bis dead\b|\bdied\b|without a clean stop|\blost\b/;

/** Parts of a text, as [{text, view, query}] with a view for links; pure. `nodes` are names of known nodes. */
export function eventParts(text, nodes) {
  const found = [];
  for (const match of text.matchAll(/\bnode /g)) {
    const start = match.index + match[0].length;
    const name = nodes.filter((each) => text.startsWith(each, start) && !/[\w-]/.test(text[start + each.length] ?? ""))
      .sort((left, right) => right.length - left.length)[0];
    if (name) found.push({ start, text: name, view: "topology", query: { id: name } });
  }
  const subscription = text.match(SUBSCRIPTION);
  if (subscription) {
    const [, id, topics] = subscription;
    const at = text.indexOf(id);
    if (text.startsWith("created")) found.push({ start: at, text: id, view: "subscriptions", query: { id } });
    let start = text.indexOf(topics, at + id.length);
    for (const topic of topics === "all topics" ? [] : topics.split(", ")) {
      if (!/[*|/\s]/.test(topic)) found.push({ start, text: topic, view: "topics", query: { topic } });
      start += topic.length + 2;
    }
  }
  return cut(text, found.sort((left, right) => left.start - right.start));
}

function cut(text, links) {
  const parts = [];
  let end = 0;
  for (const link of links) {
    if (link.start > end) parts.push({ text: text.slice(end, link.start) });
    parts.push(link);
    end = link.start + link.text.length;
  }
  if (end < text.length) parts.push({ text: text.slice(end) });
  return parts;
}

/** The tone of an event: "bad", "warn" or none. */
export function toneOf(event) {
  if (event.kind === "crash" || (event.kind === "node" && BAD.test(event.text))) return "bad";
  return event.kind === "problem" && !/\bis over$|\bis back$/.test(event.text) ? "warn" : null;
}

/** What an alert says first, without its name and details; other texts in full. */
const briefly = (text) => text.replace(/^alert [^\s:]+(?::\S+)?: ([^;]*).*$/s, "$1");
/** Characters of the id of a subscription. */
const ID = 8;

const shortId = (id) => (id.length > ID + 1 ? `${id.slice(0, ID)}…` : id);

/** Parts without details: a subscription by the begin of its id, and without its consumer; pure. */
export function briefParts(text, nodes) {
  const parts = eventParts(briefly(text), nodes);
  if (!SUBSCRIPTION.test(text)) return parts;
  const end = parts.length - 1;
  return parts.map((part, index) => {
    if (part.view) return part.view === "subscriptions" ? { ...part, text: shortId(part.text) } : part;
    const begun = part.text.replace(/^(ended: subscription )(\S+)/, (_, words, id) => words + shortId(id));
    return { ...part, text: index === end ? begun.replace(/ for \S+$/, "") : begun };
  });
}

/** The text of an event with its links; `brief` leaves out details, which are in the tooltip. */
export function EventText({ event, nodes, brief }) {
  const parts = (brief ? briefParts : eventParts)(event.text, nodes);
  const whole = parts.map((part) => part.text).join("") === event.text;
  return html`<span class=${toneOf(event)} title=${whole ? null : event.text}>${parts.map((part, index) => (part.view
    ? html`<a key=${index} href=${href(part.view, part.query)}><${Text}>${part.text}<//></a>` : html`<${Text} key=${index}>${part.text}<//>`))}</span>`;
}
