"""The topology as one node sees it: its cluster, its representative, and the other clusters. Pure.

This module owns the grace period of a node or cluster that is dead, has left or is not listed any more.
During the grace period reliable publications are kept for it, and its interest counts. A node that left has
a grace period if this node knew it before, or starts soon after it left, because a restarted node still has
its subscriptions. The cost depends on the number of clusters and of nodes in the own cluster, not on the
number of all nodes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from hpwsn.routing.topology.topology import Cluster, Member, Topology


@dataclass(frozen=True, slots=True)
class View:
    """The topology as seen by the node `name`, which is not in any of the sets."""

    name: str
    cluster: str | None = None
    representative: str | None = None
    alive: Mapping[str, float] = field(default_factory=dict)
    """The other live nodes of the cluster, with the time when each registered."""
    in_grace: frozenset[str] = frozenset()
    """Nodes of the cluster that are dead, have left or are not listed, within their grace period."""
    others: Mapping[str, str | None] = field(default_factory=dict)
    """The other clusters with their representatives; None for a cluster without one."""

    @property
    def is_representative(self) -> bool:
        """Whether this node is the representative of its cluster."""
        return self.representative == self.name

    def peers(self) -> Iterator[str]:
        """Yield the other nodes of the cluster, including those in their grace period."""
        yield from self.alive
        yield from self.in_grace


class _GracePeriods:
    """The names that are missing, and the time since when."""

    def __init__(self, grace: float) -> None:
        self._grace = grace
        self._since: dict[str, float] = {}
        self._in_grace: frozenset[str] = frozenset()

    def set_missing(self, names: set[str], now: float) -> None:
        """Set the names that are missing now."""
        self._since = {name: self._since.get(name, now) for name in names}
        self._update(now)

    @property
    def names(self) -> frozenset[str]:
        """The names within their grace period."""
        return self._in_grace

    def tick(self, now: float) -> bool:
        """Whether a grace period has ended since the last call."""
        before = self._in_grace
        self._update(now)
        return self._in_grace != before

    def _update(self, now: float) -> None:
        self._in_grace = frozenset(n for n, since in self._since.items() if now - since < self._grace)


class Viewer:
    """Computes the view of one node from the topology and the time."""

    def __init__(self, name: str, dead_grace: float) -> None:
        self._name = name
        self._grace = dead_grace
        self._nodes = _GracePeriods(dead_grace)
        self._clusters = _GracePeriods(dead_grace)
        self._topology = Topology()
        self._left_since = float("inf")
        self.view = View(name)

    def topology_changed(self, topology: Topology, now: float, utc: float | None = None) -> View:
        """Return the view of a new topology.

        Without `utc`, a node that left has a grace period only if this node knew it before.
        """
        self._topology = topology
        self._left_since = float("inf") if utc is None else utc - self._grace
        before, me = self.view, topology.member(self._name)
        cluster = me.cluster if me else before.cluster
        known = set(before.peers()) if cluster == before.cluster else set()
        self._nodes.set_missing(set(self._missing_nodes(cluster, known)), now)
        self._clusters.set_missing(set(self._missing_clusters(cluster, set(before.others))), now)
        return self._update(cluster)

    def tick(self, now: float) -> View | None:
        """Return the new view if a grace period has ended, else None."""
        changed = [each.tick(now) for each in (self._nodes, self._clusters)]
        return self._update(self.view.cluster) if any(changed) else None

    def cluster_of(self, name: str) -> str | None:
        """Return the cluster of a node; None for an unknown node."""
        member = self._topology.member(name)
        return member.cluster if member else None

    def _update(self, cluster: str | None) -> View:
        alive = {member.name: member.since for member in self._of(cluster) if member.alive}
        alive.pop(self._name, None)
        living = {each.name for each in self._topology.clusters if _is_alive(each)} | self._clusters.names
        self.view = View(
            self._name,
            cluster,
            self._representative(cluster),
            alive,
            self._nodes.names,
            {name: self._representative(name) for name in sorted(living - {cluster})} if cluster else {},
        )
        return self.view

    def _of(self, cluster: str | None) -> tuple[Member, ...]:
        found = self._topology.cluster(cluster) if cluster is not None else None
        return found.nodes if found else ()

    def _missing_nodes(self, cluster: str | None, known: set[str]) -> Iterator[str]:
        """Yield the nodes that are dead, and known nodes that left or are not listed."""
        for member in self._of(cluster):
            missing = not member.alive and (self._may_come_back(member) or member.name in known)
            if missing and member.name != self._name:
                yield member.name
        yield from (name for name in known if self._topology.member(name) is None)

    def _may_come_back(self, member: Member) -> bool:
        return member.state == "dead" or (member.state == "left" and member.since > self._left_since)

    def _missing_clusters(self, own: str | None, known: set[str]) -> Iterator[str]:
        for each in self._topology.clusters:
            missing = each.name in known or any(map(self._may_come_back, each.nodes))
            if each.name != own and not _is_alive(each) and missing:
                yield each.name
        yield from (name for name in known if self._topology.cluster(name) is None and name != own)

    def _representative(self, cluster: str | None) -> str | None:
        found = self._topology.representative(cluster) if cluster is not None else None
        return found.name if found else None


def _is_alive(cluster: Cluster) -> bool:
    return any(node.alive for node in cluster.nodes)
