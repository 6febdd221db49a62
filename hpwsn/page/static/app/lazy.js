// Parts of the page that are loaded when they are first shown: modules, and the style sheets that they need.
import { html, useEffect, useState } from "./html.js";

/** Milliseconds until a part that could not be loaded is asked for again. */
const AGAIN = 2000;

const styled = new Map();

/** Loads a style sheet once, without its ending; resolves when it applies. */
function style(path) {
  if (!styled.has(path)) {
    styled.set(path, new Promise((resolve) => {
      const link = document.createElement("link");
      link.rel = "stylesheet";
      link.onload = resolve;
      link.onerror = resolve;
      link.href = `${path}.css`;
      document.head.append(link);
    }));
  }
  return styled.get(path);
}

/** The module of an import, once the style sheets apply too. */
export async function loaded(module, ...styles) {
  return (await Promise.all([module, ...styles.map(style)]))[0];
}

/** A component that shows nothing until `load` has brought the component that it stands for. */
export function lazy(load) {
  let known = null;
  return function Lazy(props) {
    const [component, setComponent] = useState(() => known);
    useEffect(() => {
      let current = true;
      let timer = 0;
      const ask = () => load().then((found) => {
        known = found;
        if (current) setComponent(() => found);
      }, () => { if (current) timer = setTimeout(ask, AGAIN); });
      if (!known) ask();
      return () => {
        current = false;
        clearTimeout(timer);
      };
    }, []);
    return component && html`<${component} ...${props} />`;
  };
}
