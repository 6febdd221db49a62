// The side panel of a topic: what it is, its tabs, and the box to publish at its foot.
import { html, useEffect, useRef, useState } from "../html.js";
import { change } from "../address.js";
import { ApiError } from "../api.js";
import { count } from "../format.js";
import { useShared, wordsOf } from "../state.js";
import { Button, Tabs, Tag, Text, copyText } from "../parts/controls.js";
import { Loading, Notice } from "../parts/lists.js";
import { HistoryTab } from "../watch/history_tab.js";
import { PublishBox } from "../watch/publish_box.js";
import { SubscribersTab } from "../watch/subscribers_tab.js";
import { WatchTab } from "../watch/watch_tab.js";
import { EditTab } from "./edit_tab.js";
import { NameInput } from "./name_input.js";
import { itemsOfMenu, openMenu } from "./topic_menu.js";
import { ancestorsOf, lastStep, problemOfName, splitStep } from "./topic_names.js";

/** The tabs of the panel, by name in the address. */
const CONTENTS = { watch: WatchTab, subscribers: SubscribersTab, history: HistoryTab };
export const tabOf = (name) => (name === "edit" || Object.hasOwn(CONTENTS, name ?? "") ? name : "watch");

/** A topic of the tree, asked alone if the tree does not show it, and again with each revision: {item, error}. */
export function useTopic(tree, topic, revision) {
  const [error, setError] = useState(null);
  const seen = useRef(null);
  const item = topic ? tree.items.get(topic) : undefined;
  const known = Boolean(item && !item.unread);
  if (known) seen.current = topic;
  useEffect(() => {
    if (!topic || known) return undefined;
    let current = true;
    const gone = seen.current === topic ? new ApiError(404, "It was removed or renamed.") : null;
    const before = error?.topic === topic && error.problem.status === 404 ? error.problem : null;
    tree.find(topic, gone ?? before).catch((problem) => current && setError({ topic, problem }));
    return () => { current = false; };
  }, [tree, topic, known, known ? 0 : revision]);
  return { item: known ? item : undefined, error: !known && topic && error?.topic === topic ? error.problem : null };
}

/** The topics that the node names as similar, from its error. */
function similarIn(error) {
  const found = /did you mean (.*)\?; /.exec(error.message);
  return found ? found[1].split(", ") : [];
}

function Missing({ topic, error, actions, editing }) {
  if (error.status !== 404) return html`<${Notice} kind="error">${wordsOf(error)}<//>`;
  const similar = similarIn(error);
  const possible = editing.editable && !problemOfName(topic, { deep: true });
  return html`<div class="side-body"><div class="notice notice-empty"><div>
    <p><b><${Text}>${topic}<//></b> does not exist.</p>
    ${similar.length > 0 && html`<p>Did you mean ${similar.map((each, index) => html`${index > 0 && ", "}<button type="button"
      class="topic-link" key=${each} onClick=${() => change({ topic: each })}><${Text}>${each}<//></button>`)}?</p>`}
    ${possible && html`<${Button} icon="plus" onClick=${() => actions.addAgain(topic, {})}>Add this topic<//>`}
    ${!editing.editable && html`<p>${editing.why}</p>`}</div></div></div>`;
}

function Title({ topic, item }) {
  const { namespace, name } = splitStep(lastStep(topic));
  const above = ancestorsOf(topic);
  return html`<h2>${above.map((each) => html`<span class="dim" key=${each}><button type="button" class="topic-link"
      onClick=${() => change({ topic: each })}><${Text}>${splitStep(lastStep(each)).name}<//></button> : </span>`)}<${Text}>${name}<//></h2>
    <p>${namespace && html`<${Text}>${`{${namespace}}`}<//> `}${item && html`<${Text}>${item.description}<//>
      ${item.visibility === "internal" && html` <${Tag}>internal<//>`}
      ${!item.declared && html` <span class="topic-undeclared">undeclared</span>`}`}</p>`;
}

/**
 * Of a topic that is absent: `unborn` where topics are created on first use, so that it can be watched and published
 * on; `unsure` until the stream tells.
 */
function useUnborn(topic, absent) {
  const open = useShared(({ live }) => Boolean(live.status) && live.status.directory?.open !== false);
  const unsure = useShared(({ live, connection }) => !live.status && connection === "connecting");
  return { unborn: absent && open && !problemOfName(topic, { deep: true }), unsure };
}

/** The panel. `banner` and `draft` are shown in it where it covers the tree, `undo` is a button for that. */
export function TopicPanel({ tree, topic, item, error, tab, edits, actions, editing, cut, draft, banner, undo }) {
  const node = tree.node;
  const shown = tabOf(tab);
  const Content = CONTENTS[shown];
  const form = edits.store.get().forms.get(topic);
  const closed = { topic: undefined, tab: undefined, filter: undefined, as: undefined, publish: undefined };
  const close = () => change(closed);
  const menu = (event) => {
    const place = event.currentTarget.getBoundingClientRect();
    openMenu({
      x: place.right, y: place.bottom, label: "Rename, move, remove",
      items: itemsOfMenu({ topic, item, node, actions, editing, cut }),
    });
  };
  function key(event) {
    const typing = event.target.closest("input, textarea, select");
    if (event.key === "Escape" && !typing && !event.defaultPrevented) close();
  }
  const absent = !item && !form && error?.status === 404;
  const { unborn, unsure } = useUnborn(topic, absent);
  const missing = error && !unsure && html`<${Missing} topic=${topic} error=${error} actions=${actions} editing=${editing} />`;
  const body = item || form || unborn ? html`
    <${Tabs} label="About the topic" value=${shown} onChange=${(name) => change({ tab: name })} tabs=${[
      ["watch", "Watch"], ["subscribers", item ? `Subscribers ${count(item.subscribers)}` : "Subscribers"], ["history", "History"],
      ["edit", "Edit"]]}>
      ${Content ? (item || unborn) && html`<${Content} key=${`${node} ${topic}`} topic=${topic} node=${node} />`
        : unborn ? missing : html`<${EditTab} key=${topic} topic=${topic} item=${item} tree=${tree} edits=${edits} actions=${actions} editing=${editing}>
          ${undo && html`<div class="topics-buttons">${undo}</div>`}<//>`}
    <//>
    ${(item || unborn) && html`<${PublishBox} topic=${topic} node=${node} />`}`
    : missing || html`<${Loading} />`;
  return html`<section class="panel side" aria-label="Selected topic" onKeyDown=${key}>
    <header><div>
        <${Button} kind="bare back" icon="left" onClick=${close}>Topics<//>
        <${Title} topic=${topic} item=${item} /></div>
      <span class="topic-tools">
        <${Button} kind="bare" icon="link" label="Copy the address of this view" onClick=${() => copyText(location.href, "Copied")} />
        <${Button} kind="bare" icon="copy" label="Copy the topic" onClick=${() => copyText(topic, "Copied")} />
        <${Button} kind="bare" icon="dots" label="Rename, move, remove" aria-haspopup="menu" onClick=${menu} />
        <${Button} kind="bare wide-only" icon="close" label="Close the panel" onClick=${close} /></span></header>
    ${banner}
    ${draft && html`<div class="topic-typed"><${NameInput} draft=${draft} edits=${edits} actions=${actions} tree=${tree} /></div>`}
    ${body}
  </section>`;
}
