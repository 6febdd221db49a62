// The views: their names, letters, and modules, which are loaded when they are first shown.
import { loaded } from "./lazy.js";

const PLOT = "vendor/uPlot.min";

const view = async (module, ...styles) => (await loaded(module, ...styles)).default;

/** By name in the address: title, letter after `g`, and what loads the component. */
export const VIEWS = {
  overview: { title: "Overview", letter: "o", load: () => view(import("./views/overview.js"), "styles/overview") },
  topics: {
    title: "Topics", letter: "t",
    load: () => view(import("./views/topics.js"), "styles/topics", "styles/watch"),
  },
  subscriptions: {
    title: "Subscriptions", letter: "s",
    load: () => view(import("./views/subscriptions.js"), "styles/subscriptions", PLOT),
  },
  "dead-letters": {
    title: "Dead letters", letter: "d",
    load: () => view(import("./views/dead_letters.js"), "styles/subscriptions"),
  },
  topology: { title: "Topology", letter: "y", load: () => view(import("./views/topology.js"), "styles/topology") },
  health: { title: "Health", letter: "h", load: () => view(import("./views/health.js"), "styles/health", PLOT) },
  streams: { title: "Streams", letter: "r", load: () => view(import("./views/streams.js"), "styles/streams", PLOT) },
  sensors: { title: "Sensors", letter: "n", load: () => view(import("./views/sensors.js"), "styles/sensors", PLOT) },
};
