// The topics of one node as far as they are open: loaded by level, reloaded when the node's revision changes,
// with the figures of those in sight every two seconds.
//
// A level is the list of the children of a topic; the level of "" has the roots. Trees are kept while the page
// lives, so that a view that is shown again has its open branches.
import { get } from "../api.js";
import { state } from "../state.js";
import { createStore } from "../store.js";
import { ancestorsOf, covers, parentOf, rebased } from "./topic_names.js";

const PAGE = 1000;
const EVERY = 2000;
const SOON = 150;
const LONGEST_QUERY = 6000;
const AT_ONCE = 4;
/** A reload begins at the earliest after so many times the time that the last one took. */
const REST = 8;
const SHORTEST_REST = 500;
/** Trees up to this size are read as a whole when everything is opened. */
export const MOST_OPENED = 50_000;
const OPENED_AT_FIRST = 60;

class TopicTree {
  constructor(node) {
    this.node = node;
    this.items = new Map();
    this.levels = new Map();
    this.expanded = new Set();
    this.inSight = [];
    this.running = false;
    this.loads = new Map();
    this.restUntil = 0;
    this.edits = 0;
    /** `structure` changes with the open topics, `figures` with anything that is shown. */
    this.store = createStore({
      structure: 0, figures: 0, loaded: false, error: null, updated: null, total: null, revision: null, lastEdit: null,
    });
  }

  // Following the node

  /** Loads what is open, and follows the node until the returned function is called. */
  start() {
    this.running = true;
    this.began = this.first();
    const seen = () => { if (!document.hidden) this.poll(); };
    document.addEventListener("visibilitychange", seen);
    this.timer = setInterval(() => this.poll(), EVERY);
    return () => {
      this.running = false;
      document.removeEventListener("visibilitychange", seen);
      clearInterval(this.timer);
      clearTimeout(this.later);
      clearTimeout(this.soon);
    };
  }

  /** Loads a small tree as a whole and opens it; of a large one the roots, and a few of their children. */
  async first() {
    if (this.store.get().loaded) return this.reload();
    await this.guarded(async () => {
      const { items, next, total, revision } = await this.ask({ limit: OPENED_AT_FIRST });
      this.store.set({ total });
      if (next) await this.loadRoots();
      else this.takeAll(items);
      if (!next) for (const item of items) if (item.children) this.expanded.add(item.topic);
      this.store.set({ revision, loaded: true });
    });
    this.changed();
    return undefined;
  }

  async loadRoots() {
    await this.load("");
    const roots = this.levels.get("").topics.map((topic) => this.items.get(topic));
    if (roots.reduce((sum, root) => sum + 1 + root.children, 0) > OPENED_AT_FIRST) return;
    for (const root of roots) if (root.children) this.expanded.add(root.topic);
    await Promise.all(roots.filter((root) => root.children).map((root) => this.load(root.topic)));
  }

  /** Whether the node may be asked now. */
  asks() {
    return this.running && !document.hidden && !state.get().paused;
  }

  /** Somebody told this revision: what is open is loaded again if it is another one. */
  noticed(revision) {
    const known = this.store.get().revision;
    if (!revision || revision === known || known === null || !this.asks()) return;
    clearTimeout(this.later);
    this.later = setTimeout(() => this.reload(), Math.max(0, this.restUntil - Date.now()));
  }

  /** Loads all open levels again. */
  async reload() {
    if (this.reloading) {
      this.again = true;
      return this.reloading;
    }
    clearTimeout(this.later);
    this.reloading = this.guarded(() => this.loadOpen());
    await this.reloading;
    this.reloading = null;
    this.changed();
    if (this.again) {
      this.again = false;
      return this.reload();
    }
    return undefined;
  }

  async loadOpen() {
    const began = performance.now();
    const { revision, total } = await this.ask({ limit: 1 });
    const open = this.openLevels();
    for (const level of this.levels.values()) level.old = true;
    // A request for each open level, or for each page of the whole tree, whatever is less.
    if (open.length > 8 && open.length * PAGE > total * 4 && total <= MOST_OPENED) await this.loadAll();
    else for (let levels = [""]; levels.length;) levels = await this.loadLevels(levels);
    this.store.set({ revision, total, loaded: true });
    this.restUntil = Date.now() + Math.max(SHORTEST_REST, REST * (performance.now() - began));
  }

  /** Loads levels, some at once; returns the open levels right below them. */
  async loadLevels(levels) {
    const waiting = [...levels];
    const work = async () => { while (waiting.length) await this.loadKnown(waiting.shift()); };
    await Promise.all(Array.from({ length: AT_ONCE }, work));
    return levels.flatMap((level) => this.levels.get(level)?.topics ?? []).filter((topic) => this.expanded.has(topic));
  }

  /** Loads a level; without asking if the topic has no topics below it. */
  async loadKnown(parent) {
    if (parent && this.items.get(parent)?.children === 0) this.setLevel(parent, []);
    else await this.load(parent);
  }

  /** Does something with the node; errors are shown beside what is known. */
  async guarded(work) {
    try {
      await work();
      this.store.set({ error: null, updated: Date.now() });
    } catch (error) {
      this.store.set({ error });
    }
  }

  /** Asks for topics; an answer from before an edit of this page is asked for again. */
  async ask(query) {
    for (;;) {
      const edits = this.edits;
      const answer = await get("topics", { node: this.node, query });
      if (edits === this.edits) return answer;
    }
  }

  /**
   * Shows changes that this page has just made, before they are read again; `undo` has the new etags. So the panel
   * does not show the values, or the name, of before for a moment.
   */
  learn(changes, undo) {
    this.edits += 1;
    for (const { op, topic, to, ...values } of changes) {
      if (op === "move") this.rename(topic, to);
      else if (op === "remove") this.leave(topic);
      else if (op === "set" && this.items.has(topic)) this.items.set(topic, withValues(this.items.get(topic), values));
    }
    for (const { topic, etag } of undo) {
      const item = this.items.get(topic);
      if (item && etag) this.items.set(topic, { ...item, etag });
    }
    this.changed();
  }

  /** Forgets a removed topic, also in the level above it. */
  leave(topic) {
    this.drop(topic);
    const level = this.levels.get(parentOf(topic));
    if (level) level.topics = level.topics.filter((each) => each !== topic);
  }

  /** Gives a topic, and all below it, the names that they have after a move. */
  rename(from, to) {
    const moved = (map, change) => {
      for (const topic of [...map.keys()]) {
        if (!covers(from, topic)) continue;
        map.set(rebased(topic, from, to), change(map.get(topic)));
        map.delete(topic);
      }
    };
    moved(this.items, (item) => ({ ...item, topic: rebased(item.topic, from, to) }));
    moved(this.levels, (level) => ({ ...level, topics: level.topics.map((topic) => rebased(topic, from, to)) }));
    for (const topic of [...this.expanded]) if (covers(from, topic)) this.expanded.add(rebased(topic, from, to));
    const level = this.levels.get(parentOf(from));
    if (level && parentOf(from) === parentOf(to)) {
      // The node may have told the new name before it answered.
      level.topics = [...new Set(level.topics.map((topic) => (topic === from ? to : topic)))];
    }
  }

  changed() {
    const { structure, figures } = this.store.get();
    this.store.set({ structure: structure + 1, figures: figures + 1 });
  }

  // Levels

  /** The levels that can be seen: the roots, and of open topics below open topics. */
  openLevels() {
    const found = [""];
    for (let index = 0; index < found.length; index += 1) {
      for (const topic of this.levels.get(found[index])?.topics ?? []) {
        if (this.expanded.has(topic)) found.push(topic);
      }
    }
    return found;
  }

  /** Loads one level, page by page; the first page of a new level is shown at once. */
  async load(parent) {
    const topics = [];
    let after;
    try {
      do {
        const answer = await this.ask({ under: parent, depth: 1, limit: PAGE, after });
        answer.items.forEach((item) => this.put(item));
        topics.push(...answer.items.map((item) => item.topic));
        after = answer.next;
        if (after && !this.levels.get(parent)?.complete) {
          this.levels.set(parent, { topics: [...topics], total: answer.total, complete: false });
          this.changed();
        }
      } while (after);
      this.setLevel(parent, topics);
    } catch (error) {
      if (error.status !== 404) throw error;
      this.drop(parent);
    }
  }

  /** Reads the whole tree. */
  async loadAll() {
    const items = [];
    let after;
    do {
      const answer = await this.ask({ limit: PAGE, after });
      items.push(...answer.items);
      after = answer.next;
    } while (after);
    this.takeAll(items);
  }

  takeAll(items) {
    const levels = new Map([["", []]]);
    for (const item of items) {
      this.put(item);
      const parent = parentOf(item.topic);
      if (!levels.has(parent)) levels.set(parent, []);
      levels.get(parent).push(item.topic);
    }
    for (const [parent, topics] of levels) this.setLevel(parent, topics);
    for (const item of items) if (!item.children) this.setLevel(item.topic, []);
  }

  setLevel(parent, topics) {
    const before = this.levels.get(parent);
    if (before?.complete) {
      const now = new Set(topics);
      for (const topic of before.topics) if (!now.has(topic)) this.drop(topic);
      const known = new Set(before.topics);
      if (topics.some((topic) => !known.has(topic) && this.items.get(topic)?.declared)) this.edited();
    }
    this.levels.set(parent, { topics, total: topics.length, complete: true });
  }

  put(item) {
    const before = this.items.get(item.topic);
    if (before && !before.unread && before.etag !== item.etag) this.edited();
    this.items.set(item.topic, { ...item, read: Date.now() });
  }

  /** Forgets a topic that is gone, and all below it. */
  drop(topic) {
    if (this.items.get(topic)?.declared) this.edited();
    for (const level of this.levels.get(topic)?.topics ?? []) this.drop(level);
    this.items.delete(topic);
    this.levels.delete(topic);
  }

  edited() {
    this.store.set({ lastEdit: Date.now() });
  }

  /** Opens a topic and loads the topics below it, unless they are known. */
  async open(topic) {
    this.expanded.add(topic);
    const level = this.levels.get(topic);
    this.changed();
    if (!level?.complete || level.old) await this.loadOnce(topic);
  }

  close(topic) {
    this.expanded.delete(topic);
    this.changed();
  }

  /** Loads open branches again whose load has failed. */
  loadRest() {
    if (this.reloading) return;
    for (const topic of this.openLevels()) {
      const level = this.levels.get(topic);
      if (this.items.get(topic)?.children && (!level || level.old)) this.loadOnce(topic);
    }
  }

  loadOnce(topic) {
    if (!this.loads.has(topic)) {
      this.loads.set(topic, this.guarded(() => this.loadKnown(topic)).then(() => {
        this.loads.delete(topic);
        this.changed();
      }));
    }
    return this.loads.get(topic);
  }

  /** Opens everything; only for trees of at most MOST_OPENED topics. */
  async openAll() {
    await this.guarded(() => this.loadAll());
    for (const item of this.items.values()) if (item.children) this.expanded.add(item.topic);
    this.changed();
  }

  closeAll() {
    this.expanded.clear();
    this.changed();
  }

  /** Opens a topic and all above it; those that do not exist yet will be open. */
  async reveal(topic) {
    const way = [...ancestorsOf(topic), topic];
    for (const each of way) this.expanded.add(each);
    await this.began;
    const closed = way.filter((each) => !this.levels.get(each)?.complete || this.levels.get(each).old);
    if (closed.length) {
      await this.guarded(async () => {
        const { items } = await this.ask({ topic: closed });
        items.forEach((item) => this.put(item));
        await Promise.all(items.map((item) => this.loadOnce(item.topic)));
      });
    }
    this.changed();
  }

  /**
   * Reads one topic that no level shows. Throws an ApiError if it does not exist: `missing` if it is given, or that
   * of the node, which has the names of similar topics.
   */
  async find(topic, missing) {
    await this.began;
    if (this.items.has(topic) && !this.items.get(topic).unread) return;
    const { items } = await this.ask({ topic });
    if (!items.length && missing) throw missing;
    this.put(items[0] ?? await get(`topics/${encodeURIComponent(topic)}`, { node: this.node }));
    this.changed();
  }

  /** Makes topics known by name, until their figures are read; for those above the matches of a search. */
  name(topics) {
    for (const topic of topics) {
      if (!this.items.has(topic)) {
        this.items.set(topic, { topic, unread: true, declared: true, children: 1, read: 0, etag: null });
      }
    }
  }

  // Figures

  /** Tells which topics are in sight; their figures are read now if they are older than two seconds. */
  show(topics) {
    this.inSight = topics;
    clearTimeout(this.soon);
    const old = Date.now() - EVERY;
    if (topics.some((topic) => (this.items.get(topic)?.read ?? 0) < old)) {
      this.soon = setTimeout(() => this.poll(), SOON);
    }
  }

  /** Reads the figures of what is in sight, and with them whether the revision is another one. */
  async poll() {
    if (!this.asks() || this.polling) return;
    this.polling = true;
    if (this.store.get().loaded) await this.guarded(() => this.readFigures()).then(() => this.loadRest());
    else if (this.store.get().error) await this.first();
    this.polling = false;
    this.store.set({ figures: this.store.get().figures + 1 });
  }

  async readFigures() {
    for (const topics of portions(this.inSight)) {
      const answer = await this.ask(topics.length ? { topic: topics } : { limit: 1 });
      const found = new Set(answer.items.map((item) => item.topic));
      const gone = topics.filter((topic) => !found.has(topic) && this.items.delete(topic));
      answer.items.forEach((item) => this.put(item));
      if (gone.length) this.changed();
      this.noticed(answer.revision);
    }
  }
}

const trees = new Map();

/** The tree of a node; always the same one. */
export function treeOf(node) {
  if (!trees.has(node)) trees.set(node, new TopicTree(node));
  return trees.get(node);
}

/** A topic with the values of an edit: null is that of a topic without one. */
function withValues(item, { description = item.description, routing = item.routing, visibility = item.visibility }) {
  return { ...item, description: description ?? "", routing, visibility: visibility ?? "public" };
}

/** Topics in portions that fit into the address of a request; at least one, which may be empty. */
function portions(topics) {
  const found = [[]];
  let length = 0;
  for (const topic of topics) {
    length += encodeURIComponent(topic).length + "topic=&".length;
    if (length > LONGEST_QUERY && found.at(-1).length) {
      found.push([]);
      length = 0;
    }
    found.at(-1).push(topic);
  }
  return found;
}
