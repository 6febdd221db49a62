"""The doors of a node, from the core's side: starts them, starts again those that end, and has them drain.

A door that ends though nobody asked it to is started again after a pause that grows while that goes on; new
connections meanwhile go to the doors that are left.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from hpwsn.errors import HpwsnError
from hpwsn.workers.accepting import Taking
from hpwsn.workers.core_link import Core, CoreLink
from hpwsn.workers.counts import Counts
from hpwsn.workers.frames import SLACK, BadFrame
from hpwsn.workers.passing import Giver, Taker
from hpwsn.workers.terms import Terms, encode_terms

log = logging.getLogger(__name__)

FIRST_PAUSE = 0.1
LONGEST_PAUSE = 30.0
LIVED = 60.0
"""Seconds after which a door's end is no longer part of a series."""
READY_WITHIN = 30.0
MARGIN = 2.0
"""Seconds beyond the drain time until a door that does not end is killed."""

Take = Callable[[socket.socket, bytes], None]


class Doors:
    """All of them; `take` gets the connections that are not for the lane."""

    def __init__(self, terms: Terms, core: Core, counts: Counts, take: Take) -> None:
        self._counts = counts
        self._doors = [
            _Door(replace(terms, number=number, counts=counts.file), core, counts, take)
            for number in range(1, terms.doors + 1)
        ]

    async def start(self) -> None:
        """Return when all take connections."""
        started = await asyncio.gather(*(door.begin() for door in self._doors))
        if not all(started):
            for door in self._doors:
                door.kill()
            raise HpwsnError(
                "the processes of --workers did not start; the lines above say why, or serve without it"
            )
        for door in self._doors:
            door.keep()

    def __iter__(self) -> Iterator[Taking]:
        return iter(self._doors)

    def figures(self) -> Mapping[str, Mapping[str, int]]:
        """What operators see of each."""
        return {str(door.number): door.figures() for door in self._doors}

    def reload(self) -> None:
        """Have all read their certificate again."""
        for door in self._doors:
            door.reload()

    async def drain(self, within: float) -> None:
        """Have all answer what is under way, and end."""
        await asyncio.gather(*(door.drain(within + MARGIN) for door in self._doors))


class _Door:
    """One place for a door, with the process that fills it now."""

    def __init__(self, terms: Terms, core: Core, counts: Counts, take: Take) -> None:
        self.number = terms.number
        self._terms = terms
        self._core = core
        self._counts = counts
        self._take = take
        self._process: asyncio.subprocess.Process | None = None
        self._link: CoreLink
        self._giver: Giver
        self._given = 0
        self._keeper: asyncio.Task[None] | None = None
        self._draining = False
        self._restarts = 0
        self._before = 0

    def figures(self) -> dict[str, int]:
        """Its process (0 while there is none), connections now, notifications stored, times started again."""
        return {
            "pid": self._process.pid if self._process is not None and self._running() else 0,
            "connections": self._counts.connections[self.number],
            "notifications": self._before + self._link.notifications,
            "restarts": self._restarts,
        }

    @property
    def ready(self) -> bool:
        """Whether it takes connections."""
        started = self._link.ready
        return self._running() and not self._draining and started.done() and started.result()

    @property
    def load(self) -> int:
        """Connections that it has, and those on their way to it."""
        counts = self._counts
        return counts.connections[self.number] + self._given - counts.taken[self.number]

    def give(self, file: int) -> None:
        """Pass an accepted connection on."""
        self._given += 1
        self._giver.give(file, b"")

    def _running(self) -> bool:
        return self._process is not None and self._process.returncode is None

    async def begin(self) -> bool:
        """Start a process, and tell whether it takes connections."""
        link, theirs = socket.socketpair()
        passing, their_end = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        loop = asyncio.get_running_loop()
        with theirs, their_end:
            terms = replace(self._terms, link=theirs.fileno(), passing=their_end.fileno())
            self._link = CoreLink(self._core, terms.body_limit + SLACK, self._failed)
            await loop.create_unix_connection(lambda: self._link, sock=link)
            # It ends by itself, with the last connection that the door has handed over.
            Taker(passing, self._take, self._failed)
            self._giver, self._given = Giver(passing), 0
            self._process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                "hpwsn.workers.process",
                encode_terms(terms),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.DEVNULL,
                pass_fds=(terms.link, terms.passing, terms.counts),
            )
        try:
            return await asyncio.wait_for(self._link.ready, READY_WITHIN)
        except TimeoutError:
            self.kill()
            return False

    def keep(self) -> None:
        """Start it again whenever it ends."""
        self._keeper = asyncio.create_task(self._keep())

    async def _keep(self) -> None:
        pause = FIRST_PAUSE
        loop = asyncio.get_running_loop()
        while True:
            began = loop.time()
            await self._ended()
            if self._draining:
                return
            pause = FIRST_PAUSE if loop.time() - began >= LIVED else pause
            log.error("door %d ended with %s; the next starts in %g s", self.number, self._status(), pause)
            await asyncio.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)
            self._restarts += 1
            self._before += self._link.notifications
            try:
                await self.begin()
            except OSError as error:
                log.error("door %d cannot be started: %s", self.number, error)

    async def _ended(self) -> None:
        assert self._process is not None
        await self._process.wait()
        self._giver.close()
        self._counts.connections[self.number] = self._counts.taken[self.number] = 0

    def _status(self) -> str:
        status = self._process.returncode if self._process else None
        return f"signal {-status}" if status is not None and status < 0 else f"status {status}"

    def _failed(self, wrong: BadFrame) -> None:
        log.error("door %d sent what is no frame of the link: %s", self.number, wrong)
        self.kill()

    def reload(self) -> None:
        """Have it read its certificate again; one that is about to start does so anyway."""
        self._link.reload()

    async def drain(self, within: float) -> None:
        """Have it end, or end it when the time is over."""
        self._draining = True
        self._link.drain()
        try:
            async with asyncio.timeout(within):
                await self._ended()
        except TimeoutError:
            self.kill()
            await self._ended()
        if self._keeper is not None:
            self._keeper.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._keeper

    def kill(self) -> None:
        """End it now."""
        if self._process is not None and self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()
