// Addresses of the page: /ui/VIEW?query, relative, so that they work under any prefix.
//
// The query is the state that can be shared: scope, range, q, sort, state, topic, filter, tab, id, as. Typing
// replaces the entry of the history, opening something adds one.
import { createStore, useStore } from "./store.js";

export const VIEWS = [
  "overview", "topics", "subscriptions", "dead-letters", "topology", "health", "streams", "sensors",
];

const KEPT = ["scope", "range"];
const root = new URL(".", document.baseURI);
const store = createStore(read());

function read() {
  const segment = decodeURIComponent(location.pathname.slice(root.pathname.length));
  const view = segment === "" ? "overview" : segment;
  return { view, query: Object.fromEntries(new URLSearchParams(location.search)) };
}

/** Takes over the address of the browser; another view shows no data yet. */
function take() {
  const found = read();
  if (found.view !== store.get().view) document.body.dataset.ready = "false";
  store.set(found);
}

addEventListener("popstate", take);

/** The current view and query. */
export const address = () => store.get();

/** A part of the address; the component renders again when it changes. */
export const useAddress = (select) => useStore(store, select);

/** One parameter of the query; undefined if it is not there. */
export const useParameter = (name) => useStore(store, (found) => found.query[name]);

/** The relative URL of a view. Scope and range are kept, unless the query has them. */
export function href(view, query = {}) {
  const kept = Object.fromEntries(KEPT.map((name) => [name, store.get().query[name]]));
  const parameters = new URLSearchParams();
  for (const [name, value] of Object.entries({ ...kept, ...query })) {
    if (value !== undefined && value !== null && value !== "") parameters.set(name, value);
  }
  const text = parameters.toString();
  return `${view === "overview" ? "./" : view}${text ? `?${text}` : ""}`;
}

/** Goes to a view. */
export function go(view, query = {}, { replace = false } = {}) {
  const url = new URL(href(view, query), root);
  if (url.href === location.href) return;
  history[replace ? "replaceState" : "pushState"](null, "", url);
  take();
}

/** Changes some parameters of this view; undefined removes one. */
export function change(patch, { replace = false } = {}) {
  const { view, query } = store.get();
  go(view, { ...query, ...patch }, { replace });
}

/** Follows plain clicks on links of the page without loading it again. */
export function followLinks() {
  document.addEventListener("click", (event) => {
    const link = event.target.closest?.("a[href]");
    const special = event.button || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey;
    if (!link || special || event.defaultPrevented || link.target || link.download) return;
    const url = new URL(link.href);
    if (url.origin !== root.origin || !url.pathname.startsWith(root.pathname) || url.hash) return;
    if (url.pathname.slice(root.pathname.length).includes("/")) return;
    event.preventDefault();
    if (url.href !== location.href) history.pushState(null, "", url);
    take();
  });
}
