// A field or text area with its text drawn behind it, so that parts have colours and what is wrong is underlined.
import { classes, html, useLayoutEffect, useRef } from "../html.js";

/**
 * `parts` are [kind, text, wrong]; `children` is the input, which must have the class "marked-input". Both have
 * the same type, padding and scroll position.
 */
export function MarkedText({ parts, lines, inputRef, children }) {
  const back = useRef(null);
  function align() {
    const input = inputRef.current;
    if (!input || !back.current) return;
    back.current.scrollTop = input.scrollTop;
    back.current.scrollLeft = input.scrollLeft;
  }
  useLayoutEffect(align, [parts.map(([, text]) => text).join("")]);
  return html`<div class=${classes("marked", lines && "lines")} onScrollCapture=${align}>
    <div class="marked-back" aria-hidden="true" ref=${back}>${parts.map(([kind, text, wrong]) => (kind || wrong
      ? html`<span class=${classes(kind, wrong && "wrong")}>${text}</span>` : text))}${"\n"}</div>
    ${children}
  </div>`;
}
