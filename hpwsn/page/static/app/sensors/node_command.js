// A command of `hpwsn` for the node whose sensors are shown, in a box with a button that copies it.
import { html } from "../html.js";
import { quoted, urlOf } from "../api.js";
import { nodesOf, useNode, useShared } from "../state.js";
import { Command } from "../parts/controls.js";

const PLAIN = /^[\w:/.[\]-]+$/;

/** The address of the broker at the node in scope, as one word of a shell command. */
function useBroker() {
  const node = useNode();
  const own = useShared(({ session }) => (session?.kind === "node" ? session.node : null));
  const known = useShared(({ cluster }) => nodesOf(cluster).find((each) => each.name === node)?.url);
  if (own && node === own) return urlOf("wsn").href;
  const url = known ? `${known.replace(/\/$/, "")}/wsn` : "http://NODE:8080/wsn";
  return PLAIN.test(url) ? url : quoted(url);
}

/** The command in `children`, with `--url` and the node's address. */
export function NodeCommand({ children }) {
  return html`<${Command} prompt="$">${`${children} --url ${useBroker()}`}<//>`;
}
