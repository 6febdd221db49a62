// The tab in which the values of a topic are edited: description, routing and visibility; and the actions on it.
import { html, useEffect } from "../html.js";
import { useStore } from "../store.js";
import { Button, CurlButton, Text } from "../parts/controls.js";
import { valuesOf } from "./changes.js";
import { changeForm, dropForm, formOf, requestOfForm, saveForm, showFormConflict } from "./edit_form.js";
import { parentOf } from "./topic_names.js";
import { whyNot } from "./topic_actions.js";

function Choice({ label, testid, value, options, onChange, ...rest }) {
  return html`<label>${label}
    <select data-testid=${testid} value=${value} onChange=${(event) => onChange(event.target.value)} ...${rest}>
      ${options.map((each) => html`<option key=${each} value=${each}>${each}</option>`)}</select></label>`;
}

function Values({ item, values, fixed, inherited, onChange }) {
  return html`<label>Description
      <textarea rows="3" data-testid="description" maxlength="10000" readonly=${fixed} value=${values.description}
        onInput=${(event) => onChange({ description: event.target.value })}></textarea></label>
    <div class="topics-choices">
      <${Choice} label="Routing" testid="routing" disabled=${fixed} value=${values.routing ?? "default"}
        options=${["default", "udp", "tcp"]} onChange=${(text) => onChange({ routing: text === "default" ? null : text })} />
      <${Choice} label="Visibility" testid="visibility" disabled=${fixed || inherited} value=${values.visibility}
        title=${inherited ? "Internal, as a topic above it is" : null} options=${["public", "internal"]}
        onChange=${(visibility) => onChange({ visibility })} />
    </div>
    <p class="dim">Routing: how messages go to other nodes; default is that of the topic above.
      Internal topics are read by jobs only${inherited && item ? "; a topic above this one is internal" : ""}.</p>`;
}

function Undeclared({ topic, actions }) {
  return html`<div class="note topics-undeclared"><p>This topic is not declared: it exists only because it is used, and
      goes with its last subscription and message.</p>
    <${Button} testid="topic-declare" onClick=${() => actions.declare(topic)}>Declare<//></div>`;
}

function Acts({ topic, actions, editing, stop }) {
  const shared = { disabled: Boolean(stop), title: stop };
  return html`<div class="topics-buttons topics-acts">
      <${Button} icon="plus" testid="topic-add" disabled=${!editing.editable} title=${editing.why}
        onClick=${() => actions.add(topic)}>Add below<//>
      <${Button} icon="edit" testid="topic-rename" ...${shared} onClick=${() => actions.rename(topic)}>Rename<//>
      <${Button} testid="topic-move" ...${shared} onClick=${() => actions.moveSomewhere(topic)}>Move…<//>
      <${Button} kind="risk" icon="trash" testid="topic-delete" ...${shared} onClick=${() => actions.remove(topic)}>Remove…<//>
    </div>
    ${stop && editing.editable && html`<p class="dim">Renaming, moving and removing are not possible. <${Text}>${stop}<//></p>`}`;
}

/** `item` is undefined for a topic that is gone while its form has unsaved values; `children` are more buttons. */
export function EditTab({ topic, item, tree, edits, actions, editing, children }) {
  const form = useStore(edits.store, (found) => found.forms.get(topic));
  const conflict = useStore(edits.store, (found) => (found.conflict?.topic === topic ? found.conflict : null));
  const busy = useStore(edits.store, (found) => found.busy);
  const shown = item ?? form.base;
  const stop = whyNot(shown, editing);
  const inherited = tree.items.get(parentOf(topic))?.visibility === "internal";

  // Others were faster, and this page knows it before Enter.
  useEffect(() => {
    const now = tree.items.get(topic);
    const theirs = now?.declared ? now : null;
    if (edits.store.get().busy || conflict || !formOf(edits, topic)) return;
    if ((theirs?.etag ?? null) !== formOf(edits, topic).base.etag) showFormConflict(edits, actions, topic, theirs);
  }, [form, item?.etag, busy, conflict === null]);

  function save() {
    // Nothing is written before the conflict is decided.
    if (conflict) document.querySelector("[data-testid=conflict]")?.focus();
    else saveForm(edits, actions, topic);
  }
  function key(event) {
    if (event.key === "Escape" && form) {
      event.stopPropagation();
      dropForm(edits, topic);
    } else if (event.key === "Enter" && !event.shiftKey && !event.isComposing && event.target.tagName !== "BUTTON") {
      event.preventDefault();
      save();
    }
  }
  return html`${!shown.declared && editing.editable && html`<${Undeclared} topic=${topic} actions=${actions} />`}
    <form class="topics-form" onSubmit=${(event) => event.preventDefault()} onKeyDown=${key}>
      <${Values} item=${item} values=${form?.values ?? valuesOf(shown)} fixed=${Boolean(stop)} inherited=${inherited}
        onChange=${(patch) => changeForm(edits, shown, patch)} />
      <div class="topics-buttons">
        <${Button} kind="first" testid="save" disabled=${!form || Boolean(stop) || busy} onClick=${save}>Save<//>
        ${form && html`<${Button} onClick=${() => dropForm(edits, topic)}>Discard<//>
          <${CurlButton} request=${() => requestOfForm(edits, form)} />`}
      </div>
    </form>
    <${Acts} topic=${topic} actions=${actions} editing=${editing} stop=${stop} />
    ${children}`;
}
