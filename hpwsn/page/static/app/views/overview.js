// The overview: is all well, what changed. A node where nothing was published yet shows three steps instead.
import { html, useEffect } from "../html.js";
import { useParameter } from "../address.js";
import { lazy, loaded } from "../lazy.js";
import { ask } from "../live.js";
import { markReady, useShared } from "../state.js";
import { Button } from "../parts/controls.js";
import { Loading, Notice } from "../parts/lists.js";
import { useFirstRun } from "../overview/first_visit.js";

const AllEvents = lazy(async () => (await import("../overview/events.js")).AllEvents);
const NewNode = lazy(async () => (await loaded(import("../overview/new_node.js"), "styles/watch")).NewNode);
const Usual = lazy(async () => (await import("../overview/usual.js")).Usual);

export default function Overview() {
  const cluster = useShared((shared) => shared.cluster);
  const connection = useShared((shared) => shared.connection);
  const problem = useShared((shared) => shared.problem);
  const tab = useParameter("tab");
  const [first, leave] = useFirstRun();
  const lost = connection === "away" && !cluster;
  useEffect(() => { if (lost || (cluster && tab === "events")) markReady(); }, [Boolean(cluster), lost, tab]);

  if (lost) {
    return html`<${Notice} kind="error"><p>${problem ?? "The node does not answer."}</p>
      <${Button} onClick=${ask}>Try again<//><//>`;
  }
  if (!cluster) return html`<${Loading} />`;
  if (tab === "events") return html`<${AllEvents} />`;
  if (first === undefined) return html`<${Loading} />`;
  return first ? html`<${NewNode} leave=${leave} />` : html`<${Usual} />`;
}
