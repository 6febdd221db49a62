// The figures of nodes over time: histories of the API, continued with the figures of /cluster.
import { useEffect, useRef, useState } from "./html.js";
import { get } from "./api.js";
import { state, useShared } from "./state.js";

export const RANGES = { "5m": 300, "1h": 3600, "24h": 86400 };
export const STEPS = { "5m": 1, "1h": 5, "24h": 60 };
const AGAIN = 60_000;

/** The address of a node's history: the admin node has those of all, a node has its own. */
function asked(node, range, metrics) {
  const query = { range, metrics: metrics.join(",") };
  return state.get().session?.kind === "admin"
    ? get("history", { query: { ...query, node } }) : get("history", { node, query });
}

/** One history as {from, step, series: {name: {min, mean, max}}, restarts}, of which the end grows. */
function grow(history, figures, now) {
  const steps = Object.values(history.series)[0]?.mean.length ?? 0;
  const index = Math.floor((now / 1000 - history.from) / history.step);
  if (index < 0 || !steps) return history;
  const shift = Math.max(0, index - steps + 1);
  if (shift >= steps) return history;
  const at = index - shift;
  const series = {};
  for (const [name, values] of Object.entries(history.series)) {
    const value = figures[name] ?? null;
    const moved = (list) => [...list.slice(shift), ...Array(shift).fill(null)];
    const [min, mean, max] = [values.min, values.mean, values.max].map(moved);
    if (value !== null && (history.step === 1 || mean[at] === null)) {
      min[at] = value;
      mean[at] = value;
      max[at] = value;
    }
    series[name] = { min, mean, max };
  }
  return { ...history, from: history.from + shift * history.step, series };
}

/** `from` in seconds since 1970, whatever the API writes. */
function normal(history) {
  const from = typeof history.from === "number" ? history.from : Date.parse(history.from) / 1000;
  const restarts = (history.restarts ?? []).map((at) => (typeof at === "number" ? at : Date.parse(at) / 1000));
  return { ...history, from, restarts };
}

/**
 * Histories of some nodes by name: {histories: {name: history}, errors: {name: error}, loaded}. They are read
 * when nodes, range or metrics change and once a minute, and continued by the live figures between.
 */
export function useHistories(names, range, metrics) {
  const [found, setFound] = useState({ histories: {}, errors: {}, loaded: false });
  const cluster = useShared((shared) => shared.cluster);
  const key = `${names.join("\n")}|${range}|${metrics.join(",")}`;
  const current = useRef(key);
  current.current = key;

  useEffect(() => {
    let stopped = false;
    async function load() {
      const histories = {};
      const errors = {};
      await Promise.all(names.map(async (name) => {
        try {
          histories[name] = normal(await asked(name, range, metrics));
        } catch (error) {
          errors[name] = error;
        }
      }));
      if (!stopped && current.current === key) setFound({ histories, errors, loaded: true });
    }
    load();
    const timer = setInterval(() => { if (!document.hidden && !state.get().paused) load(); }, AGAIN);
    const seen = () => { if (!document.hidden) load(); };
    document.addEventListener("visibilitychange", seen);
    return () => {
      stopped = true;
      clearInterval(timer);
      document.removeEventListener("visibilitychange", seen);
    };
  }, [key]);

  useEffect(() => {
    if (!cluster) return;
    const now = Date.now();
    const figures = {};
    for (const each of cluster.clusters) for (const node of each.nodes) figures[node.name] = node.figures;
    setFound((before) => {
      if (!before.loaded) return before;
      const histories = { ...before.histories };
      for (const [name, history] of Object.entries(histories)) {
        histories[name] = grow(history, figures[name] ?? {}, now);
      }
      return { ...before, histories };
    });
  }, [cluster]);

  return found;
}

const ADDED = new Set(["published_rate", "delivered_rate", "failed_rate", "waiting", "dead_letters",
  "subscriptions", "pull_points", "journal_bytes", "connections"]);

/** One value of several nodes: rates and counts are added, the worst of the others counts; null without any. */
export function combined(name, values) {
  const known = values.filter((value) => value !== null && value !== undefined);
  if (!known.length) return null;
  return ADDED.has(name) ? known.reduce((sum, value) => sum + value, 0) : Math.max(...known);
}

/** The means of a figure over several histories, step by step, combined. */
export function combinedSeries(name, histories) {
  const lists = histories.map((history) => history.series[name]?.mean ?? []);
  const length = Math.max(0, ...lists.map((list) => list.length));
  return Array.from({ length }, (_, step) => combined(name, lists.map((list) => list[list.length - length + step])));
}
