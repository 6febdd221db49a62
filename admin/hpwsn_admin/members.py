"""Membership of the clusters: the registry with clocks, storage, failure detection and updates to the nodes.

Each change is saved and sent to the nodes after a short delay. A node is probed immediately when its stream
breaks or a peer cannot reach it, so a killed process is detected before its heartbeats are missed. A node
whose heartbeat is overdue is probed too. If its host does not answer at all, the node is dead after two
missed heartbeats: the kernel of a host that runs answers even for a process that hangs.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections import OrderedDict
from collections.abc import Coroutine
from typing import Any

from hpwsn.listeners import Listeners
from hpwsn.routing.membership.node_report import NodeReport
from hpwsn.routing.topology.topology import Topology, changes
from hpwsn.settings import Config
from hpwsn_admin.probe import is_gone, is_silent
from hpwsn_admin.registry import Announcement, NameTaken, NotRegistered, Now, Record, Registry
from hpwsn_admin.state_file import StateFile

log = logging.getLogger(__name__)

BATCH_DELAY = 0.02
"""Minimum seconds between a change and its update; changes within this time share one update and one save."""
MAX_UPDATE_RATE = 50_000_000
"""Bytes a second of all updates together; an update is still delayed by at most one heartbeat."""
_KEPT_VERSIONS = 100
"""Number of old versions from which an update can be computed; older ones get the full topology."""
_PROBE_TIMEOUT = 0.2
"""Timeout of a probe of a host that may be down, in heartbeats."""
_PROBE_DELAYS = (0.0, 0.05, 0.1, 0.2, 0.4)
"""Delays before each probe, in heartbeats: the sockets of a dying process do not all close at once."""
_REASONS = {
    "refused": "its address refuses connections",
    "silent": "its heartbeats are missing, and its host does not answer",
    "missed": "its heartbeats are missing",
}


class Members:
    """All nodes of all clusters; publishes a topology after each change."""

    def __init__(self, config: Config, state_file: StateFile) -> None:
        self.registry = Registry(
            heartbeat=config.cluster.heartbeat,
            missed=config.cluster.missed,
            forget=config.admin.forget,
            limit=config.admin.limit,
            now=_now(),
        )
        self._state_file = state_file
        self._changed = asyncio.Event()
        self._published = asyncio.Event()
        self._topology = Topology()
        self._text = b""
        self._last_update_bytes = 0
        self._previous: OrderedDict[int, Topology] = OrderedDict()
        self._updates: dict[int, bytes] = {}
        self._reports: dict[str, NodeReport] = {}
        self._probing: set[str] = set()
        self.probes = {"refused": 0, "answered": 0, "silent": 0}
        """Probes by result."""
        self.deaths = {"refused": 0, "silent": 0, "missed": 0}
        """Nodes found dead: by a refused or silent probe, or by missed heartbeats."""
        self.topology_changed: Listeners[Topology] = Listeners("a new topology")
        self._tasks: set[asyncio.Task[None]] = set()

    def start(self) -> None:
        """Restore the saved state, probe its nodes, and start failure detection."""
        state = self._state_file.load()
        if state is not None:
            try:
                self.registry.restore(state, _now())
            except (KeyError, TypeError, ValueError) as error:
                self._state_file.set_aside(error)
        self._publish()
        for record in self.registry:
            if record.alive:
                self.probe(record)
        self._spawn(self._watch())
        self._spawn(self._publish_changes())

    async def close(self) -> None:
        """Stop, and save the state."""
        tasks = tuple(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._state_file.save(self.registry.dump())
        self._state_file.close()

    @property
    def topology(self) -> Topology:
        """The published topology."""
        return self._topology

    @property
    def text(self) -> bytes:
        """The published topology as JSON."""
        return self._text

    def update_since(self, sent: int | None) -> bytes:
        """The next line for a node with version `sent`: a beat, the changes since, or the topology."""
        version = self._topology.version
        if sent == version:
            return b'{"beat":%d}' % version
        before = None if sent is None else self._previous.get(sent)
        if sent is None or before is None:
            return b'{"topology":%s}' % self._text
        if sent not in self._updates:
            self._updates[sent] = json.dumps(changes(before, self._topology), separators=(",", ":")).encode()
        return self._updates[sent]

    async def register(self, announcement: Announcement) -> Record:
        """Register a node; if its name belongs to a live node, probe that node first."""
        former = self.registry.find(announcement.name)
        try:
            record = self.registry.register(announcement, _now())
        except NameTaken as taken:
            if not await self._is_gone(taken.holder):
                log.warning(
                    "registration of %s at %s is rejected: %s", announcement.name, announcement.url, taken
                )
                raise
            self._mark_dead(taken.holder)
            record = self.registry.register(announcement, _now())
        if former is not None and former.alive and former.session != record.session:
            log.warning(
                "node %s registered again before its former process was known to be dead", record.name
            )
        self._schedule_update()
        await self.wait_until_published()
        return record

    def heartbeat(self, name: str, session: str, report: NodeReport | None = None) -> None:
        """Record a heartbeat of a node, and what it reports about itself."""
        self.registry.heartbeat_of(name, session, _now())
        if report is None:
            self._reports.pop(name, None)
        else:
            self._reports[name] = report

    def report(self, name: str) -> NodeReport | None:
        """The last report of a node; None if its last heartbeat had none."""
        return self._reports.get(name)

    def heartbeat_age(self, name: str) -> float | None:
        """Seconds since a node was last heard; None if it was not heard since this process began."""
        return self.registry.heartbeat_age(name, _now())

    def oldest_heartbeat(self) -> float:
        """Seconds since the last heartbeat of the live node that has been silent longest; 0 without nodes."""
        now = _now()
        ages = [self.registry.heartbeat_age(record.name, now) for record in self.registry if record.alive]
        return max((age for age in ages if age is not None), default=0.0)

    def leave(self, name: str, session: str) -> None:
        """A node leaves; without a session, an operator removes a node that is dead or has left."""
        if session:
            self.registry.leave(name, session, _now())
            log.info("node %s has left", name)
        else:
            self.registry.forget(name)
            log.info("node %s is removed", name)
        self._schedule_update()

    def live(self, name: str, session: str) -> Record:
        """The live node with this session; NotRegistered if there is none."""
        record = self.registry.find(name)
        if record is None or not record.alive or record.session != session:
            raise NotRegistered(name)
        return record

    def probe(self, record: Record) -> None:
        """Probe a node several times in the background, and mark it dead if it is gone."""
        self._spawn(self._probe_node(record))

    async def _probe_node(self, record: Record) -> None:
        for pause in _PROBE_DELAYS:
            await asyncio.sleep(pause * self.registry.heartbeat)
            if self.registry.find(record.name) is not record:
                return
            if await self._is_gone(record):
                self._mark_dead(record)
                return

    async def _is_gone(self, record: Record) -> bool:
        gone = await is_gone(record)
        self.probes["refused" if gone else "answered"] += 1
        return gone

    async def _is_silent(self, record: Record, within: float) -> bool:
        silent = await is_silent(record, within)
        self.probes["silent" if silent else "answered"] += 1
        return silent

    def _mark_dead(self, record: Record, kind: str = "refused") -> None:
        self.registry.mark_dead(record.name, record.session, _now())
        if self.registry.find(record.name) is not record:
            self.deaths[kind] += 1
            log.warning("node %s at %s is dead: %s", record.name, record.url, _REASONS[kind])
            self._schedule_update()

    def _probe_overdue(self) -> None:
        for record in self.registry.overdue(_now()):
            if record.name not in self._probing:
                self._probing.add(record.name)
                self._spawn(self._probe_host(record))

    async def _probe_host(self, record: Record) -> None:
        """Probe the host of a node with an overdue heartbeat until it answers or the node is dead."""
        within = _PROBE_TIMEOUT * self.registry.heartbeat
        try:
            while await self._is_silent(record, within):
                if self.registry.is_silent(record, _now()):
                    self._mark_dead(record, "silent")
                    return
                await asyncio.sleep(within / 4)
        finally:
            self._probing.discard(record.name)

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(self.registry.heartbeat / 4)
            before = self.registry.version
            for record in self.registry.tick(_now()):
                self.deaths["missed"] += 1
                log.warning("node %s at %s is dead: %s", record.name, record.url, _REASONS["missed"])
            if self.registry.version != before:
                self._schedule_update()
            self._probe_overdue()

    def _schedule_update(self) -> None:
        if self.registry.version != self._topology.version:
            self._changed.set()

    async def _publish_changes(self) -> None:
        """Publish and save changes, several at a time."""
        while True:
            await self._changed.wait()
            await asyncio.sleep(
                BATCH_DELAY + min(self._last_update_bytes / MAX_UPDATE_RATE, self.registry.heartbeat)
            )
            self._changed.clear()
            self._publish()
            try:
                await asyncio.to_thread(self._state_file.save, self.registry.dump())
            except OSError as error:
                log.error("cannot save the state in %s: %s", self._state_file.path, error)

    def _publish(self) -> None:
        """Make the registry's present state the published topology."""
        if self._topology.version == self.registry.version:
            return
        before = self._topology.version
        self._previous[before] = self._topology
        if len(self._previous) > _KEPT_VERSIONS:
            self._previous.popitem(last=False)
        self._updates.clear()
        self._forget_reports()
        self._topology = self.registry.topology()
        self._text = json.dumps(self._topology.encode(), separators=(",", ":")).encode()
        self._last_update_bytes = len(self.registry) * len(self.update_since(before))
        published, self._published = self._published, asyncio.Event()
        published.set()
        self.topology_changed(self._topology)

    def _forget_reports(self) -> None:
        for name in [name for name in self._reports if self.registry.find(name) is None]:
            del self._reports[name]

    async def wait_until_published(self) -> None:
        """Wait until the registry's present state is published."""
        while self._topology.version < self.registry.version:
            await self._published.wait()

    async def wait_for_change(self, version: int, within: float) -> None:
        """Wait until the published version differs from `version`, at most `within` seconds."""
        if self._topology.version != version:
            return
        try:
            async with asyncio.timeout(within):
                await self._published.wait()
        except TimeoutError:
            return

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._task_done)

    def _task_done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("a background task of the admin node failed", exc_info=error)


def _now() -> Now:
    return Now(time.monotonic(), time.time())
