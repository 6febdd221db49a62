// Asks for a bearer token when the node wants one. The token stays in this tab and ends with it.
import { html, useState } from "../html.js";
import { ApiError, errorOf, get, headers, setToken, token } from "../api.js";
import { state, wordsOf } from "../state.js";
import { Button } from "../parts/controls.js";
import { Dialog } from "../parts/dialogs.js";

/** Asks for the address that refused again, with the new token; throws if it is refused too. */
async function judge({ url, node }) {
  if (!url?.includes("/events")) {
    await get("session", { node });
    return;
  }
  const address = new URL(url);
  address.search = "";
  let response;
  try {
    const asked = { method: "HEAD", headers: headers({}, node), credentials: "omit", cache: "no-store" };
    response = await fetch(address, asked);
  } catch {
    throw new ApiError(0, "The node does not answer. Check that it runs, and try again.");
  }
  if (response.status === 401) throw new ApiError(401, "The node refuses this token.");
  if (!response.ok) throw await errorOf(response, node);
}

export function SignIn({ error }) {
  const [text, setText] = useState("");
  const [problem, setProblem] = useState(null);
  const close = () => state.set({ signIn: null });
  async function use() {
    const before = token(error.node);
    setToken(text.trim(), error.node);
    try {
      await judge(error);
      location.reload();
    } catch (failed) {
      setToken(before, error.node);
      setProblem(failed);
    }
  }
  return html`<${Dialog} title="A token is needed" close=${close}>
    <div class="dialog-body">
      <p>${wordsOf(error)}</p>
      <label>Token <input type="password" class="input" autocomplete="off" value=${text} aria-invalid=${problem ? "true" : null}
        data-testid="token" onInput=${(event) => setText(event.target.value)}
        onKeyDown=${(event) => { if (event.key === "Enter" && text.trim()) use(); }} /></label>
      ${problem && html`<p class="note bad" role="alert">${wordsOf(problem)}</p>`}
    </div>
    <div class="dialog-foot"><span class="dim">It is kept in this tab only.</span>
      ${token(error.node) && html`<${Button} onClick=${() => { setToken("", error.node); location.reload(); }}>Forget the token<//>`}
      <${Button} testid="cancel" onClick=${close}>Cancel<//>
      <${Button} kind="first" testid="ok" disabled=${!text.trim()} onClick=${use}>Use token<//></div>
  <//>`;
}
