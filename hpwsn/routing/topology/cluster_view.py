"""The topology as one node sees it: its cluster, who represents it, and the other clusters. Pure.

Owns how long a node or cluster that is dead, or is not listed any more, is waited for: what is reliable is
kept for it that long, and its interest counts. One that left is waited for as long where this node knew it
before, or starts shortly after, since a node that is stopped and started has its subscriptions still; one
that left longer ago is not.
The work follows the number of clusters and of nodes in the own one, not that of all nodes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from hpwsn.routing.topology.topology import Cluster, Member, Topology


@dataclass(frozen=True, slots=True)
class View:
    """What a node sees; itself is in none of the sets."""

    name: str
    cluster: str | None = None
    representative: str | None = None
    alive: Mapping[str, float] = field(default_factory=dict)
    """The other nodes of its cluster, with when each registered."""
    in_grace: frozenset[str] = frozenset()
    """Nodes of its cluster that are dead, left or not listed, and may come back."""
    others: Mapping[str, str | None] = field(default_factory=dict)
    """The other clusters, each with its representative where it has one."""

    @property
    def is_representative(self) -> bool:
        """Whether this node represents its cluster."""
        return self.representative == self.name

    def peers(self) -> Iterator[str]:
        """The other nodes of the cluster, with those that are waited for."""
        yield from self.alive
        yield from self.in_grace


class _GracePeriods:
    """Since when each of some names has been missed."""

    def __init__(self, grace: float) -> None:
        self._grace = grace
        self._since: dict[str, float] = {}
        self._in_grace: frozenset[str] = frozenset()

    def set_missing(self, names: set[str], now: float) -> None:
        """These are missed now, and no others."""
        self._since = {name: self._since.get(name, now) for name in names}
        self._update(now)

    @property
    def names(self) -> frozenset[str]:
        """Those that are waited for."""
        return self._in_grace

    def tick(self, now: float) -> bool:
        """Whether one of them has been waited for long enough."""
        before = self._in_grace
        self._update(now)
        return self._in_grace != before

    def _update(self, now: float) -> None:
        self._in_grace = frozenset(n for n, since in self._since.items() if now - since < self._grace)


class Viewer:
    """Makes the view of one node from topologies and time."""

    def __init__(self, name: str, dead_grace: float) -> None:
        self._name = name
        self._grace = dead_grace
        self._nodes = _GracePeriods(dead_grace)
        self._clusters = _GracePeriods(dead_grace)
        self._topology = Topology()
        self._left_since = float("inf")
        self.view = View(name)

    def topology_changed(self, topology: Topology, now: float, utc: float | None = None) -> View:
        """The view of a topology; without the time of day nobody knows who has left just now."""
        self._topology = topology
        self._left_since = float("inf") if utc is None else utc - self._grace
        before, me = self.view, topology.member(self._name)
        cluster = me.cluster if me else before.cluster
        known = set(before.peers()) if cluster == before.cluster else set()
        self._nodes.set_missing(set(self._missing_nodes(cluster, known)), now)
        self._clusters.set_missing(set(self._missing_clusters(cluster, set(before.others))), now)
        return self._update(cluster)

    def tick(self, now: float) -> View | None:
        """The view where time has changed it: one that was waited for no longer is."""
        changed = [each.tick(now) for each in (self._nodes, self._clusters)]
        return self._update(self.view.cluster) if any(changed) else None

    def cluster_of(self, name: str) -> str | None:
        """The cluster of a node."""
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
        """The nodes of the cluster that are listed as dead, or were known and left or are not listed."""
        for member in self._of(cluster):
            set_missing = not member.alive and (self._may_come_back(member) or member.name in known)
            if set_missing and member.name != self._name:
                yield member.name
        yield from (name for name in known if self._topology.member(name) is None)

    def _may_come_back(self, member: Member) -> bool:
        return member.state == "dead" or (member.state == "left" and member.since > self._left_since)

    def _missing_clusters(self, own: str | None, known: set[str]) -> Iterator[str]:
        for each in self._topology.clusters:
            set_missing = each.name in known or any(map(self._may_come_back, each.nodes))
            if each.name != own and not _is_alive(each) and set_missing:
                yield each.name
        yield from (name for name in known if self._topology.cluster(name) is None and name != own)

    def _representative(self, cluster: str | None) -> str | None:
        found = self._topology.representative(cluster) if cluster is not None else None
        return found.name if found else None


def _is_alive(cluster: Cluster) -> bool:
    return any(node.alive for node in cluster.nodes)
