// What all views share: the session, the cluster, what the live stream told, and the choices of the user.
import { ApiError, get, onRefused, setOwn } from "./api.js";
import { change, useParameter } from "./address.js";
import { setZone, visible } from "./format.js";
import { createStore, useStore } from "./store.js";

const CHOICES = "hpwsn-choices";

/**
 * session: /session, or null before it is known. cluster: the last answer of /cluster. live: the last message
 * of each kind of /live. connection: "connecting", "live", "paused" or "away"; `heard` is when something was
 * last heard, in ms. signIn: the error that asked for credentials, or null. publishing: whether a key asked for the
 * box to publish, which has not got the focus yet.
 */
export const state = createStore({
  session: null, cluster: null, live: {}, connection: "connecting", heard: 0, problem: null, signIn: null,
  publishing: false, paused: false, theme: "system", zone: "local", ...choices(),
});

function choices() {
  try {
    const { theme, zone } = JSON.parse(localStorage.getItem(CHOICES)) ?? {};
    return { ...(theme && { theme }), ...(zone && { zone }) };
  } catch {
    return {};
  }
}

/** The selected part of the shared state. */
export const useShared = (select) => useStore(state, select);

onRefused((error) => state.set({ signIn: error }));

/** Asks who the user is and what may be done; throws ApiError. */
export async function loadSession() {
  const session = await get("session");
  setOwn(session.kind === "node" ? session.node : null);
  state.set({ session, problem: null });
}

/** Sets the theme ("system", "light", "dark") or the zone ("local", "utc"), and remembers both. */
export function choose(patch) {
  state.set(patch);
  applyChoices();
  const { theme, zone } = state.get();
  try {
    localStorage.setItem(CHOICES, JSON.stringify({ theme, zone }));
  } catch {
    // Without storage the choice lasts as long as the page.
  }
}

/** Applies theme and zone to the document. */
export function applyChoices() {
  const { theme, zone } = state.get();
  setZone(zone);
  if (theme === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
}

/** Whether the session has a right; all rights until the session is known. */
export const may = (right) => state.get().session?.may.includes(right) ?? true;
export const useMay = (right) => useShared(({ session }) => session?.may.includes(right) ?? true);

/** Marks the document: a view shows data. Tests and screenshots wait for it. */
export function markReady() {
  document.body.dataset.ready = "true";
}

/** All nodes of a cluster document as a flat list: {name, cluster, representative, state, url, figures, …}. */
export function nodesOf(cluster) {
  return (cluster?.clusters ?? []).flatMap((each) => each.nodes.map((node) => ({
    ...node, cluster: each.name, representative: each.representative === node.name,
  })));
}

/** The nodes that a scope names: `all`, `cluster:C` or `node:N`. */
export function nodesInScope(cluster, scope) {
  const [kind, ...rest] = (scope || "all").split(":");
  const name = rest.join(":");
  return nodesOf(cluster).filter((node) => (
    kind === "all" || (kind === "cluster" && node.cluster === name) || (kind === "node" && node.name === name)
  ));
}

/** The nodes in the scope of the address, and those of them that answer. */
export function useScope() {
  const scope = useParameter("scope");
  const cluster = useShared((shared) => shared.cluster);
  const nodes = nodesInScope(cluster, scope);
  return { scope: scope || "all", nodes, alive: nodes.filter((node) => node.state === "alive") };
}

/** The node whose topics and log are shown: the one of the scope, the page's own, or the first that lives. */
export function useNode() {
  const { scope, nodes, alive } = useScope();
  const session = useShared((shared) => shared.session);
  if (scope.startsWith("node:")) return scope.slice("node:".length);
  const own = session?.kind === "node" ? session.node : null;
  if (own && (!nodes.length || nodes.some((node) => node.name === own))) return own;
  const representative = alive.find((node) => node.representative) ?? alive[0];
  return representative?.name ?? own;
}

/** Sets the scope in the address. */
export const setScope = (scope) => change({ scope: scope === "all" ? undefined : scope, id: undefined });

/** The scope as words. */
export function scopeName(scope) {
  if (!scope || scope === "all") return "All nodes";
  return scope.startsWith("cluster:") ? `Cluster ${scope.slice(8)}` : scope.slice(5);
}

/** An error as words for a person, with what to do. */
export function wordsOf(error) {
  if (error instanceof ApiError) return visible(error.message);
  return visible(`The page failed: ${error?.message ?? error}`);
}
