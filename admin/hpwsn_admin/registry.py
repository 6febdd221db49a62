"""The members of all clusters, as they announced themselves and as they are heard: the admin's one truth.

Pure: the time is an argument, and nobody is told; whoever changes the registry asks afterwards whether its
version has changed. The first of a cluster to register represents it, and the next in the order of
registration takes over when it dies or leaves. A name belongs to one live node: the same node (by the
identity in its data directory) takes it back at once, another is refused until the first is dead or has left.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from hpwsn.routing.topology.topology import Cluster, Member, State, Topology

ALIVE: State = "alive"
DEAD: State = "dead"
LEFT: State = "left"
LATE = 1.25
"""Heartbeats without a word of a node after which one looks whether its host is there."""
SILENT = 1.75
"""And after which it is dead where its host has not answered since: well within two of them."""


class RegistryError(Exception):
    """A change that the registry refuses; the words are for the node's operator."""


class NameTaken(RegistryError):
    """Another live node has this name."""

    def __init__(self, holder: Record) -> None:
        super().__init__(
            f"the name {holder.name!r} is taken by a live node of cluster {holder.cluster!r} at {holder.url};"
            " give this node another with --name, or stop that one"
        )
        self.holder = holder


class NotRegistered(RegistryError):
    """No such node lives here; it must register first."""

    def __init__(self, name: str) -> None:
        super().__init__(f"node {name!r} is not registered here with this session; register")


class Full(RegistryError):
    """There are as many nodes as there may be."""

    def __init__(self, limit: int) -> None:
        super().__init__(f"{limit} nodes are registered, which is the limit (admin.limit); raise it")


@dataclass(frozen=True, slots=True)
class Now:
    """One moment on both clocks: one that only runs, for spans, and one that tells the time of day."""

    running: float
    utc: float


@dataclass(frozen=True, slots=True)
class Announcement:
    """What a node says of itself; `identity` lasts like its data directory, `session` like its process."""

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
    """A node as the registry has it; `turn` is its place in the order of registration."""

    state: State
    since: float
    turn: int

    @property
    def alive(self) -> bool:
        """Whether it counts as a part of its cluster."""
        return self.state == ALIVE

    def member(self) -> Member:
        """What others are told about it."""
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
    """Who is there."""

    def __init__(
        self, *, heartbeat: float, missed: int = 3, forget: float = 86_400.0, limit: int = 10_000, now: Now
    ) -> None:
        self.heartbeat = heartbeat
        self.missed = missed
        self._forget = forget
        self._limit = limit
        self._records: dict[str, Record] = {}
        self._heard: dict[str, float] = {}
        self._turn = 0
        self._looked = now.running
        # An admin whose state was lost must not repeat the versions of its former life.
        self.version = int(now.utc)

    def register(self, announced: Announcement, now: Now) -> Record:
        """Take a node in, or in again; one that was known to live all the while keeps its turn."""
        known = self._records.get(announced.name)
        if known is not None and known.alive and known.identity != announced.identity:
            raise NameTaken(known)
        if known is None and len(self._records) >= self._limit and not self._drop_oldest():
            raise Full(self._limit)
        self._heard[announced.name] = now.running
        if known is not None and known.alive and _same(known, announced):
            return known
        self._turn += 1
        record = _record(announced, now.utc, self._turn)
        self._put(record)
        return record

    def heartbeat_of(self, name: str, session: str, now: Now) -> None:
        """Note that a node lives."""
        self._live(name, session)
        self._heard[name] = now.running

    def leave(self, name: str, session: str, now: Now) -> None:
        """A node says that it stops; one that was given up a moment before may say so, too."""
        record = self._records.get(name)
        if record is None or record.session != session or record.state == LEFT:
            raise NotRegistered(name)
        self._put(replace(record, state=LEFT, since=now.utc))

    def lost(self, name: str, session: str, now: Now) -> None:
        """A node is known to be gone, as when nothing listens at its address any more."""
        record = self._records.get(name)
        if record is not None and record.alive and record.session == session:
            self._put(replace(record, state=DEAD, since=now.utc))

    def forget(self, name: str) -> None:
        """List a node that died or left no longer."""
        record = self._records.get(name)
        if record is None:
            raise NotRegistered(name)
        if record.alive:
            raise RegistryError(f"node {name!r} is alive: stop it first")
        self._drop(record)

    def tick(self, now: Now) -> list[Record]:
        """Give up those not heard for too long, forget those given up long ago; who has died is returned."""
        self._excuse_own_pause(now)
        silent = [one for one in self if one.alive and now.running >= self._deadline(one)]
        for record in silent:
            self._put(replace(record, state=DEAD, since=now.utc))
        for record in list(self):
            if not record.alive and now.utc - record.since >= self._forget:
                self._drop(record)
        return silent

    def late(self, now: Now) -> list[Record]:
        """Those whose heartbeat is overdue, and who may be gone."""
        after = LATE * self.heartbeat
        return [one for one in self if one.alive and now.running - self._heard[one.name] >= after]

    def silent(self, record: Record, now: Now) -> bool:
        """Whether a node was not heard for so long that it is dead if its host is silent, too."""
        if self.find(record.name) is not record or now.running - self._looked >= self.heartbeat:
            return False
        return now.running - self._heard[record.name] >= SILENT * self.heartbeat

    def _excuse_own_pause(self, now: Now) -> None:
        """While this process stood still, nobody could be heard: that is no fault of theirs."""
        pause = now.running - self._looked - self.heartbeat
        self._looked = now.running
        if pause > 0:
            self._heard = {name: heard + pause for name, heard in self._heard.items()}

    def _deadline(self, record: Record) -> float:
        return self._heard[record.name] + self.missed * self.heartbeat

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
        self._heard.pop(record.name, None)
        self.version += 1

    def _drop_oldest(self) -> bool:
        """Make room by forgetting the one given up longest ago."""
        gone = min((one for one in self if not one.alive), key=lambda one: one.since, default=None)
        if gone is not None:
            self._drop(gone)
        return gone is not None

    def find(self, name: str) -> Record | None:
        """The node of this name, whatever its state."""
        return self._records.get(name)

    def topology(self) -> Topology:
        """What all nodes are told."""
        clusters: dict[str, list[Record]] = {}
        for record in sorted(self, key=lambda one: one.turn):
            clusters.setdefault(record.cluster, []).append(record)
        return Topology(self.version, tuple(_cluster(name, clusters[name]) for name in sorted(clusters)))

    def dump(self) -> dict[str, Any]:
        """The state as JSON has it."""
        fields = Record.__dataclass_fields__
        nodes = [{field: getattr(one, field) for field in fields} for one in self]
        return {"version": self.version, "turn": self._turn, "nodes": nodes}

    def restore(self, dumped: dict[str, Any], now: Now) -> None:
        """Take a former state on; those who lived then have the usual time to be heard again."""
        records = [Record(**node) for node in dumped["nodes"]]
        self._records = {one.name: one for one in records}
        self._heard = {one.name: now.running for one in records}
        self._turn = int(dumped["turn"])
        self.version = max(self.version, int(dumped["version"])) + 1

    def __iter__(self) -> Iterator[Record]:
        return iter(list(self._records.values()))

    def __len__(self) -> int:
        return len(self._records)


def _same(known: Record, announced: Announcement) -> bool:
    fields = Announcement.__dataclass_fields__
    return all(getattr(known, field) == getattr(announced, field) for field in fields)


def _record(announced: Announcement, since: float, turn: int) -> Record:
    given = {field: getattr(announced, field) for field in Announcement.__dataclass_fields__}
    return Record(**given, state=ALIVE, since=since, turn=turn)


def _cluster(name: str, records: list[Record]) -> Cluster:
    representative = next((one.name for one in records if one.alive), None)
    return Cluster(name, representative, tuple(one.member() for one in records))
