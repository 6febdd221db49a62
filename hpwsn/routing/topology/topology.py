"""The topology: the nodes, their clusters, and the representative of each cluster. Pure.

This module owns the JSON form of `GET /api/topology` of the admin node as frozen data. A dead node may stay
listed, so that publications can be kept for it; a node that left may stay listed too. The parser rejects
any other form, duplicate names, and a representative that is not a node of its cluster. `changes` and
`apply_changes` transfer the difference of two topologies as complete clusters, so that one changed node
does not cause a large topology to be sent and parsed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final, Literal, cast, get_args

State = Literal["alive", "dead", "left"]
_STATES = get_args(State)

MAX_NAME = 255
"""The most bytes of a name in UTF-8; messages have one byte for the length."""


class MalformedTopology(ValueError):
    """A document is not a valid topology; the text says why."""


@dataclass(frozen=True, slots=True)
class Member:
    """A node as the admin node knows it; links use `host` and `port` for UDP and TCP.

    `version` is the version of its software; `since` is the time of registration in seconds since the epoch.
    """

    name: str
    cluster: str
    url: str
    host: str
    port: int
    version: str = ""
    state: State = "alive"
    since: float = 0.0

    @property
    def alive(self) -> bool:
        """Whether the node can receive messages."""
        return self.state == "alive"

    @classmethod
    def parse(cls, document: object, cluster: str) -> Member:
        """Read one entry of a cluster's `nodes`; cached, because most entries do not change."""
        entry = _object(document, "a node")
        values = [entry.get(key, _ABSENT) for key in _FIELDS]
        try:
            return _read_member(cluster, *values)
        except TypeError:  # a list or an object cannot be cached, and is not a valid value
            return _read_member.__wrapped__(cluster, *values)

    def encode(self) -> dict[str, Any]:
        """Return the entry of a cluster's `nodes`."""
        return {
            "name": self.name,
            "url": self.url,
            "host": self.host,
            "port": self.port,
            "version": self.version,
            "state": self.state,
            "since": self.since,
        }


_FIELDS = ("name", "url", "host", "port", "version", "state", "since")
_ABSENT: Final = object()


@lru_cache(16384, typed=True)
def _read_member(cluster: str, *values: object) -> Member:
    entry = {key: value for key, value in zip(_FIELDS, values, strict=True) if value is not _ABSENT}
    state = _text(entry, "state", "alive")
    if state not in _STATES:
        raise MalformedTopology(f"the state is {state!r}; it must be one of {', '.join(_STATES)}")
    return Member(
        name=check_name(_text(entry, "name")),
        cluster=cluster,
        url=_text(entry, "url", ""),
        host=_text(entry, "host"),
        port=_port(entry),
        version=_text(entry, "version", ""),
        state=cast(State, state),
        since=_number(entry, "since"),
    )


@dataclass(frozen=True, slots=True)
class Cluster:
    """A cluster, its representative (None without one) and its nodes in the order of registration."""

    name: str
    representative: str | None
    nodes: tuple[Member, ...]

    @classmethod
    def parse(cls, document: object) -> Cluster:
        """Read one entry of `clusters`."""
        entry = _object(document, "a cluster")
        name = check_name(_text(entry, "name"))
        nodes = tuple(Member.parse(each, name) for each in _list(entry, "nodes"))
        representative = entry.get("representative")
        if representative is not None and not any(node.name == representative for node in nodes):
            raise MalformedTopology(
                f"the representative {representative!r} is not a node of cluster {name!r}"
            )
        return cls(name, representative, nodes)

    def encode(self) -> dict[str, Any]:
        """Return the entry of `clusters`."""
        nodes = [node.encode() for node in self.nodes]
        return {"name": self.name, "representative": self.representative, "nodes": nodes}


@dataclass(frozen=True, slots=True)
class Topology:
    """All clusters; `version` increases with every change while the admin node keeps its state."""

    version: int = 0
    clusters: tuple[Cluster, ...] = ()
    _members: dict[str, Member] = field(init=False, compare=False, repr=False)
    _clusters: dict[str, Cluster] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        members = [node for cluster in self.clusters for node in cluster.nodes]
        object.__setattr__(self, "_members", {node.name: node for node in members})
        object.__setattr__(self, "_clusters", {cluster.name: cluster for cluster in self.clusters})
        if len(self._members) != len(members) or len(self._clusters) != len(self.clusters):
            raise MalformedTopology("the topology contains the name of a node or of a cluster twice")

    @classmethod
    def parse(cls, document: object) -> Topology:
        """Read the JSON object of the Admin API."""
        entry = _object(document, "a topology")
        version = entry.get("version")
        if type(version) is not int or version < 0:
            raise MalformedTopology(f"the version is {version!r}; it must be a whole number")
        return cls(version, tuple(Cluster.parse(each) for each in _list(entry, "clusters")))

    def encode(self) -> dict[str, Any]:
        """Return the JSON object of the Admin API."""
        return {"version": self.version, "clusters": [cluster.encode() for cluster in self.clusters]}

    def __iter__(self) -> Iterator[Member]:
        return iter(self._members.values())

    def __len__(self) -> int:
        return len(self._members)

    def member(self, name: str) -> Member | None:
        """Return the node of this name, in any state."""
        return self._members.get(name)

    def cluster(self, name: str) -> Cluster | None:
        """Return the cluster of this name."""
        return self._clusters.get(name)

    def cluster_of(self, name: str) -> Cluster | None:
        """Return the cluster of a node."""
        member = self._members.get(name)
        return self._clusters[member.cluster] if member else None

    def representative(self, cluster: str) -> Member | None:
        """Return the representative of a cluster; None if it is not alive."""
        found = self._clusters.get(cluster)
        member = self._members.get(found.representative) if found and found.representative else None
        return member if member and member.alive else None


def changes(before: Topology, after: Topology) -> dict[str, Any]:
    """Return the changes that turn `before` into `after`, as JSON for a node that has `before`."""
    changed = [one for one in after.clusters if before.cluster(one.name) != one]
    gone = [one.name for one in before.clusters if after.cluster(one.name) is None]
    return {
        "after": before.version,
        "topology": Topology(after.version, tuple(changed)).encode(),
        "gone": gone,
    }


def apply_changes(before: Topology, change: Mapping[str, Any]) -> Topology:
    """Return the topology after the changes; MalformedTopology if they apply to another version."""
    if change.get("after") != before.version:
        raise MalformedTopology(
            f"the changes apply to version {change.get('after')}, and this node has version {before.version}"
        )
    gone = change.get("gone", [])
    if not isinstance(gone, list):
        raise MalformedTopology("'gone' must be a list of names of clusters")
    partly = Topology.parse(change.get("topology"))
    left = {one.name: one for one in before.clusters if one.name not in gone}
    left.update((one.name, one) for one in partly.clusters)
    return Topology(partly.version, tuple(left[name] for name in sorted(left)))


def check_name(name: str) -> str:
    """Return the name of a node or cluster; raise MalformedTopology if messages or URLs cannot contain it."""
    if not name or len(name.encode("utf-8", "replace")) > MAX_NAME or not name.isprintable() or "/" in name:
        raise MalformedTopology(
            f"{name[:80]!r} is not a valid name; use printable characters without '/', up to {MAX_NAME} bytes"
        )
    return name


def _object(document: object, what: str) -> Mapping[str, Any]:
    if not isinstance(document, Mapping):
        raise MalformedTopology(f"{what} must be a JSON object, not {str(document)[:80]!r}")
    return document


def _list(entry: Mapping[str, Any], key: str) -> list[Any]:
    value = entry.get(key, [])
    if not isinstance(value, list):
        raise MalformedTopology(f"{key!r} must be a list, not {str(value)[:80]!r}")
    return value


def _text(entry: Mapping[str, Any], key: str, default: str | None = None) -> str:
    value = entry.get(key, default)
    if not isinstance(value, str):
        raise MalformedTopology(f"{key!r} must be a string, not {str(value)[:80]!r}")
    return value


def _port(entry: Mapping[str, Any]) -> int:
    value = entry.get("port")
    if type(value) is not int or not 0 < value < 65536:
        raise MalformedTopology(f"'port' must be a number from 1 to 65535, not {str(value)[:80]!r}")
    return value


def _number(entry: Mapping[str, Any], key: str) -> float:
    value = entry.get(key, 0.0)
    if type(value) not in (int, float):
        raise MalformedTopology(f"{key!r} must be a number, not {str(value)[:80]!r}")
    return float(value)
