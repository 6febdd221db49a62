// A small store: one value, listeners, and a hook that renders again only if the selected part has changed.
import { useLayoutEffect, useReducer, useRef } from "./html.js";

/** A value with listeners. `set` takes a patch of the fields to change. */
export function createStore(initial) {
  let value = initial;
  const listeners = new Set();
  return {
    get: () => value,
    set(patch) {
      const changed = Object.keys(patch).some((name) => !Object.is(patch[name], value[name]));
      if (!changed) return;
      value = { ...value, ...patch };
      for (const listener of [...listeners]) listener(value);
    },
    subscribe(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
}

/** The selected part of a store; the component renders again when it is another value. */
export function useStore(store, select = (value) => value) {
  const [, render] = useReducer((number) => number + 1, 0);
  const selected = select(store.get());
  const last = useRef(null);
  last.current = { select, selected };
  useLayoutEffect(() => {
    const look = (value) => {
      if (!Object.is(last.current.select(value), last.current.selected)) render();
    };
    look(store.get());
    return store.subscribe(look);
  }, [store]);
  return selected;
}
