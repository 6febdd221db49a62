"""The registry at work: with clocks, on disk, watched for silence, and waited for by those who follow it.

Every change is saved soon after, and wakes the streams to the nodes. A node whose stream broke, or that a
peer cannot reach, is looked after at once, so that a process that was killed is known to be dead well before
its heartbeats are missed. One whose heartbeat is overdue is looked after, too: where its host answers nothing
at all, two missed ones are enough, since even a process that hangs has a kernel that answers.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections import OrderedDict
from collections.abc import Coroutine
from typing import Any

from hpwsn.routing.topology.topology import Topology, changes
from hpwsn.settings import Config
from hpwsn_admin.probe import is_gone, is_silent
from hpwsn_admin.registry import Announcement, NameTaken, NotRegistered, Now, Record, Registry
from hpwsn_admin.state_file import Store

log = logging.getLogger(__name__)

SETTLE = 0.02
"""Seconds in which several changes become one push and one save, and more where a push is much work."""
PACE = 50_000_000
"""Bytes a second that all nodes together are told at most, save that nobody waits longer than a heartbeat."""
_REMEMBERED = 100
"""Versions since which changes can be told; who is further behind is told all."""
_DOUBT = 0.2
"""How long, in heartbeats, an attempt to connect to a host that may be gone may take."""
_LOOKS = (0.0, 0.05, 0.1, 0.2, 0.4)
"""When a node is looked after, in heartbeats: the sockets of a dying process do not all close at once."""


class Members:
    """All nodes that there are, and who wants to know."""

    def __init__(self, config: Config, store: Store) -> None:
        self.registry = Registry(
            heartbeat=config.cluster.heartbeat,
            missed=config.cluster.missed,
            forget=config.admin.forget,
            limit=config.admin.limit,
            now=_now(),
        )
        self._store = store
        self._changed = asyncio.Event()
        self._pushed = asyncio.Event()
        self._shown = Topology()
        self._text = b""
        self._last_told = 0
        self._past: OrderedDict[int, Topology] = OrderedDict()
        self._news: dict[int, bytes] = {}
        self._doubted: set[str] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    def start(self) -> None:
        """Take the former state on, see who of it is still there, and watch."""
        state = self._store.load()
        if state is not None:
            try:
                self.registry.restore(state, _now())
            except (KeyError, TypeError, ValueError) as error:
                self._store.set_aside(error)
        self._show()
        for record in self.registry:
            if record.alive:
                self.look_after(record)
        self._spawn(self._watch())
        self._spawn(self._publish())

    async def close(self) -> None:
        """Stop, with everything on disk."""
        tasks = tuple(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._store.save(self.registry.dump())
        self._store.close()

    @property
    def topology(self) -> Topology:
        """What everybody is told."""
        return self._shown

    @property
    def text(self) -> bytes:
        """The same as JSON."""
        return self._text

    def news(self, told: int | None) -> bytes:
        """What to tell one who has been told a version: a beat, what has changed since, or all."""
        version = self._shown.version
        if told == version:
            return b'{"beat":%d}' % version
        before = None if told is None else self._past.get(told)
        if told is None or before is None:
            return b'{"topology":%s}' % self._text
        if told not in self._news:
            self._news[told] = json.dumps(changes(before, self._shown), separators=(",", ":")).encode()
        return self._news[told]

    async def register(self, announced: Announcement) -> Record:
        """Take a node in; a name that a dead process still seems to hold is looked after first."""
        former = self.registry.find(announced.name)
        try:
            record = self.registry.register(announced, _now())
        except NameTaken as taken:
            if not await is_gone(taken.holder):
                log.warning("%s at %s is refused: %s", announced.name, announced.url, taken)
                raise
            self._lose(taken.holder)
            record = self.registry.register(announced, _now())
        if former is not None and former.alive and former.session != record.session:
            log.warning("node %s began anew before its former process was seen to end", record.name)
        self._note_change()
        await self.told()
        return record

    def heartbeat(self, name: str, session: str) -> None:
        """Note that a node lives."""
        self.registry.heartbeat_of(name, session, _now())

    def leave(self, name: str, session: str) -> None:
        """A node stops; without a session, an operator has one that is gone forgotten."""
        if session:
            self.registry.leave(name, session, _now())
            log.info("node %s has left", name)
        else:
            self.registry.forget(name)
            log.info("node %s is forgotten", name)
        self._note_change()

    def live(self, name: str, session: str) -> Record:
        """The node that lives under this session."""
        record = self.registry.find(name)
        if record is None or not record.alive or record.session != session:
            raise NotRegistered(name)
        return record

    def look_after(self, record: Record) -> None:
        """See whether a node is gone, soon and several times."""
        self._spawn(self._look(record))

    async def _look(self, record: Record) -> None:
        for pause in _LOOKS:
            await asyncio.sleep(pause * self.registry.heartbeat)
            if self.registry.find(record.name) is not record:
                return
            if await is_gone(record):
                self._lose(record)
                return

    def _lose(self, record: Record, why: str = "nothing listens there") -> None:
        self.registry.lost(record.name, record.session, _now())
        if self.registry.find(record.name) is not record:
            log.warning("node %s at %s is dead: %s", record.name, record.url, why)
            self._note_change()

    def _doubt_late(self) -> None:
        for record in self.registry.late(_now()):
            if record.name not in self._doubted:
                self._doubted.add(record.name)
                self._spawn(self._doubt(record))

    async def _doubt(self, record: Record) -> None:
        """See whether the host of a node whose heartbeat is overdue answers, until two are missed."""
        within = _DOUBT * self.registry.heartbeat
        try:
            while await is_silent(record, within):
                if self.registry.silent(record, _now()):
                    self._lose(record, "it was not heard, and its host does not answer")
                    return
                await asyncio.sleep(within / 4)
        finally:
            self._doubted.discard(record.name)

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(self.registry.heartbeat / 4)
            before = self.registry.version
            for record in self.registry.tick(_now()):
                log.warning("node %s at %s is dead: it was not heard", record.name, record.url)
            if self.registry.version != before:
                self._note_change()
            self._doubt_late()

    def _note_change(self) -> None:
        if self.registry.version != self._shown.version:
            self._changed.set()

    async def _publish(self) -> None:
        """Tell and save what has changed, several changes at once."""
        while True:
            await self._changed.wait()
            await asyncio.sleep(SETTLE + min(self._last_told / PACE, self.registry.heartbeat))
            self._changed.clear()
            self._show()
            try:
                await asyncio.to_thread(self._store.save, self.registry.dump())
            except OSError as error:
                log.error("the state cannot be saved in %s: %s", self._store.path, error)

    def _show(self) -> None:
        """Make the registry's present state the one that is told."""
        if self._shown.version == self.registry.version:
            return
        before = self._shown.version
        self._past[before] = self._shown
        if len(self._past) > _REMEMBERED:
            self._past.popitem(last=False)
        self._news.clear()
        self._shown = self.registry.topology()
        self._text = json.dumps(self._shown.encode(), separators=(",", ":")).encode()
        self._last_told = len(self.registry) * len(self.news(before))
        pushed, self._pushed = self._pushed, asyncio.Event()
        pushed.set()

    async def told(self) -> None:
        """Wait until what the registry holds now has been told."""
        while self._shown.version < self.registry.version:
            await self._pushed.wait()

    async def newer(self, version: int, within: float) -> None:
        """Wait until the topology is another than that of a version, or the time is over."""
        if self._shown.version != version:
            return
        try:
            async with asyncio.timeout(within):
                await self._pushed.wait()
        except TimeoutError:
            return

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("a part of the admin node failed", exc_info=error)


def _now() -> Now:
    return Now(time.monotonic(), time.time())
