"""The topology: which nodes there are, in which clusters, and who represents each. Pure.

Owns the form of the Admin API's `GET /api/topology` (ARCHITECTURE, Exact forms) as frozen data, to be
read and written. A dead node may stay listed, so that what is kept for it can wait; one that left may as
well. Refuses what has not that form, a name that is there twice, and a representative that is no node of
its cluster.

What differs between two topologies, for those who have the first: whole clusters, changed or gone. Pure.

A cluster is told whole, since it is small and its order and representative change with it; the rest of a
large topology is not sent, and not parsed, for the sake of one node.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final, Literal, cast, get_args


def changes(before: Topology, after: Topology) -> dict[str, Any]:
    """What to tell one who has `before`, so that it has `after`."""
    changed = [one for one in after.clusters if before.cluster(one.name) != one]
    gone = [one.name for one in before.clusters if after.cluster(one.name) is None]
    return {
        "after": before.version,
        "topology": Topology(after.version, tuple(changed)).encode(),
        "gone": gone,
    }


def apply_changes(before: Topology, change: Mapping[str, Any]) -> Topology:
    """The topology after the changes; MalformedTopology where they are changes of another."""
    if change.get("after") != before.version:
        raise MalformedTopology(
            f"these are changes of version {change.get('after')}, not of {before.version}"
        )
    gone = change.get("gone", [])
    if not isinstance(gone, list):
        raise MalformedTopology("'gone' is a list of names of clusters")
    partly = Topology.parse(change.get("topology"))
    left = {one.name: one for one in before.clusters if one.name not in gone}
    left.update((one.name, one) for one in partly.clusters)
    return Topology(partly.version, tuple(left[name] for name in sorted(left)))


State = Literal["alive", "dead", "left"]
_STATES = get_args(State)

MAX_NAME = 255
"""Bytes of a name in UTF-8, so that a message can hold one after a single byte."""


class MalformedTopology(ValueError):
    """What should be a topology is none, with what is wrong with it."""


@dataclass(frozen=True, slots=True)
class Member:
    """A node as the admin node knows it; links reach it at `host` and `port`, by UDP and by TCP.

    `version` is of its software; `since` is when it registered, in seconds since the epoch.
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
        """Whether it is there to be sent to."""
        return self.state == "alive"

    @classmethod
    def parse(cls, document: object, cluster: str) -> Member:
        """Read one entry of a cluster's `nodes`; most are as they were in the topology before."""
        entry = _object(document, "a node")
        values = [entry.get(key, _ABSENT) for key in _FIELDS]
        try:
            return _read_member(cluster, *values)
        except TypeError:  # a list or an object, which is none of the values
            return _read_member.__wrapped__(cluster, *values)

    def encode(self) -> dict[str, Any]:
        """The entry of a cluster's `nodes`."""
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
        raise MalformedTopology(f"the state {state!r} is none of {', '.join(_STATES)}")
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
    """A cluster, who represents it (None where nobody can) and its nodes in the order of registration."""

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
            raise MalformedTopology(f"{representative!r}, who represents {name!r}, is no node of it")
        return cls(name, representative, nodes)

    def encode(self) -> dict[str, Any]:
        """The entry of `clusters`."""
        nodes = [node.encode() for node in self.nodes]
        return {"name": self.name, "representative": self.representative, "nodes": nodes}


@dataclass(frozen=True, slots=True)
class Topology:
    """All clusters; `version` grows with every change, as long as the admin node keeps its state."""

    version: int = 0
    clusters: tuple[Cluster, ...] = ()
    _members: dict[str, Member] = field(init=False, compare=False, repr=False)
    _clusters: dict[str, Cluster] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        members = [node for cluster in self.clusters for node in cluster.nodes]
        object.__setattr__(self, "_members", {node.name: node for node in members})
        object.__setattr__(self, "_clusters", {cluster.name: cluster for cluster in self.clusters})
        if len(self._members) != len(members) or len(self._clusters) != len(self.clusters):
            raise MalformedTopology("a name of a node or of a cluster is there twice")

    @classmethod
    def parse(cls, document: object) -> Topology:
        """Read the JSON object of the Admin API."""
        entry = _object(document, "a topology")
        version = entry.get("version")
        if type(version) is not int or version < 0:
            raise MalformedTopology(f"the version of a topology is a whole number, not {version!r}")
        return cls(version, tuple(Cluster.parse(each) for each in _list(entry, "clusters")))

    def encode(self) -> dict[str, Any]:
        """The JSON object of the Admin API."""
        return {"version": self.version, "clusters": [cluster.encode() for cluster in self.clusters]}

    def __iter__(self) -> Iterator[Member]:
        return iter(self._members.values())

    def __len__(self) -> int:
        return len(self._members)

    def member(self, name: str) -> Member | None:
        """The node of this name, whatever its state."""
        return self._members.get(name)

    def cluster(self, name: str) -> Cluster | None:
        """The cluster of this name."""
        return self._clusters.get(name)

    def cluster_of(self, name: str) -> Cluster | None:
        """The cluster that this node belongs to."""
        member = self._members.get(name)
        return self._clusters[member.cluster] if member else None

    def representative(self, cluster: str) -> Member | None:
        """The node that represents the cluster, where it is alive."""
        found = self._clusters.get(cluster)
        member = self._members.get(found.representative) if found and found.representative else None
        return member if member and member.alive else None


def check_name(name: str) -> str:
    """The name of a node or cluster, where it can stand in a message and in a URL's path."""
    if not name or len(name.encode("utf-8", "replace")) > MAX_NAME or not name.isprintable() or "/" in name:
        raise MalformedTopology(
            f"{name[:80]!r} is no name; use up to {MAX_NAME} bytes of printable characters without '/'"
        )
    return name


def _object(document: object, what: str) -> Mapping[str, Any]:
    if not isinstance(document, Mapping):
        raise MalformedTopology(f"{what} is a JSON object, not {str(document)[:80]!r}")
    return document


def _list(entry: Mapping[str, Any], key: str) -> list[Any]:
    value = entry.get(key, [])
    if not isinstance(value, list):
        raise MalformedTopology(f"{key!r} is a list, not {str(value)[:80]!r}")
    return value


def _text(entry: Mapping[str, Any], key: str, default: str | None = None) -> str:
    value = entry.get(key, default)
    if not isinstance(value, str):
        raise MalformedTopology(f"{key!r} is a text, not {str(value)[:80]!r}")
    return value


def _port(entry: Mapping[str, Any]) -> int:
    value = entry.get("port")
    if type(value) is not int or not 0 < value < 65536:
        raise MalformedTopology(f"'port' is a number from 1 to 65535, not {str(value)[:80]!r}")
    return value


def _number(entry: Mapping[str, Any], key: str) -> float:
    value = entry.get(key, 0.0)
    if type(value) not in (int, float):
        raise MalformedTopology(f"{key!r} is a number, not {str(value)[:80]!r}")
    return float(value)
