// The document of the cluster, brought up to date by what the live stream tells between two answers. Pure.

/**
 * The cluster with the nodes of a newer topology. A node keeps the figures that are known while it is alive;
 * the links of a node that is not alive are left out, as /cluster does.
 */
export function withTopology(cluster, topology) {
  if (!topology || (cluster && topology.version <= cluster.version)) return cluster;
  const known = new Map();
  for (const each of cluster?.clusters ?? []) for (const node of each.nodes) known.set(node.name, node);
  const alive = new Set();
  const clusters = topology.clusters.map((each) => ({
    ...each,
    nodes: each.nodes.map((node) => {
      if (node.state === "alive") alive.add(node.name);
      const before = known.get(node.name);
      const figures = (node.state === "alive" && before?.figures) || null;
      return { ...node, figures, heartbeat_age: before?.heartbeat_age ?? null };
    }),
  }));
  const links = (cluster?.links ?? []).filter((link) => alive.has(link.from));
  return { partial: null, at: Date.now(), ...cluster, version: topology.version, clusters, links };
}

/** The cluster with newer figures of one node. */
export function withFigures(cluster, name, figures) {
  if (!cluster || !figures) return cluster;
  return {
    ...cluster,
    clusters: cluster.clusters.map((each) => (each.nodes.some((node) => node.name === name) ? {
      ...each, nodes: each.nodes.map((node) => (node.name === name ? { ...node, figures } : node)),
    } : each)),
  };
}

const sum = (counts) => Object.values(counts).reduce((all, each) => all + each, 0);

/** Rates of a node between two answers of /status, in which nothing is missed; none without two of one start. */
export function ratesBetween(before, after) {
  const seconds = before?.started === after.started ? after.uptime - before.uptime : 0;
  if (!(seconds > 0)) return {};
  return {
    published_rate: (after.published.accepted - before.published.accepted) / seconds,
    delivered_rate: (after.delivery.delivered - before.delivery.delivered) / seconds,
    failed_rate: (sum(after.delivery.failures) - sum(before.delivery.failures)) / seconds,
  };
}
