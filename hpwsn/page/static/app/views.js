// The views: their names, letters, and modules, which are loaded when they are first shown.

const styled = new Map();

/** Loads a style sheet of a view once; resolves when it applies. */
function style(name) {
  if (!styled.has(name)) {
    styled.set(name, new Promise((resolve) => {
      const link = document.createElement("link");
      link.rel = "stylesheet";
      link.onload = resolve;
      link.onerror = resolve;
      link.href = `styles/${name}.css`;
      document.head.append(link);
    }));
  }
  return styled.get(name);
}

async function load(module, ...styles) {
  const [loaded] = await Promise.all([module, ...styles.map(style)]);
  return loaded.default;
}

/** By name in the address: title, letter after `g`, and what loads the component. */
export const VIEWS = {
  overview: {
    title: "Overview", letter: "o", load: () => load(import("./views/overview.js"), "overview", "watch"),
  },
  topics: { title: "Topics", letter: "t", load: () => load(import("./views/topics.js"), "topics", "watch") },
  subscriptions: {
    title: "Subscriptions", letter: "s", load: () => load(import("./views/subscriptions.js"), "subscriptions"),
  },
  "dead-letters": {
    title: "Dead letters", letter: "d", load: () => load(import("./views/dead_letters.js"), "subscriptions"),
  },
  topology: { title: "Topology", letter: "y", load: () => load(import("./views/topology.js"), "topology") },
  health: { title: "Health", letter: "h", load: () => load(import("./views/health.js"), "health") },
  streams: { title: "Streams", letter: "r", load: () => load(import("./views/streams.js"), "streams") },
};
