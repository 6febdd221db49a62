// What a person can do with a topic: add below it, rename, move, remove, declare it; by menu, key or drag.
//
// Each action begins with the topic as it is shown, and ends with the node's answer, a conflict, or the reason why
// it is not possible.
import { change } from "../address.js";
import { wordsOf } from "../state.js";
import { toast } from "../parts/toasts.js";
import { conflictOf, dropConflict, editsOf, effectOf, makeEdit, requestOf, showConflict, undoLast } from "./changes.js";
import { askToMove, askToRemove, askWhere } from "./topic_dialogs.js";
import { draftedTopic } from "./visible_rows.js";
import { covers, lastStep, movedBelow, parentOf, rebased } from "./topic_names.js";
import { treeOf } from "./tree_data.js";

const UNDECLARED = "It is not declared: it exists only because it is used. Declare it first.";

/** Why a topic cannot be renamed, moved or removed; null if it can. */
export function whyNot(item, editing) {
  if (!editing.editable) return editing.why;
  if (!item) return "The topic does not exist.";
  return item.declared ? null : UNDECLARED;
}

/** The actions at one node; `focus(topic)` puts the focus on a row, `selected()` is the topic of the panel. */
export function actionsOf(node, { focus, selected }) {
  const edits = editsOf(node);
  const tree = treeOf(node);
  const set = (patch) => edits.store.set(patch);
  const itemOf = (topic) => tree.items.get(topic);
  const failed = (error) => toast(wordsOf(error), { bad: true });

  edits.moved = (from, to) => {
    const topic = selected();
    if (topic && covers(from, topic)) change({ topic: rebased(topic, from, to) }, { replace: true });
  };

  /** Changes that do nothing, but conflict if others remove a topic meanwhile, which an edit needs above it. */
  const stays = (parent) => (itemOf(parent)?.declared ? [{ op: "set", topic: parent, etag: "*" }] : []);

  /** Shows what others did under an edit; false if the error is another one. */
  function conflicted(error, { item, mine, again, keep = () => {} }) {
    const found = error.status === 409 ? error.body.conflicts?.[0] : null;
    if (!found) return false;
    const taken = found.topic !== item?.topic;
    showConflict(edits, conflictOf({
      topic: found.topic, base: taken ? null : found.base ?? item, theirs: found.theirs,
      mine: taken ? { ...mine, kind: "add", values: undefined } : mine,
      again: taken ? null : again, keep,
    }));
    tree.reload();
    return true;
  }

  async function guarded(work) {
    try {
      return await work();
    } catch (error) {
      failed(error);
      return undefined;
    }
  }

  const actions = {
    add(parent) {
      if (parent) tree.open(parent);
      dropConflict(edits);
      const began = new Set(tree.levels.get(parent)?.topics);
      set({ draft: { kind: "add", parent, base: null, began, parentStays: stays(parent) } });
    },

    async rename(topic) {
      await edits.settled;
      if (!itemOf(topic)) return;
      dropConflict(edits);
      set({ draft: { kind: "rename", topic, parent: parentOf(topic), base: itemOf(topic) } });
    },

    /** Ends the typing of a name, and puts the focus back. */
    cancel() {
      const { draft } = edits.store.get();
      set({ draft: null, conflict: null });
      if (draft) focus(draft.kind === "rename" ? draft.topic : draft.parent);
    },

    /** The request of the typed name. */
    requestOfDraft: (draft, text) => requestOf(node, draft.kind === "add"
      ? [...draft.parentStays, { op: "add", topic: draftedTopic(draft, text) }]
      : [{ op: "move", topic: draft.topic, to: draftedTopic(draft, text), etag: draft.base.etag }]),

    /** What renaming would do; undefined if the node refuses it. */
    effectOfDraft: (draft, text) => effectOf(node, actions.requestOfDraft(draft, text).body.changes),

    /** Makes the edit of the typed name. */
    async submit(draft, text) {
      const topic = draftedTopic(draft, text);
      const renames = draft.kind === "rename";
      if (topic === draft.topic) return actions.cancel();
      const words = renames ? `Renamed ${draft.topic} to ${topic}` : `Added ${topic}`;
      try {
        const done = () => set({ draft: null, conflict: null });
        await makeEdit(edits, { request: actions.requestOfDraft(draft, text), words, done });
        if (!renames && parentOf(topic)) await tree.reveal(parentOf(topic));
        focus(topic);
      } catch (error) {
        const mine = { kind: renames ? "rename" : "add", words: `you rename it to ${lastStep(topic)}` };
        const known = conflicted(error, {
          item: draft.base, mine,
          again: (theirs) => actions.renameAgain(draft, text, theirs), keep: () => set({ draft: null }),
        });
        if (!known) failed(error);
      }
      return undefined;
    },

    /** Shows that the topic of a draft was changed before Enter. */
    draftConflict(draft, text, theirs) {
      const words = text && text !== lastStep(draft.topic) ? `you rename it to ${text}` : "you rename it";
      showConflict(edits, conflictOf({
        topic: draft.topic, base: draft.base, theirs, mine: { kind: "rename", words }, keep: () => set({ draft: null }),
        again: (now) => actions.renameAgain(draft, edits.store.get().typed ?? text, now),
      }));
    },

    async renameAgain(draft, text, theirs) {
      dropConflict(edits);
      if (theirs) {
        const next = { ...draft, base: { ...draft.base, ...theirs } };
        set({ draft: next });
        await actions.submit(next, text);
      } else await actions.addAgain(draftedTopic(draft, text), draft.base);
    },

    /** Declares a topic that others removed while it was edited. */
    addAgain: (topic, values, done = () => {}) => guarded(async () => {
      const { description, routing } = values;
      const visibility = values.visibility === "internal" ? "internal" : undefined;
      const request = requestOf(node, [{ op: "add", topic, description, routing, visibility }]);
      const end = () => {
        set({ draft: null, conflict: null });
        done();
      };
      await makeEdit(edits, { request, words: `Added ${topic}`, done: end });
      change({ topic }, { replace: true });
    }),

    declare: (topic) => guarded(async () => {
      await makeEdit(edits, { request: requestOf(node, [{ op: "add", topic }]), words: `Declared ${topic}` });
    }),

    remove: (topic, theirs = null) => guarded(async () => {
      await edits.settled;
      const item = { ...itemOf(topic), ...theirs };
      const onConflict = (error) => conflicted(error, {
        item, mine: { kind: "remove", words: "you remove it" },
        again: (now) => now && actions.remove(topic, now),
      }) || failed(error);
      try {
        const parent = parentOf(topic);
        const next = itemOf(parent) ? parent : undefined;
        const done = () => {
          const here = selected();
          if (here && covers(topic, here)) change({ topic: next }, { replace: true });
        };
        const answer = await askToRemove(edits, item, { onConflict, done });
        if (answer?.effect) focus(parent);
      } catch (error) {
        if (error.status !== 409) throw error;
        onConflict(error);
      }
    }),

    move: (topic, to, theirs = null) => guarded(async () => {
      await edits.settled;
      if (to === topic) return;
      const item = { ...itemOf(topic), ...theirs };
      const onConflict = (error) => conflicted(error, {
        item, mine: { kind: "move", words: `you move it to ${to}` },
        again: (now) => now && actions.move(topic, to, now),
      }) || failed(error);
      try {
        const answer = await askToMove(edits, item, { to, before: stays(parentOf(to)), onConflict });
        if (!answer?.effect) return;
        set({ cut: null });
        if (parentOf(to)) await tree.reveal(parentOf(to));
        focus(to);
      } catch (error) {
        if (error.status !== 409) throw error;
        onConflict(error);
      }
    }),

    async moveSomewhere(topic) {
      const to = await askWhere(topic);
      if (to) await actions.move(topic, to);
    },

    cut: (topic) => set({ cut: edits.store.get().cut === topic ? null : topic }),

    /** Moves the cut topic below another one; below "" it becomes a root. */
    async paste(parent) {
      const { cut } = edits.store.get();
      if (!cut) return;
      if (parent && covers(cut, parent)) toast("A topic cannot be below itself.", { bad: true });
      else await actions.move(cut, movedBelow(cut, parent));
    },

    undo: () => undoLast(edits),
    conflicted,
    failed,
  };
  return actions;
}
