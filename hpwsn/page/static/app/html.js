// One import for everything that builds the page: elements by htm, state by preact's hooks.
import { Fragment, createContext, h, render } from "preact";
import htm from "htm";

export { Fragment, createContext, render };
export {
  useCallback, useContext, useEffect, useId, useLayoutEffect, useMemo, useReducer, useRef, useState,
} from "preact/hooks";

export const html = htm.bind(h);

/** Joins class names; false, null and "" are left out. */
export const classes = (...names) => names.filter(Boolean).join(" ");
