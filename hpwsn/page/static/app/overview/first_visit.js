// Whether this visit shows the three steps of a new node: nothing was published, and nobody has left them.
import { useCallback, useEffect, useState } from "../html.js";
import { get } from "../api.js";
import { createStore, useStore } from "../store.js";
import { nodesOf, useShared } from "../state.js";

/** Publications of other clients after which the steps give way to the overview. */
const TRAFFIC = 20;
/** Milliseconds after which a node is asked what its stream has not told yet. */
const LATE = 1500;

const visit = createStore({ steps: "unknown" });

const unused = (status) => status.journal.last_offset === 0 && status.subscriptions === 0;

/** Undefined until it is known. */
function isNew({ session, live, cluster }) {
  if (!session) return undefined;
  if (session.kind !== "node" || nodesOf(cluster).length > 1) return false;
  return live.status ? unused(live.status) : undefined;
}

/**
 * [whether the steps are shown, a function that leaves them]; undefined until the node has told its status, so that
 * nothing is loaded in vain. Traffic or a problem leaves the steps too.
 */
export function useFirstRun() {
  const [answered, setAnswered] = useState(undefined);
  const fresh = useShared(isNew) ?? answered;
  const accepted = useShared((shared) => shared.live.status?.published?.accepted ?? 0);
  const trouble = useShared((shared) => (shared.live.alerts?.items ?? []).some((alert) => alert.severity !== "info"));
  const steps = useStore(visit, (found) => found.steps);
  const silent = steps === "unknown" && fresh === undefined;
  useEffect(() => {
    if (!silent) return undefined;
    const ask = () => get("status").then((status) => setAnswered(unused(status)), () => setAnswered(false));
    const timer = setTimeout(ask, LATE);
    return () => clearTimeout(timer);
  }, [silent]);
  useEffect(() => {
    if (steps === "unknown" && fresh !== undefined) visit.set({ steps: fresh ? "shown" : "left" });
    if (steps === "shown" && (trouble || accepted >= TRAFFIC)) visit.set({ steps: "left" });
  }, [steps, fresh, trouble, accepted]);
  const leave = useCallback(() => visit.set({ steps: "left" }), []);
  const shown = steps === "unknown" ? fresh : steps === "shown";
  return [shown, leave];
}
