// The links between nodes: both directions together, between clusters and inside them. Pure.

/** What a link shows: its title, the field of /cluster, and the least value that has the thickest curve. */
export const MEASURES = {
  messages: { title: "Messages /s", field: "rate", thick: 100 },
  bytes: { title: "Bytes /s", field: "bytes", thick: 100_000 },
  unconfirmed: { title: "Unconfirmed", field: "unconfirmed", thick: 100_000 },
};

/**
 * Links as [{from, to, by, state, rate, bytes, unconfirmed, inside}], both directions added, sorted by names. A link of
 * a node that is not alive is down, although the other end may not know it yet.
 */
export function joinedLinks(cluster) {
  const clusters = new Map();
  const lost = new Set();
  for (const each of cluster.clusters) {
    for (const node of each.nodes) {
      clusters.set(node.name, each.name);
      if (node.state !== "alive") lost.add(node.name);
    }
  }
  const found = new Map();
  for (const link of cluster.links) {
    const [from, to] = [link.from, link.to].sort();
    const key = JSON.stringify([from, to, link.by]);
    const before = found.get(key) ?? {
      key, from, to, by: link.by, state: "up", rate: 0, bytes: 0, unconfirmed: 0,
      inside: clusters.has(from) && clusters.get(from) === clusters.get(to) ? clusters.get(from) : null,
    };
    const down = link.state === "down" || lost.has(from) || lost.has(to);
    found.set(key, {
      ...before, state: down ? "down" : before.state, rate: before.rate + link.rate,
      bytes: before.bytes + link.bytes, unconfirmed: before.unconfirmed + link.unconfirmed,
    });
  }
  return [...found.values()].sort((left, right) => (left.key < right.key ? -1 : 1));
}

/**
 * One curve for each pair of clusters: [{key, from, to, by, state, rate, bytes, unconfirmed}]. Pairs without a
 * message yet have one between their representatives, if there are few clusters.
 */
export function betweenClusters(cluster, links, most = 6) {
  const found = new Map();
  for (const link of links) {
    if (link.inside !== null) continue;
    const key = JSON.stringify([link.from, link.to]);
    const before = found.get(key);
    found.set(key, before ? {
      ...before, by: [...new Set([...before.by, link.by])], state: link.state === "down" ? "down" : before.state,
      rate: before.rate + link.rate, bytes: before.bytes + link.bytes,
      unconfirmed: before.unconfirmed + link.unconfirmed,
    } : { ...link, key, by: [link.by] });
  }
  const leaders = cluster.clusters.map((each) => each.representative).filter(Boolean).sort();
  if (leaders.length <= most) {
    for (const [index, from] of leaders.entries()) {
      for (const to of leaders.slice(index + 1)) {
        const key = JSON.stringify([from, to]);
        if (!found.has(key)) found.set(key, { key, from, to, by: [], state: "up", rate: 0, bytes: 0, unconfirmed: 0 });
      }
    }
  }
  return [...found.values()].sort((left, right) => (left.key < right.key ? -1 : 1));
}

/** The traffic inside a cluster in a field, and by what: {value, by: ["udp"]}; null if nothing was sent yet. */
export function insideOf(links, name, field) {
  const own = links.filter((link) => link.inside === name);
  if (!own.length) return null;
  const value = own.reduce((sum, link) => sum + link[field], 0);
  return { value, by: [...new Set(own.map((link) => link.by))].sort() };
}

/** Bytes that other nodes have not confirmed to a node, and by whom: {bytes, from: […]}. */
export function heldFor(cluster, name) {
  const links = cluster.links.filter((link) => link.to === name && link.unconfirmed > 0);
  const sum = links.reduce((all, link) => all + link.unconfirmed, 0);
  return { bytes: sum, from: [...new Set(links.map((link) => link.from))].sort() };
}
