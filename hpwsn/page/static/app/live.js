// Keeps the shared state up to date: the stream /live, or questions while another stream has this tab's place.
//
// The figures of the cluster are asked every two seconds, since heartbeats bring them; those of a node alone come
// with its status, so that it is asked rarely. A view that follows a topic takes the place of the stream
// (stream.js); meanwhile status and alerts are asked too, every four seconds. Nothing is asked while the tab is
// hidden or the user has paused.
import { get, urlOf } from "./api.js";
import { ratesBetween, withFigures, withTopology } from "./cluster.js";
import { loadSession, state } from "./state.js";
import { freezeStream, openStream, takeStream } from "./stream.js";

const EVERY = 2000;
const ALONE_EVERY = 5000;
const REST_EVERY = 4000;
/** Milliseconds for which the figures of a status are newer than those of /cluster. */
const FRESH = 3000;
const KINDS = ["status", "topology", "topics", "subscriptions", "alerts"];

let followed = false;
let timer = 0;
let asking = false;
let rest = 0;
let own = { figures: null, at: 0 };

function told(kind, data) {
  const { live, cluster, paused } = state.get();
  if (paused) return;
  if (kind === "status" && data.figures) {
    own = { figures: { ...data.figures, ...ratesBetween(live.status, data) }, at: Date.now() };
  }
  const seen = { ...live, [kind]: data };
  state.set({ live: seen, cluster: merged(cluster, seen.topology), connection: "live", heard: Date.now() });
}

/** The cluster with what was told since: states of nodes, and the figures of the node that serves the page. */
function merged(cluster, topology) {
  const known = withTopology(cluster, topology);
  const { session } = state.get();
  return Date.now() - own.at < FRESH ? withFigures(known, session?.node, own.figures) : known;
}

function heard(event) {
  if (event.type === "reset") {
    loadSession().catch(() => {});
    state.set({ live: {} });
    return;
  }
  const known = state.get().cluster?.version ?? -1;
  const data = JSON.parse(event.data);
  told(event.type, data);
  // A stream begins with the topology that /cluster has too.
  if (event.type === "topology" && data.version > known) ask();
}

function away(error) {
  if (state.get().paused) return;
  state.set({ connection: "away", problem: error?.message ?? null });
}

function connected(name, error) {
  if (name === "lost" || name === "refused") away(error);
  else if (name === "connecting" && state.get().connection !== "away") state.set({ connection: "connecting" });
  else if (name === "open" && state.get().connection === "away") {
    loadSession().catch(() => {});
    ask();
  }
}

function open() {
  followed = true;
  const kinds = state.get().session?.kind === "admin" ? ["status", "topology", "alerts"] : KINDS;
  return openStream({
    url: () => urlOf("live", { query: { kinds: kinds.join(",") } }), onEvent: heard, onState: connected,
  });
}

function replaced() {
  followed = false;
  // What the stream told last is not replaced by newer messages any more.
  state.set({ live: { ...state.get().live, topology: undefined } });
  // What the stream has not told yet is asked at once, and all else as often as without a stream.
  if (!state.get().live.status) ask();
  tick();
}

/** Asks for the figures of the cluster now, and for what the stream would tell while it is closed. */
export async function ask() {
  if (asking || document.hidden || state.get().paused) return;
  asking = true;
  const all = !followed && Date.now() - rest >= REST_EVERY - EVERY / 2;
  if (all) rest = Date.now();
  try {
    const [answer, status, alerts] = await Promise.all([
      get("cluster"), all ? get(statusPath()) : null, all ? get("alerts") : null,
    ]);
    if (state.get().paused) return;
    if (status) told("status", status);
    if (alerts) told("alerts", alerts);
    const cluster = merged({ ...answer, at: Date.now() }, state.get().live.topology);
    state.set({ cluster, heard: Date.now(), ...(!followed && { connection: "live" }) });
  } catch (error) {
    if (!followed || !state.get().cluster) away(error);
  } finally {
    asking = false;
  }
}

const statusPath = () => (state.get().session?.kind === "admin" ? "api/status" : "status");

function tick() {
  clearTimeout(timer);
  const alone = (state.get().cluster?.clusters ?? []).every((each) => each.nodes.length < 2);
  timer = setTimeout(() => ask().finally(tick), alone && followed ? ALONE_EVERY : EVERY);
}

/** Starts the stream and the questions. */
export function startLive() {
  takeStream(open, replaced);
  ask();
  tick();
  document.addEventListener("visibilitychange", () => { if (!document.hidden) ask(); });
}

/** Stops or resumes all live updates. */
export function setPaused(paused) {
  state.set({ paused, connection: paused ? "paused" : "connecting" });
  freezeStream(paused);
  if (!paused) ask();
}
