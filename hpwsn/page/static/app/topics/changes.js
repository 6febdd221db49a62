// Edits of a node's topics: they are posted, can be undone, and stop where others were faster.
//
// An edit has the etag of the topic as it was when the edit began. If the topic is another one by then, nothing is
// written, and the conflict (base, theirs, yours) waits for a decision. The list that undoes an edit comes from the
// node; it is posted as it came.
import { send } from "../api.js";
import { loadSession, wordsOf } from "../state.js";
import { createStore } from "../store.js";
import { dismiss, toast } from "../parts/toasts.js";
import { treeOf } from "./tree_data.js";

const CHANGES = "topics/changes";
const MOST_KEPT = 100;
const editors = new Map();

/**
 * The edits at one node: `undo` is a stack of {words, changes}, `draft` the name that is typed,
 * `conflict` what others changed under an edit, `cut` the topic to be moved, `forms` unsaved values by topic. An edit
 * that begins reads the topic once the one before is shown (`settled`). `moved(from, to)` is told of each move.
 */
export function editsOf(node) {
  if (!editors.has(node)) {
    const store = createStore({ undo: [], draft: null, conflict: null, cut: null, forms: new Map(), busy: false });
    editors.set(node, { node, store, moved: () => {}, settled: Promise.resolve() });
  }
  return editors.get(node);
}

/** The request of changes, for `send` and "Copy as curl". */
export const requestOf = (node, changes, dryRun = false) => ({
  method: "POST", path: CHANGES, node, query: dryRun ? { dry_run: "true" } : {}, body: { changes },
});

const post = ({ method, path, ...options }) => send(method, path, options);

/** What changes would do: {topics, subscriptions, waiting}. Throws ApiError, also for conflicts. */
export async function effectOf(node, changes) {
  return (await post(requestOf(node, changes, true))).effect;
}

/**
 * Makes an edit, and shows it with a button that undoes it. `done` is called once the tree shows the edit, before
 * the next one is allowed. Throws ApiError; 409 has `conflicts`.
 */
export async function makeEdit(edits, { request, words, done = () => {} }) {
  const end = begin(edits);
  let made = false;
  try {
    const answer = await post(request);
    made = true;
    taken(edits, request.body.changes ?? [], answer.undo);
    done();
    keepUndo(edits, { words, changes: answer.undo });
    await treeOf(edits.node).reload();
    return answer;
  } catch (error) {
    if (error.status === 403) loadSession().catch(() => {});
    throw error;
  } finally {
    end(made);
  }
}

/** Marks the begin of an edit, after which `settled` tells whether it was made; returns what marks its end. */
function begin(edits) {
  let settle;
  edits.settled = new Promise((resolve) => { settle = resolve; });
  edits.store.set({ busy: true });
  return (made) => {
    edits.store.set({ busy: false });
    settle(made);
  };
}

/** Shows changes that the node has made; `inverse` are those that undo them. */
function taken(edits, changes, inverse) {
  treeOf(edits.node).learn(changes, inverse);
  for (const { op, topic, to } of changes) if (op === "move") edits.moved(topic, to);
}

function keepUndo(edits, entry) {
  if (!entry.changes.length) {
    toast("Nothing changed: the topics were so already.");
    return;
  }
  const kept = { ...entry };
  kept.toast = toast(entry.words, { action: { label: "Undo", run: () => undo(edits, kept) } });
  edits.store.set({ undo: [...edits.store.get().undo.slice(1 - MOST_KEPT), kept] });
}

/** Undoes the last edit, also one that is under way: that is waited for, and if it fails nothing is undone. */
export async function undoLast(edits) {
  while (edits.store.get().busy) if (!await edits.settled) return;
  await undo(edits, edits.store.get().undo.at(-1));
}

/** Undoes an edit. If others have edited since, says so and forgets it. */
export async function undo(edits, entry) {
  const forget = () => {
    edits.store.set({ undo: edits.store.get().undo.filter((each) => each !== entry) });
    dismiss(entry.toast);
  };
  if (!entry || edits.store.get().busy || !edits.store.get().undo.includes(entry)) return;
  const end = begin(edits);
  let made = false;
  try {
    const answer = await post(requestOf(edits.node, entry.changes));
    made = true;
    taken(edits, entry.changes, answer.undo);
    forget();
    toast(`Undone: ${entry.words}`);
    await treeOf(edits.node).reload();
  } catch (error) {
    if (error.status === 409) {
      forget();
      toast(`Not undone, somebody else was faster: ${wordsOf(error)}`, { bad: true });
      await treeOf(edits.node).reload();
    } else toast(`Not undone: ${wordsOf(error)}`, { bad: true });
  } finally {
    end(made);
  }
}

const FIELDS = ["description", "routing", "visibility"];
/** The values of a topic that an edit can set, as the API writes them. */
export const valuesOf = (item) => ({
  description: item?.description ?? "", routing: item?.routing ?? null, visibility: item?.visibility ?? "public",
});

/** A value as words. */
export function wordsOfValue(field, value) {
  if (field === "description") return value || "empty";
  return value ?? (field === "routing" ? "default" : "public");
}

/**
 * A conflict: `topic`, `base` and `theirs` (topics of the API, theirs null if it is gone), and `mine`: {kind:
 * "set" | "rename" | "remove" | "move" | "add", words, values: the wanted ones}. `again(theirs)` repeats the edit,
 * `keep()` drops it.
 */
export function conflictOf({ topic, base, theirs, mine, again, keep }) {
  const before = valuesOf(base);
  const now = valuesOf(theirs);
  const fields = FIELDS.map((field) => ({
    field, base: before[field], theirs: now[field], yours: mine.values?.[field], wanted: field in (mine.values ?? {}),
  })).filter((each) => each.base !== each.theirs || each.wanted);
  return { topic, base, theirs, mine, again, keep, fields };
}

export const showConflict = (edits, conflict) => edits.store.set({ conflict });
export const dropConflict = (edits) => edits.store.set({ conflict: null });
