// What is around the tree: where the topics of a node come from, whether they can be edited.
import { html, useEffect, useMemo, useState } from "../html.js";
import { get } from "../api.js";
import { count, counted } from "../format.js";
import { useMay, useShared } from "../state.js";
import { Ago, State, Text } from "../parts/controls.js";

/** An answer of a node that is not the one of the page; undefined for that one, and until it is known. */
function useOther(node, path) {
  const own = useShared((shared) => shared.session?.kind === "node" && shared.session.node === node);
  const [found, setFound] = useState(undefined);
  useEffect(() => {
    if (own) return undefined;
    let current = true;
    get(path, { node }).then((answer) => current && setFound(answer)).catch(() => current && setFound(null));
    return () => { current = false; };
  }, [node, path, own]);
  return own ? undefined : found;
}

/** Whether the topics of a node can be edited by the user: {editable, why}. */
export function useEditing(node) {
  const allowed = useMay("manage");
  const session = useShared((shared) => shared.session);
  const other = useOther(node, "session");
  const topics = session?.kind === "node" && session.node === node ? session.topics : other?.topics;
  return useMemo(() => {
    if (!allowed) return { editable: false, why: "You may not edit topics: that needs the right \"manage\"." };
    if (topics) return { editable: topics.editable, why: topics.why_not };
    return { editable: false, why: other === null ? "The node does not answer." : "The node has not answered yet." };
  }, [allowed, topics, other]);
}

/** Where the topics come from, how many there are, and when this page last saw an edit. */
export function Source({ node, shape }) {
  const session = useShared((shared) => shared.session);
  const own = session?.kind === "node" && session.node === node;
  const ownStatus = useShared((shared) => shared.live.status);
  const other = useOther(node, "status");
  const directory = (own ? ownStatus : other)?.directory;
  const isLdap = (own ? session.topics.source : null) === "ldap" || directory?.address?.startsWith("ldap");
  const away = directory && !directory.connected;
  const name = directory?.address ?? (isLdap ? "the LDAP directory" : "the topic file");
  return html`<p class="topics-source">
    ${away ? html`<${State} shape="retrying"><span class="clip"><${Text}>${name}<//> is away</span><//>
      ${directory.problem && html` <span class="dim"><${Text}>${directory.problem}<//></span>`}`
      : html`<${State} shape="live"><span class="clip" title=${name}>Follows <${Text}>${name}<//></span><//>`}
    <span class="dim"> · ${shape.total === null ? "…" : html`<span data-testid="topic-total" data-total=${count(shape.total)}>${counted(shape.total, "topic")}</span>`}${shape.lastEdit
      ? html`, last edit <${Ago} at=${shape.lastEdit / 1000} />` : ""}${own ? "" : html`, as <${Text}>${node}<//> sees them`}</span></p>`;
}
