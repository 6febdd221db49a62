// The view Topics: the tree of a node's topics with its figures, its edits, and the panel of the selected topic.
import { html, useEffect, useMemo, useReducer, useRef, useState } from "../html.js";
import { change, useParameter } from "../address.js";
import { markReady, useNode, useShared } from "../state.js";
import { useStore } from "../store.js";
import { ListState, Loading, Notice } from "../parts/lists.js";
import { toast } from "../parts/toasts.js";
import { actionsOf, whyNot } from "../topics/topic_actions.js";
import { editsOf } from "../topics/changes.js";
import { ConflictBanner } from "../topics/conflict_banner.js";
import { usePhone } from "../parts/media.js";
import { canonicalTopic } from "../topics/topic_names.js";
import { useEditing } from "../topics/surroundings.js";
import { TopicMenu, itemsOfMenu, openMenu } from "../topics/topic_menu.js";
import { TopicPanel, tabOf, useTopic } from "../topics/topic_panel.js";
import { TopicsHead, TreeTools, UndoButton, fileItems } from "../topics/topics_head.js";
import { treeOf } from "../topics/tree_data.js";
import { treeKey } from "../topics/tree_keys.js";
import { TreeRows, rowOf } from "../topics/tree_rows.js";
import { useTreeSearch } from "../topics/tree_search.js";
import { FILTERS, rowsOf, withDraft } from "../topics/visible_rows.js";

const FILTERED_EVERY = 5000;

export default function Topics() {
  const node = useNode();
  const named = useParameter("topic");
  const topic = canonicalTopic(named);
  useEffect(() => { if (topic !== named) change({ topic }, { replace: true }); }, [topic, named]);
  const known = useShared((shared) => shared.cluster !== null);
  if (topic !== named) return null;
  if (!node && known) return html`<${Notice} kind="partial"><p>No node answers, so there are no topics to show.</p><a href="topology">Show the nodes</a><//>`;
  return node ? html`<${NodeTopics} key=${node} node=${node} />` : html`<${Loading} />`;
}

/** The tree of the node while the view is shown, with the revision that the live stream tells. */
function useTree(node) {
  const tree = treeOf(node);
  const shape = useStore(tree.store);
  const own = useShared((shared) => shared.session?.kind === "node" && shared.session.node === node);
  const revision = useShared((shared) => shared.live.topics?.revision);
  useEffect(() => tree.start(), [tree]);
  useEffect(() => { if (own) tree.noticed(revision); }, [tree, own, revision]);
  return [tree, shape];
}

/** The rows to show, by the text and the chips of the address; `settled` once they are those of the text. */
function useRows(tree, shape) {
  const q = useParameter("q") ?? "";
  const text = q.trim();
  const chosen = useParameter("state") ?? "";
  const filters = useMemo(() => FILTERS.filter((name) => chosen.split(",").includes(name)), [chosen]);
  const [search, toggleFound] = useTreeSearch(tree, text, shape.revision);
  const figures = filters.length ? shape.figures : 0;
  const rows = useMemo(() => rowsOf(tree, { search, filters }), [tree, shape.structure, search, filters, figures]);
  useEffect(() => {
    if (!filters.length) return undefined;
    const timer = setInterval(() => { if (tree.asks()) tree.reload(); }, FILTERED_EVERY);
    return () => clearInterval(timer);
  }, [tree, filters]);
  return { q, filters, search, toggleFound, rows, settled: !text || search?.text === text };
}

/** Tells of others who change the topic whose new name is typed, before Enter. */
function useDraftConflict({ tree, shape, edits, actions }) {
  const { draft, conflict, busy } = useStore(edits.store);
  useEffect(() => {
    const current = edits.store.get();
    if (current.draft?.kind !== "rename" || current.busy || current.conflict) return;
    const item = tree.items.get(current.draft.topic);
    const now = item?.declared ? item : null;
    if ((now?.etag ?? null) !== current.draft.base.etag) actions.draftConflict(current.draft, current.typed ?? "", now);
  }, [shape.figures, shape.structure, draft, busy, conflict]);
}

/** Ctrl+Z undoes the last edit, wherever nobody types. */
function useUndoKey(actions, editable) {
  useEffect(() => {
    const key = (event) => {
      const control = (event.ctrlKey || event.metaKey) && !event.altKey && !event.shiftKey;
      if (!control || event.key.toLowerCase() !== "z" || event.target.closest?.("input, textarea, select")) return;
      if (document.querySelector("dialog[open]") || !editable) return;
      event.preventDefault();
      actions.undo();
    };
    document.addEventListener("keydown", key);
    return () => document.removeEventListener("keydown", key);
  }, [actions, editable]);
}

/** Opens the way to the selected topic, and brings its row into sight; it gets the focus after a search in the bar. */
function useReveal({ tree, topic, phone, focus }) {
  useEffect(() => {
    if (!topic) return;
    tree.reveal(topic).then(() => {
      if (phone) return;
      rowOf(document, topic)?.scrollIntoView({ block: "nearest" });
      if (document.activeElement === document.getElementById("main")) focus(topic);
    });
  }, [tree, topic]);
}

function NodeTopics({ node }) {
  const [tree, shape] = useTree(node);
  const list = useRows(tree, shape);
  const { rows, search } = list;
  const topic = useParameter("topic");
  const tab = useParameter("tab");
  const [active, setActive] = useState(topic ?? null);
  const wanted = useRef(null);
  const selected = useRef(topic);
  selected.current = topic;
  const phone = usePhone();
  const covered = phone && Boolean(topic);
  const editing = useEditing(node);
  const edits = editsOf(node);
  const { draft, conflict, cut } = useStore(edits.store);
  const { item, error } = useTopic(tree, topic, shape.revision);

  const [, look] = useReducer((number) => number + 1, 0);
  const focus = (name) => {
    if (!name) return;
    setActive(name);
    look();
    if (!(phone && selected.current)) wanted.current = name;
  };
  const actions = useMemo(() => actionsOf(node, { focus, selected: () => selected.current }), [node, phone]);
  useReveal({ tree, topic, phone, focus });
  useDraftConflict({ tree, shape, edits, actions });
  useUndoKey(actions, editing.editable);
  usePublishTopic(rows, active);
  useReady({ shape, list, topic, told: item || error });

  const select = (name) => {
    setActive(name);
    if (name !== topic) change({ topic: name, filter: undefined, id: undefined });
  };
  const toggle = (row) => {
    if (search) list.toggleFound(row.topic, row.expanded);
    else if (row.expanded) tree.close(row.topic);
    else tree.open(row.topic);
  };
  const shown = useMemo(() => withDraft(rows, covered ? null : draft), [rows, draft, covered]);
  const go = (index) => {
    const row = shown[Math.max(0, index)];
    if (row?.topic) focus(row.topic);
  };
  const onKey = (event, at) => {
    const known = treeKey(event, {
      rows: shown, at, go, select, open: (name) => toggle({ topic: name, expanded: false }),
      close: (name) => toggle({ topic: name, expanded: true }),
      edit: editing.editable ? byKey(actions, tree, editing) : null,
    });
    if (known) event.preventDefault();
  };
  const menuOf = (name, x, y) => openMenu({
    x, y, label: `Actions on ${name}`,
    items: itemsOfMenu({ topic: name, item: tree.items.get(name), node, actions, editing, cut, select }),
  });
  const dropped = async (name, onto) => {
    edits.store.set({ cut: name });
    await actions.paste(onto);
    edits.store.set({ cut: null });
  };

  const shared = { tree, shape, edits, actions, editing };
  const banner = conflict && html`<${ConflictBanner} conflict=${conflict} edits=${edits} />`;
  const editsHere = Boolean(item) && tabOf(tab) === "edit";
  return html`<${TopicsHead} node=${node} ...${shared} parent=${item ? topic : ""}
      ids=${{ undo: !(covered && editsHere), add: !editsHere }} />
    ${!covered && banner}
    <div class=${topic ? "split open" : "split"}>
      <section class="panel topics-panel" aria-label="Topic tree">
        <${TreeTools} ...${list} tree=${tree} shape=${shape} items=${phone ? fileItems(edits, editing) : []}
          onDown=${() => go(shown.findIndex((row) => row.topic === active))} />
        <${ListState} list=${stateOf(tree, shape, search, shown)} filtered=${Boolean(list.q || list.filters.length)}
          onClear=${() => change({ q: undefined, state: undefined })}
          empty=${html`<b>No topics yet.</b> A topic appears when somebody publishes on it, subscribes to it, or adds it here.`} />
        ${shown.length > 0 && html`<div class="wrap"><${TreeRows} ...${shared} rows=${shown} matches=${search?.matches}
          selected=${topic} active=${active} cut=${cut} wanted=${wanted} phone=${phone} onSelect=${select} onToggle=${toggle}
          onActive=${setActive} onMenu=${menuOf} onKey=${onKey} onDrop=${dropped} /></div>`}
      </section>
      ${topic && html`<${TopicPanel} ...${shared} topic=${topic} item=${item} error=${error} tab=${tab} cut=${cut}
        draft=${covered ? draft : null} banner=${covered ? banner : null}
        undo=${covered && html`<${UndoButton} ...${shared} testid="undo" />`} />`}
    </div>
    <${TopicMenu} />`;
}

/** The state of the tree as that of a list. */
const stateOf = (tree, shape, search, shown) => ({
  loading: !shape.loaded && !shape.error, error: shape.error ?? search?.error, items: shown, updated: shape.updated,
  partial: [], refresh: () => (shape.loaded ? tree.reload() : tree.first()),
});

/** Publishing needs a topic: the one that was last active, or the first. */
function usePublishTopic(rows, active) {
  const topic = useParameter("topic");
  const publish = useParameter("publish");
  useEffect(() => {
    if (!publish || topic || !rows.length) return;
    change({ topic: (rows.find((row) => row.topic === active) ?? rows[0]).topic }, { replace: true });
  }, [publish, topic, rows.length]);
}

/** The view shows data once the tree, the search and the selected topic are there. */
function useReady({ shape, list, topic, told }) {
  const ready = Boolean(shape.loaded || shape.error) && list.settled && Boolean(!topic || told);
  useEffect(() => { if (ready) markReady(); }, [ready]);
}

/** The edits by key: where one is not possible, the reason is told. */
function byKey(actions, tree, editing) {
  const guarded = (act) => (topic) => {
    const why = whyNot(tree.items.get(topic), editing);
    if (why) toast(why, { bad: true });
    else act(topic);
  };
  return {
    add: actions.add, paste: actions.paste, rename: guarded(actions.rename), remove: guarded(actions.remove),
    cut: guarded(actions.cut),
  };
}
