// Whether this visit shows the three steps of a new node: nothing was published, and nobody has left them.
import { useCallback, useEffect, useState } from "../html.js";
import { createStore, useStore } from "../store.js";
import { nodesOf, useShared } from "../state.js";

/** Publications of other clients after which the steps give way to the overview. */
const TRAFFIC = 20;
/** Milliseconds after which a node of which the stream says nothing counts as one in use. */
const LATE = 1500;

const visit = createStore({ steps: "unknown" });

/** Undefined until it is known. */
function isNew({ session, live, cluster }) {
  if (!session) return undefined;
  if (session.kind !== "node" || nodesOf(cluster).length > 1) return false;
  const { status } = live;
  return status ? status.journal.last_offset === 0 && status.subscriptions === 0 : undefined;
}

/**
 * [whether the steps are shown, a function that leaves them]; undefined until the first message of the stream, so that
 * nothing is loaded in vain. Traffic or a problem leaves the steps too.
 */
export function useFirstRun() {
  const fresh = useShared(isNew);
  const accepted = useShared((shared) => shared.live.status?.published?.accepted ?? 0);
  const trouble = useShared((shared) => (shared.live.alerts?.items ?? []).some((alert) => alert.severity !== "info"));
  const steps = useStore(visit, (found) => found.steps);
  const [late, setLate] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => setLate(true), LATE);
    return () => clearTimeout(timer);
  }, []);
  useEffect(() => {
    if (steps === "unknown" && fresh !== undefined) visit.set({ steps: fresh ? "shown" : "left" });
    if (steps === "shown" && (trouble || accepted >= TRAFFIC)) visit.set({ steps: "left" });
  }, [steps, fresh, trouble, accepted]);
  const leave = useCallback(() => visit.set({ steps: "left" }), []);
  const shown = steps === "unknown" ? fresh ?? (late ? false : undefined) : steps === "shown";
  return [shown, leave];
}
