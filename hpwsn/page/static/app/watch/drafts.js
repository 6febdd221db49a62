// What somebody is about to publish, by topic: it stays while tabs and topics change.
import { change } from "../address.js";
import { createStore, useStore } from "../store.js";

const EMPTY = { text: "", kind: null, target: null };
const drafts = createStore({ byTopic: new Map() });

/**
 * The draft of the box of a topic: {text, kind, target}. `kind` is "json" or "xml" if it was chosen, `target` the
 * topic it goes to if that is another one.
 */
export const useDraft = (topic) => useStore(drafts, ({ byTopic }) => byTopic.get(topic) ?? EMPTY);

export function setDraft(topic, draft) {
  drafts.set({ byTopic: new Map(drafts.get().byTopic).set(topic, draft) });
}

/** Opens the box with a payload; `shown` is the topic whose box it is, `target` the one that gets it. */
export function openDraft(shown, target, text) {
  setDraft(shown, { text, kind: null, target: target === shown ? null : target });
  change({ publish: "1" });
}
