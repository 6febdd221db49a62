"""The doors of a node, from the core's side: starts them, starts again those that end, and has them drain.

A door that ends though nobody asked it to is started again after a pause that grows while that goes on. The
core keeps the port by a socket that is bound and does not listen, so that a door finds it again; new
connections meanwhile go to the doors that are left.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace

from hpwsn.errors import HpwsnError
from hpwsn.workers.core_link import Core, CoreLink
from hpwsn.workers.counts import Counts
from hpwsn.workers.frames import SLACK, BadFrame
from hpwsn.workers.passing import Taker
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
        """Return when all accept connections."""
        started = await asyncio.gather(*(door.begin() for door in self._doors))
        if not all(started):
            for door in self._doors:
                door.kill()
            raise HpwsnError(
                "the processes of --workers did not start; the lines above say why, or serve without it"
            )
        for door in self._doors:
            door.keep()

    def figures(self) -> Mapping[str, Mapping[str, int]]:
        """What operators see of each."""
        return {str(door.number): door.figures() for door in self._doors}

    def reload(self) -> None:
        """Have all read their certificate again."""
        for door in self._doors:
            door.reload()

    async def drain(self, within: float) -> None:
        """Have all accept no more, answer what is under way, and end."""
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
        self._keeper: asyncio.Task[None] | None = None
        self._draining = False
        self._restarts = 0
        self._before = 0

    def figures(self) -> dict[str, int]:
        """Its process (0 while there is none), connections now, notifications stored, times started again."""
        running = self._process is not None and self._process.returncode is None
        return {
            "pid": self._process.pid if running and self._process else 0,
            "connections": self._counts[self.number],
            "notifications": self._before + self._link.notifications,
            "restarts": self._restarts,
        }

    async def begin(self) -> bool:
        """Start a process, and return when it accepts connections, or whether it failed to."""
        link, theirs = socket.socketpair()
        passing, their_end = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        loop = asyncio.get_running_loop()
        with theirs, their_end:
            terms = replace(self._terms, link=theirs.fileno(), passing=their_end.fileno())
            self._link = CoreLink(self._core, terms.body_limit + SLACK, self._failed)
            await loop.create_unix_connection(lambda: self._link, sock=link)
            # It ends by itself, with the last connection that the door has handed over.
            Taker(passing, self._take, self._failed)
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
            return await asyncio.wait_for(self._link.listening, READY_WITHIN)
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
        self._counts[self.number] = 0

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


def reserve(family: int, host: str, port: int) -> socket.socket:
    """A socket that keeps a port for doors, without listening; port 0 takes a free one."""
    if port:
        # A port that may be shared could be somebody else's already, whose connections doors would take.
        socket.create_server((host, port), family=family, reuse_port=False).close()
    keeper = socket.socket(socket.AddressFamily(family), socket.SOCK_STREAM)
    try:
        keeper.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        keeper.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        if family == socket.AF_INET6:
            keeper.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        keeper.bind((host, port))
    except OSError:
        keeper.close()
        raise
    return keeper
