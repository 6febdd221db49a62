// The box that publishes on the selected topic. Its button opens it; it stays over tabs and publications.
import { html, useEffect, useRef } from "../html.js";
import { change, useParameter } from "../address.js";
import { counted } from "../format.js";
import { Icon } from "../icons.js";
import { nodesOf, state, useMay, useShared } from "../state.js";
import { Button, Menu, Text, copyText } from "../parts/controls.js";
import { setDraft, useDraft } from "./drafts.js";
import { PayloadEditor, usePayloadCheck } from "./payload_editor.js";
import { PublishButton, PublishResult, publishCommand, publishCurl, usePublication } from "./publication.js";
import { useTopicFigures } from "./topic_figures.js";

/** How many get what is published on a topic; in a cluster, at this node. */
function Reach({ topic, node }) {
  const figures = useTopicFigures(topic, node);
  const several = useShared(({ cluster }) => nodesOf(cluster).length > 1);
  if (figures === undefined) return null;
  const number = figures?.subscribers ?? 0;
  const words = number ? counted(number, "subscriber") : "no subscriber";
  return html`<span class="dim clip">${words} ${several ? html`at <${Text}>${node}<//>` : number > 1 ? "get it" : "gets it"}</span>`;
}

function Open({ topic, node, inputRef }) {
  const draft = useDraft(topic);
  const { text, kind: chosen } = draft;
  const target = draft.target ?? topic;
  const check = usePayloadCheck(text, chosen);
  const publication = usePublication(target, node);
  const put = (patch) => setDraft(topic, { ...draft, ...patch });
  const ready = check.ready && !publication.busy;
  const sendIt = () => { if (ready) publication.publish(text, check.kind); };
  const copies = [
    ["Copy as curl", () => copyText(publishCurl(target, text, check.kind, node), "Copied as curl")],
    ["Copy as hpwsn command", () => copyText(publishCommand(target, text, node), "Command copied")],
  ];
  return html`
    ${draft.target && html`<p class="compose-target">Publishes on <b><${Text}>${target}<//></b>${" "}
      <button type="button" class="link" onClick=${() => put({ target: null })}>Publish on <${Text}>${topic}<//></button></p>`}
    <${PayloadEditor} text=${text} check=${check} inputRef=${inputRef} onSend=${sendIt}
        onText=${(value) => put({ text: value, kind: value.trim() ? chosen : null })} onKind=${(kind) => put({ kind })}>
      ${!check.error && html`<${Reach} topic=${target} node=${node} />`}
      <${Menu} label="More ways to publish it"
        items=${copies.map(([label, run]) => ({ label, icon: "copy", disabled: !check.ready, run }))} />
      <${PublishButton} ready=${ready} onSend=${sendIt} />
    <//>
    <${PublishResult} ...${publication} />`;
}

/** The button and, once it is open, the box; a topic is needed. */
export function PublishBox({ topic, node }) {
  const open = useParameter("publish") === "1";
  const may = useMay("publish");
  const input = useRef(null);
  const wanted = useRef(false);
  const asked = useShared((shared) => shared.publishing);
  useEffect(() => {
    if (open && (wanted.current || asked)) input.current?.focus();
    wanted.current = false;
    if (open && asked && input.current) state.set({ publishing: false });
  }, [open, asked, topic]);
  if (!may || !topic) return null;
  function show() {
    wanted.current = true;
    if (open) input.current?.focus();
    else change({ publish: "1" }, { replace: true });
  }
  const close = () => change({ publish: undefined }, { replace: true });
  return html`<section class="publish-box" aria-label="Publish">
    <div class="publish-head">
      <button type="button" class="button bare" data-testid="publish" aria-expanded=${String(open)} onClick=${show}>
        <${Icon} name="send" />Publish a message</button>
      ${open && html`<${Button} kind="bare" icon="close" label="Close the publish box" onClick=${close} />`}
    </div>
    ${open && html`<${Open} topic=${topic} node=${node} inputRef=${input} />`}
  </section>`;
}
