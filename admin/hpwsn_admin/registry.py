"""The registry of the nodes of all clusters, with their states: alive, dead or left.

It does no I/O, and the time is an argument. A caller that changes the registry compares its version before
and after. The first live node in the order of registration represents its cluster. A name belongs to one live
node. The same node, by the identity in its data directory, may register again at any time; another node is
rejected until the first is dead or has left.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from hpwsn.routing.topology.topology import Cluster, Member, State, Topology

ALIVE: State = "alive"
DEAD: State = "dead"
LEFT: State = "left"
OVERDUE_AFTER = 1.25
"""Heartbeat intervals without a heartbeat after which the node's host is probed."""
SILENT_AFTER = 1.75
"""Heartbeat intervals after which a node is dead if its host does not answer; less than two."""


class RegistryError(Exception):
    """A change that the registry rejects; the message is for the node's operator."""


class NameTaken(RegistryError):
    """Another live node has this name."""

    def __init__(self, holder: Record) -> None:
        super().__init__(
            f"the name {holder.name!r} is taken by a live node of cluster {holder.cluster!r} at {holder.url};"
            " give this node another name with --name, or stop that node"
        )
        self.holder = holder


class NotRegistered(RegistryError):
    """No live node has this name and session; it must register first."""

    def __init__(self, name: str) -> None:
        super().__init__(f"node {name!r} is not registered with this session; register it first")


class RegistryFull(RegistryError):
    """The limit of registered nodes is reached."""

    def __init__(self, limit: int) -> None:
        super().__init__(f"{limit} nodes are registered, which is the limit (admin.limit); raise it")


@dataclass(frozen=True, slots=True)
class Now:
    """One moment on two clocks: the monotonic clock for intervals, and UTC in seconds since 1970."""

    monotonic: float
    utc: float


@dataclass(frozen=True, slots=True)
class Announcement:
    """A node's registration; `identity` belongs to its data directory, `session` to its process."""

    name: str
    cluster: str
    url: str
    host: str
    port: int
    version: str
    identity: str
    session: str


@dataclass(frozen=True, slots=True)
class Record(Announcement):
    """A registered node; `turn` is its place in the order of registration."""

    state: State
    since: float
    turn: int

    @property
    def alive(self) -> bool:
        """Whether the node is alive, and so part of its cluster."""
        return self.state == ALIVE

    def member(self) -> Member:
        """The node's entry in the topology."""
        return Member(
            name=self.name,
            cluster=self.cluster,
            url=self.url,
            host=self.host,
            port=self.port,
            version=self.version,
            state=self.state,
            since=self.since,
        )


class Registry:
    """The known nodes; `version` increases with every change."""

    def __init__(
        self, *, heartbeat: float, missed: int = 3, forget: float = 86_400.0, limit: int = 10_000, now: Now
    ) -> None:
        self.heartbeat = heartbeat
        self.missed = missed
        self._forget = forget
        self._limit = limit
        self._records: dict[str, Record] = {}
        self._last_heartbeat: dict[str, float] = {}
        self._heard: dict[str, float] = {}
        self._turn = 0
        self._last_tick = now.monotonic
        # An admin node that lost its state must not repeat versions that it has published before.
        self.version = int(now.utc)

    def register(self, announcement: Announcement, now: Now) -> Record:
        """Register a node; an unchanged node that is alive keeps its record."""
        known = self._records.get(announcement.name)
        if known is not None and known.alive and known.identity != announcement.identity:
            raise NameTaken(known)
        if known is None and len(self._records) >= self._limit and not self._drop_oldest():
            raise RegistryFull(self._limit)
        self._last_heartbeat[announcement.name] = self._heard[announcement.name] = now.monotonic
        if known is not None and known.alive and _is_unchanged(known, announcement):
            return known
        self._turn += 1
        record = _record(announcement, now.utc, self._turn)
        self._put(record)
        return record

    def heartbeat_of(self, name: str, session: str, now: Now) -> None:
        """Record a heartbeat of a node."""
        self._live(name, session)
        self._last_heartbeat[name] = self._heard[name] = now.monotonic

    def leave(self, name: str, session: str, now: Now) -> None:
        """Mark a node as left, on its own request; a node that is marked dead may still leave."""
        record = self._records.get(name)
        if record is None or record.session != session or record.state == LEFT:
            raise NotRegistered(name)
        self._put(replace(record, state=LEFT, since=now.utc))

    def mark_dead(self, name: str, session: str, now: Now) -> None:
        """Mark a node as dead, for example because its address refuses connections."""
        record = self._records.get(name)
        if record is not None and record.alive and record.session == session:
            self._put(replace(record, state=DEAD, since=now.utc))

    def forget(self, name: str) -> None:
        """Remove a node that is dead or has left."""
        record = self._records.get(name)
        if record is None:
            raise NotRegistered(name)
        if record.alive:
            raise RegistryError(f"node {name!r} is alive; stop it first")
        self._drop(record)

    def tick(self, now: Now) -> list[Record]:
        """Mark nodes with missed heartbeats as dead and remove old records; return the newly dead nodes."""
        self._extend_deadlines_after_pause(now)
        silent = [one for one in self if one.alive and now.monotonic >= self._deadline(one)]
        for record in silent:
            self._put(replace(record, state=DEAD, since=now.utc))
        for record in list(self):
            if not record.alive and now.utc - record.since >= self._forget:
                self._drop(record)
        return silent

    def overdue(self, now: Now) -> list[Record]:
        """The live nodes whose heartbeat is overdue."""
        after = OVERDUE_AFTER * self.heartbeat
        return [one for one in self if one.alive and now.monotonic - self._last_heartbeat[one.name] >= after]

    def is_silent(self, record: Record, now: Now) -> bool:
        """Whether the node is dead if its host does not answer either."""
        if self.find(record.name) is not record or now.monotonic - self._last_tick >= self.heartbeat:
            return False
        return now.monotonic - self._last_heartbeat[record.name] >= SILENT_AFTER * self.heartbeat

    def _extend_deadlines_after_pause(self, now: Now) -> None:
        """While this process was suspended it received no heartbeats; do not count that time."""
        pause = now.monotonic - self._last_tick - self.heartbeat
        self._last_tick = now.monotonic
        if pause > 0:
            self._last_heartbeat = {name: time + pause for name, time in self._last_heartbeat.items()}

    def _deadline(self, record: Record) -> float:
        return self._last_heartbeat[record.name] + self.missed * self.heartbeat

    def _live(self, name: str, session: str) -> Record:
        record = self._records.get(name)
        if record is None or not record.alive or record.session != session:
            raise NotRegistered(name)
        return record

    def _put(self, record: Record) -> None:
        self._records[record.name] = record
        self.version += 1

    def _drop(self, record: Record) -> None:
        del self._records[record.name]
        self._last_heartbeat.pop(record.name, None)
        self._heard.pop(record.name, None)
        self.version += 1

    def _drop_oldest(self) -> bool:
        """Remove the record that has been dead or left for the longest time; False if all nodes are alive."""
        gone = min((one for one in self if not one.alive), key=lambda one: one.since, default=None)
        if gone is not None:
            self._drop(gone)
        return gone is not None

    def find(self, name: str) -> Record | None:
        """The node with this name in any state; None if it is unknown."""
        return self._records.get(name)

    def heartbeat_age(self, name: str, now: Now) -> float | None:
        """Seconds since a node was last heard; None if it was not heard since this process began."""
        heard = self._heard.get(name)
        return None if heard is None else now.monotonic - heard

    def topology(self) -> Topology:
        """The topology that nodes receive."""
        clusters: dict[str, list[Record]] = {}
        for record in sorted(self, key=lambda one: one.turn):
            clusters.setdefault(record.cluster, []).append(record)
        return Topology(self.version, tuple(_cluster(name, clusters[name]) for name in sorted(clusters)))

    def dump(self) -> dict[str, Any]:
        """The state as a JSON object."""
        fields = Record.__dataclass_fields__
        nodes = [{field: getattr(one, field) for field in fields} for one in self]
        return {"version": self.version, "turn": self._turn, "nodes": nodes}

    def restore(self, dumped: dict[str, Any], now: Now) -> None:
        """Restore a saved state; its live nodes have the usual time to send a heartbeat."""
        records = [Record(**node) for node in dumped["nodes"]]
        self._records = {one.name: one for one in records}
        self._last_heartbeat = {one.name: now.monotonic for one in records}
        self._turn = int(dumped["turn"])
        self.version = max(self.version, int(dumped["version"])) + 1

    def __iter__(self) -> Iterator[Record]:
        return iter(list(self._records.values()))

    def __len__(self) -> int:
        return len(self._records)


def _is_unchanged(known: Record, announcement: Announcement) -> bool:
    fields = Announcement.__dataclass_fields__
    return all(getattr(known, field) == getattr(announcement, field) for field in fields)


def _record(announcement: Announcement, since: float, turn: int) -> Record:
    given = {field: getattr(announcement, field) for field in Announcement.__dataclass_fields__}
    return Record(**given, state=ALIVE, since=since, turn=turn)


def _cluster(name: str, records: list[Record]) -> Cluster:
    representative = next((one.name for one in records if one.alive), None)
    return Cluster(name, representative, tuple(one.member() for one in records))
