// Unsaved values of topics: a form begins with the first change, and keeps the topic as it was then, with its etag,
// until it is saved or discarded. Forms outlive their tab.
import { conflictOf, dropConflict, effectOf, makeEdit, requestOf, showConflict, valuesOf } from "./changes.js";
import { askToHide } from "./topic_dialogs.js";

/** The values that differ, as the API takes them: null removes one. */
export function changedValues(before, now) {
  const found = {};
  if (now.description !== before.description) found.description = now.description || null;
  if (now.routing !== before.routing) found.routing = now.routing;
  if (now.visibility !== before.visibility) found.visibility = now.visibility === "public" ? null : now.visibility;
  return found;
}

/** The form of a topic, {base, values}; undefined if nothing is changed. */
export const formOf = (edits, topic) => edits.store.get().forms.get(topic);

function putForm(edits, topic, form) {
  const forms = new Map(edits.store.get().forms);
  if (form) forms.set(topic, form);
  else forms.delete(topic);
  edits.store.set({ forms });
}

/** Forgets the unsaved values of a topic, and the conflict about them. */
export function dropForm(edits, topic) {
  putForm(edits, topic, null);
  if (edits.store.get().conflict?.topic === topic) dropConflict(edits);
}

/** Changes values; `item` is the topic as it is shown, which counts where no form was begun. */
export function changeForm(edits, item, patch) {
  const form = formOf(edits, item.topic);
  const base = form?.base ?? item;
  const values = { ...(form?.values ?? valuesOf(base)), ...patch };
  const differs = Object.keys(changedValues(valuesOf(base), values)).length > 0;
  putForm(edits, item.topic, differs ? { base, values } : null);
  if (!differs) dropForm(edits, item.topic);
}

/** The request that saves a form. */
export function requestOfForm(edits, { base, values }) {
  const changed = changedValues(valuesOf(base), values);
  return requestOf(edits.node, [{ op: "set", topic: base.topic, etag: base.etag, ...changed }]);
}

/** The values that somebody changed, as they are shown. */
function wantedOf({ base, values }) {
  return Object.fromEntries(Object.keys(changedValues(valuesOf(base), values)).map((field) => [field, values[field]]));
}

/** Shows that others changed the topic since the form began; `theirs` is null if it is gone. */
export function showFormConflict(edits, actions, topic, theirs, base = formOf(edits, topic).base) {
  showConflict(edits, conflictOf({
    topic, base, theirs, mine: { kind: "set", values: wantedOf(formOf(edits, topic)) },
    keep: () => dropForm(edits, topic),
    again: (now) => saveAgain(edits, actions, topic, now),
  }));
}

/** Saves the wanted values over those of others. */
async function saveAgain(edits, actions, topic, theirs) {
  const form = formOf(edits, topic);
  if (!form) return;
  if (!theirs) {
    await actions.addAgain(topic, form.values, () => dropForm(edits, topic));
    return;
  }
  const base = { ...form.base, ...theirs };
  putForm(edits, topic, { base, values: { ...valuesOf(base), ...wantedOf(form) } });
  await saveForm(edits, actions, topic);
}

/** Saves a form. If others were faster, nothing is written and the conflict is shown. */
export async function saveForm(edits, actions, topic) {
  const form = formOf(edits, topic);
  if (!form || edits.store.get().busy) return;
  const request = requestOfForm(edits, form);
  const wanted = wantedOf(form);
  const words = `Changed ${Object.keys(wanted).join(", ")} of ${topic}`;
  const run = () => makeEdit(edits, { request, words, done: () => dropForm(edits, topic) });
  try {
    const effect = wanted.visibility === "internal" ? await effectOf(edits.node, request.body.changes) : null;
    await (effect?.subscriptions ? askToHide({ topic, effect, request, run }) : run());
  } catch (error) {
    const found = error.status === 409 ? error.body.conflicts?.[0] : null;
    if (found) showFormConflict(edits, actions, topic, found.theirs, found.base ?? form.base);
    else actions.failed(error);
  }
}
