// Asks for a bearer token when the node wants one. The token stays in this tab and ends with it.
import { html, useState } from "../html.js";
import { setToken, token } from "../api.js";
import { loadSession, state, wordsOf } from "../state.js";
import { Button } from "../parts/controls.js";
import { Dialog } from "../parts/dialogs.js";

export function SignIn({ error }) {
  const [text, setText] = useState("");
  const [problem, setProblem] = useState(null);
  const close = () => state.set({ signIn: null });
  async function use() {
    const before = token();
    setToken(text.trim());
    try {
      await loadSession();
      location.reload();
    } catch (failed) {
      setToken(before);
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
      ${token() && html`<${Button} onClick=${() => { setToken(""); location.reload(); }}>Forget the token<//>`}
      <${Button} testid="cancel" onClick=${close}>Cancel<//>
      <${Button} kind="first" testid="ok" disabled=${!text.trim()} onClick=${use}>Use token<//></div>
  <//>`;
}
