// Subscriptions and pull points in words: states, short reasons, short consumers, topics with their filters. Pure.
import { html } from "../html.js";
import { oneLine } from "../format.js";
import { Text } from "../parts/controls.js";

/** Shape and word of each state of the API. */
export const STATES = {
  live: { shape: "live", word: "Live" },
  retrying: { shape: "retrying", word: "Retrying" },
  paused: { shape: "paused", word: "Paused" },
  expired: { shape: "expired", word: "Expired" },
};

/** What the kinds of the API mean. */
export const KINDS = {
  soap: "SOAP, Notify", raw: "SOAP, bare payloads", original: "SOAP of the original", onvif: "ONVIF pull point",
  pull: "pull point", webhook: "JSON webhook",
};

const REASONS = [
  [/\bstatus (\d{3})\b/, (found) => found[1]],
  [/refused/i, () => "refused"],
  [/no reply within|timed? ?out/i, () => "timeout"],
  [/connection lost|reset/i, () => "lost"],
  [/certificate|ssl|tls/i, () => "TLS"],
  [/not HTTP|headers of the reply/i, () => "not HTTP"],
  [/name or service|resolve|getaddrinfo|no address/i, () => "unknown host"],
  [/notifications waited/i, () => "queue full"],
];

/** The reason of a failed delivery in one or two words, such as "refused", "503" or "timeout"; null for none. */
export function shortReason(reason) {
  if (!reason) return null;
  for (const [pattern, words] of REASONS) {
    const found = pattern.exec(reason);
    if (found) return words(found);
  }
  return reason.replace(/^POST \S+: /, "").split(" ").slice(0, 3).join(" ");
}

/** Why a subscription gets nothing, beside its state; paused and expired say it already. */
export function detailOf({ state, reason }) {
  if (state === "retrying") return shortReason(reason);
  return state === "live" && reason ? "held back" : null;
}

const POINT = /\/pullpoints\/([^/?#]+)$/;

/** The id of the pull point into which a subscription delivers, or null. */
export function pullPointOf({ kind, consumer }) {
  if (kind !== "pull" && kind !== "onvif") return null;
  return POINT.exec(consumer ?? "")?.[1] ?? null;
}

/** A consumer as a row names it: without `http://`; a pull point by the start of its id. Nothing in it is invisible. */
export function shortConsumer(subscription) {
  const point = pullPointOf(subscription);
  if (point) return `pull point ${oneLine(point.slice(0, 8))}`;
  return oneLine((subscription.consumer || "").replace(/^http:\/\//, "") || subscription.id);
}

/** All filters of a subscription beside its topics, as one text. */
export const filterOf = ({ content, conditions }) => [...(content ?? []), ...(conditions ?? [])].join(" and ");

/** The topics of a subscription as one text; all topics if it names none. */
export const topicsOf = ({ topics }) => (topics?.length ? topics.join(" and ") : "all topics");

/** Topics and filter in one cell. */
export function TopicsAndFilter({ item }) {
  const filter = filterOf(item);
  return html`<span class=${item.topics?.length ? null : "dim"}><${Text}>${topicsOf(item)}<//></span>
    ${filter && html` <span class="mono dim"><${Text} mono>${filter}<//></span>`}`;
}
