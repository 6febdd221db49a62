// The start of the page: choices, session, live updates, keys, and the shell with the view of the address.
import { html, render, useEffect, useState } from "./html.js";
import { followLinks, useAddress } from "./address.js";
import { startKeys } from "./keys.js";
import { lazy } from "./lazy.js";
import { startLive } from "./live.js";
import {
  applyChoices, loadSession, markReady, scopeName, setScope, state, useScope, useShared, wordsOf,
} from "./state.js";
import { VIEWS } from "./views.js";
import { Button, Text } from "./parts/controls.js";
import { Dialogs } from "./parts/dialogs.js";
import { Loading, Notice } from "./parts/lists.js";
import { Toasts } from "./parts/toasts.js";
import { Shell } from "./shell/shell.js";

const SignIn = lazy(async () => (await import("./shell/sign_in.js")).SignIn);

function View() {
  const name = useAddress((found) => found.view);
  const [shown, setShown] = useState({ name: null, component: null, error: null });
  const [attempt, setAttempt] = useState(0);
  const live = useShared((shared) => shared.connection === "live");
  const failed = Boolean(shown.error);
  const view = VIEWS[name];
  const { scope, nodes, alive } = useScope();
  const known = useShared((shared) => shared.cluster !== null);
  // Where no node is left to ask, that is all that a view has to say.
  const silent = known && !alive.length && shown.name === name;
  useEffect(() => { if (silent) markReady(); }, [silent, name]);
  useEffect(() => {
    if (!view) return undefined;
    let current = true;
    document.title = `${view.title} · HPwsn`;
    view.load()
      .then((component) => current && setShown({ name, component, error: null }))
      .catch((error) => current && setShown({ name, component: null, error }));
    return () => { current = false; };
  }, [name, attempt]);
  useEffect(() => { if (failed && live) setAttempt(attempt + 1); }, [failed, live]);
  if (!view) return html`<${Notice} kind="empty">There is no view of this name. <a href="./">Go to the overview</a><//>`;
  if (shown.name !== name) return html`<${Loading} />`;
  // An address may name what has left since it was shared.
  if (known && scope !== "all" && !nodes.length) {
    return html`<${Notice} kind="no-match"><p><${Text}>${scopeName(scope)}<//> has no nodes, or does not exist any more.</p>
      <${Button} onClick=${() => setScope("all")}>Show all nodes<//><//>`;
  }
  if (failed) {
    return html`<${Notice} kind="error"><p role="alert">${view.title} could not be loaded: the node does not answer, or a newer version of the page is installed. Try again, or reload the page.</p>
      <${Button} onClick=${() => setAttempt(attempt + 1)}>Try again<//><//>`;
  }
  return html`<${shown.component} key=${name} />`;
}

function Page() {
  const session = useShared((shared) => shared.session);
  const problem = useShared((shared) => shared.problem);
  const signIn = useShared((shared) => shared.signIn);
  return html`<${Shell}>
      ${session ? html`<${View} />`
        : problem ? html`<${Notice} kind="error"><p>${problem}</p><${Button} onClick=${start}>Try again<//><//>`
          : html`<${Loading} />`}
    <//>
    ${signIn && html`<${SignIn} error=${signIn} />`}
    <${Dialogs} /><${Toasts} />`;
}

let started = false;
let again = 0;

async function start() {
  clearTimeout(again);
  try {
    await loadSession();
    if (!started) startLive();
    started = true;
  } catch (error) {
    state.set({ problem: wordsOf(error), connection: "away" });
    if (error.status !== 401) again = setTimeout(start, 2000);
  }
}

applyChoices();
followLinks();
startKeys();
render(html`<${Page} />`, document.getElementById("page"));
start();
