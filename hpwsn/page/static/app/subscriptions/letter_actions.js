// Replaying and dropping dead letters: the requests, their effects, and what became of a replay in words.
import { send } from "../api.js";
import { count, counted, oneLine } from "../format.js";
import { wordsOf } from "../state.js";
import { ask } from "../parts/dialogs.js";
import { toast } from "../parts/toasts.js";

/** Seconds for which the node is asked to wait for the outcome of one replay, and for those of many. */
const WAIT = 3;
const LONGER = 10;

/** The requests for a selection of the API, such as {ids: [7]} or {subscription, reason}, at a node. */
export const requestsFor = (selection, node) => ({
  replay: {
    method: "POST", path: "deadletters/replay", node, query: { wait: selection.ids ? WAIT : LONGER }, body: selection,
  },
  drop: { method: "POST", path: "deadletters/drop", node, body: selection },
});

/** The outcome of replaying one dead letter as {words, bad}. */
export function oneOutcome({ delivered, failed, pending, ended, internal }) {
  if (delivered) return { words: "Delivered. It is not a dead letter any more.", gone: true };
  if (failed) return { words: "Sent once more, and failed again. It stays a dead letter.", bad: true };
  if (pending) return { words: "Queued. It is sent when its subscription is resumed or its consumer has answered." };
  if (ended) return { words: "Not sent: its subscription has ended. Nobody else can get it.", bad: true };
  if (internal) return { words: "Not sent: its topic is internal now.", bad: true };
  return { words: "Not sent: it is not a dead letter any more.", bad: true };
}

/** The outcome of replaying several dead letters as {words, bad}. */
export function outcomeOf({ delivered, failed, pending, ended, internal }) {
  const parts = [
    [delivered, "delivered"], [failed, "failed again and stay dead letters"], [pending, "queued, not tried yet"],
    [ended, "not sent, since their subscription has ended"], [internal, "not sent, since their topic is internal now"],
  ].filter(([number]) => number > 0).map(([number, words]) => `${count(number)} ${words}`);
  const words = parts.length ? `${parts.join(", ")}.` : "There were none left to send.";
  return { words, bad: failed + ended + internal > 0 };
}

/** Replays a selection; returns the outcome in words, told as a toast too. */
export async function replay(selection, node, words) {
  const { path, ...options } = requestsFor(selection, node).replay;
  let outcome;
  try {
    outcome = words(await send("POST", path, options));
  } catch (error) {
    outcome = { words: wordsOf(error), bad: true };
  }
  toast(outcome.words, { bad: outcome.bad });
  return outcome;
}

/** Asks, and replays the dead letters of a group; returns the outcome, undefined if it was cancelled. */
export function askToReplayGroup(group) {
  const selection = { subscription: group.subscription, reason: group.reason };
  return ask({
    title: `Replay ${counted(group.count, "dead letter")}?`,
    body: `${group.count === 1 ? "It is" : "They are"} sent once more to ${oneLine(group.consumer)}, before what waits for it. What fails again stays a dead letter.`,
    verb: `Replay ${counted(group.count, "dead letter")}`, request: requestsFor(selection, group.at).replay,
    run: () => replay(selection, group.at, outcomeOf),
  });
}

/** Asks, and drops a selection of `number` dead letters; returns how many were dropped, undefined if cancelled. */
export function askToDrop(selection, node, number) {
  const request = requestsFor(selection, node).drop;
  const what = counted(number, "dead letter");
  return ask({
    title: `Drop ${what}?`,
    body: number === 1
      ? "Its notification is deleted and is never delivered."
      : "Their notifications are deleted and are never delivered.",
    verb: `Drop ${what}`, danger: true, request,
    run: async () => {
      const { path, ...options } = request;
      const { dropped } = await send("POST", path, options);
      toast(`Dropped ${counted(dropped, "dead letter")}`);
      return { dropped };
    },
  });
}
