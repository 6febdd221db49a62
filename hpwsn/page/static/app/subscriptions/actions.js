// What can be done with a subscription or a pull point: the requests, and the effects that are named before.
import { send } from "../api.js";
import { counted, oneLine } from "../format.js";
import { html } from "../html.js";
import { wordsOf } from "../state.js";
import { ask } from "../parts/dialogs.js";
import { toast } from "../parts/toasts.js";
import { pullPointOf, shortConsumer } from "./words.js";

/** The requests of one subscription by the name of the action; `end` destroys. */
export function requestsOf({ id, at }, expires = null) {
  const path = `subscriptions/${encodeURIComponent(id)}`;
  return {
    show: { method: "GET", path, node: at },
    pause: { method: "PATCH", path, node: at, body: { paused: true } },
    resume: { method: "PATCH", path, node: at, body: { paused: false } },
    retry: { method: "POST", path: `${path}/retry`, node: at },
    renew: { method: "PATCH", path, node: at, body: { expires } },
    end: { method: "DELETE", path, node: at },
  };
}

/** Sends a request {method, path, …}. */
export const run = ({ method, path, ...options }) => send(method, path, options);

/** The words of each action: on a button, and what was done. */
export const ACTIONS = {
  pause: { verb: "Pause", done: "Paused", effect: "Notifications for them wait until they are resumed." },
  resume: { verb: "Resume", done: "Resumed", effect: "What waits is delivered now." },
  retry: {
    verb: "Try", done: "Tried", effect: "Their consumers are tried at once, without the rest of the pause.",
  },
  end: { verb: "End", done: "Ended", danger: true },
};

/** Does an action with one subscription at once and tells the outcome; returns the answer, undefined if it failed. */
export async function act(action, item) {
  try {
    const answer = await run(requestsOf(item)[action]);
    toast(told(action, item));
    return answer ?? true;
  } catch (error) {
    toast(wordsOf(error), { bad: true });
    return undefined;
  }
}

function told(action, item) {
  const name = shortConsumer(item);
  if (action === "pause") return `Paused ${name}. Its notifications wait until it is resumed.`;
  if (action === "resume") return `Resumed ${name}. ${item.waiting ? `${counted(item.waiting, "waiting notification")} can be delivered.` : "Nothing waits for it."}`;
  return `${name} is tried now.`;
}

/** What ending subscriptions does, in sentences. */
export function endEffect(items) {
  const one = items.length === 1;
  const waiting = items.reduce((sum, item) => sum + (item.waiting ?? 0), 0);
  const letters = items.reduce((sum, item) => sum + (item.dead_letters ?? 0), 0);
  const sentences = [one ? "This subscription ends." : `${counted(items.length, "subscription")} end.`];
  sentences.push(waiting ? `${counted(waiting, "waiting notification")} ${waiting === 1 ? "is" : "are"} dropped.` : "Nothing waits, so nothing is dropped.");
  if (items.some(pullPointOf)) sentences.push("What is in a pull point already stays there.");
  if (letters) sentences.push(`${counted(letters, "dead letter")} ${letters === 1 ? "stays" : "stay"}, but nobody is left to whom ${letters === 1 ? "it" : "they"} can be replayed.`);
  return sentences.join(" ");
}

/** Asks, and ends one subscription; returns whether it was ended. */
export function askToEnd(item) {
  const request = requestsOf(item).end;
  return ask({
    title: `End the subscription of ${shortConsumer(item)}?`,
    body: endEffect([item]),
    verb: "End subscription", danger: true, request,
    run: async () => {
      await run(request);
      toast(`Ended the subscription of ${shortConsumer(item)}`);
      return true;
    },
  });
}

/** The request that destroys a pull point. */
export const destroyOf = ({ id, at }) => ({ method: "DELETE", path: `pullpoints/${encodeURIComponent(id)}`, node: at });

const nameOf = (point) => oneLine(point.name || point.id.slice(0, 8));

/** Asks, and destroys a pull point; returns whether it was destroyed. */
export function askToDestroy(point) {
  const request = destroyOf(point);
  const ends = point.subscriptions?.length ?? 0;
  const waiting = point.waiting
    ? `${counted(point.waiting, "notification")} in it ${point.waiting === 1 ? "is" : "are"} dropped` : "Nothing is in it";
  return ask({
    title: `Destroy pull point ${nameOf(point)}?`,
    body: html`<p>This pull point ends. ${waiting}${ends ? `, and ${counted(ends, "subscription")} that ${ends === 1 ? "delivers" : "deliver"} into it ${ends === 1 ? "ends" : "end"} too` : ""}.</p>`,
    verb: "Destroy pull point", danger: true, request,
    run: async () => {
      await run(request);
      toast(`Destroyed pull point ${nameOf(point)}`);
      return true;
    },
  });
}
