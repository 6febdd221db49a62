"""A door: a process that takes connections which the core has accepted, and reads HTTP and XML for it.

It has lanes as a node without workers has, a link in place of a broker, and no state that matters: killed, it
takes nothing with it that anybody was told is stored. Signals are the core's business, which has the door
drain; when the link ends, so does the door, at once.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
import socket
import sys
from datetime import UTC, datetime
from typing import Any

import uvloop

from hpwsn.door.exchange import Refusals
from hpwsn.door.lane import Lane, Lanes
from hpwsn.door.refusal import Refusal
from hpwsn.door.tls import load_certificate, server_context
from hpwsn.errors import HpwsnError
from hpwsn.logs import set_up_logging
from hpwsn.settings import LogSettings
from hpwsn.workers.counts import Counts
from hpwsn.workers.door_link import DoorLink
from hpwsn.workers.leaving import Leaving
from hpwsn.workers.passing import Giver, Taker
from hpwsn.workers.terms import Terms, parse_terms

log = logging.getLogger(__name__)

_PAUSE = 0.02


class CountedLanes(Lanes):
    """Lanes whose connections count for the whole node."""

    def __init__(self, counts: Counts, number: int, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._counts = counts
        self._number = number
        self.leaving: Leaving | None = None

    def entered(self, lane: Lane) -> None:
        """A connection is in the lane from now on."""
        super().entered(lane)
        self.count()

    def left(self, lane: Lane) -> None:
        """A connection has ended, or is on its way to the core."""
        super().left(lane)
        self.count()

    @property
    def spliced(self) -> int:
        """Connections that pass through on their way to the core."""
        return 0 if self.leaving is None else self.leaving.spliced

    def count(self) -> None:
        """Tell the others how many there are."""
        self._counts.connections[self._number] = len(self) + len(self.leaving or ())


class Door:
    """All that this process does."""

    def __init__(self, terms: Terms) -> None:
        self._terms = terms
        self._counts = Counts(terms.counts, terms.doors)
        self._loop = asyncio.get_running_loop()
        self._draining = asyncio.Event()
        self._full = False
        self._tasks: set[asyncio.Task[None]] = set()
        self._tls = server_context(terms.tls)

    async def run(self) -> int:
        """Serve until the core says that it is enough, or is gone."""
        terms = self._terms
        link = await self._link()
        way = socket.socket(fileno=terms.passing)
        giver = Giver(way)
        self._lanes = CountedLanes(
            self._counts,
            terms.number,
            link,
            link,
            body_limit=terms.body_limit,
            arrive_within=terms.request_timeout,
            hand_over=self._hand_over,
        )
        self._lanes.leaving = Leaving(giver.give, self._lanes.count, terms.request_timeout)
        taker = Taker(way, self._take, link.fail, self._lost)
        link.ready()
        draining = asyncio.create_task(self._drain(giver))
        await asyncio.wait((link.lost, draining), return_when=asyncio.FIRST_COMPLETED)
        giver.close()
        taker.close()
        if not link.lost.done():
            await link.close()
            return 0
        draining.cancel()
        await self._lanes.close(0)
        if (wrong := link.lost.result()) is not None:
            log.error("the core sent what is no frame of the link: %s", wrong)
        return 1

    async def _link(self) -> DoorLink:
        terms = self._terms
        refusals = Refusals(terms.limits, terms.request_timeout, lambda: datetime.now(UTC))

        def link() -> DoorLink:
            return DoorLink(
                terms.limits,
                refusals,
                hold=lambda held: self._lanes.hold(held),
                drain=self._draining.set,
                reload=self._reload,
            )

        _, made = await self._loop.create_unix_connection(link, sock=socket.socket(fileno=terms.link))
        return made

    def _take(self, connection: socket.socket, data: bytes) -> None:
        """A connection from the core, which has read nothing from it."""
        self._counts.taken[self._terms.number] += 1
        task = self._loop.create_task(self._begin(connection))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _lost(self) -> None:
        self._counts.taken[self._terms.number] += 1
        if not self._full:
            self._full = True
            log.error("a connection is lost: the process has as many files open as the system lets it")

    async def _begin(self, connection: socket.socket) -> None:
        connection.setblocking(False)
        try:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            await self._loop.connect_accepted_socket(
                self._accept,
                connection,
                ssl=self._tls,
                ssl_handshake_timeout=self._terms.request_timeout if self._tls else None,
            )
        except OSError:
            # The client left on the way, or does not speak TLS.
            connection.close()

    def _accept(self) -> asyncio.Protocol:
        limit = self._terms.connections
        if self._counts.total() >= limit:
            if not self._full:
                self._full = True
                log.warning("%d connections are open (server.connections): more are refused", limit)
            return Refusal(limit)
        self._full = False
        return self._lanes()

    def _reload(self) -> None:
        """The core has tried the files before, and says in its log what is wrong with them."""
        if self._tls is not None:
            with contextlib.suppress(HpwsnError):
                load_certificate(self._tls, self._terms.tls)

    def _hand_over(self, transport: asyncio.Transport, data: bytes) -> None:
        assert self._lanes.leaving is not None
        self._lanes.leaving.hand_over(transport, data)

    async def _drain(self, giver: Giver) -> None:
        """Once asked to: answer what is under way, and let the last connections go."""
        await self._draining.wait()
        within = self._terms.drain_timeout
        await self._lanes.close(within)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(within):
                while giver or self._lanes.spliced:  # noqa: ASYNC110
                    await asyncio.sleep(_PAUSE)


def main(arguments: list[str]) -> int:
    """Run a door on the terms of its core."""
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        # Who signals the node means the core, though a terminal or a service manager tells all of them.
        signal.signal(number, signal.SIG_IGN)
    terms = parse_terms(arguments[0])
    set_up_logging(LogSettings(level=terms.log_level, format=terms.log_format))
    try:
        return uvloop.run(_serve(terms))
    except (HpwsnError, OSError) as error:
        log.error("door %d cannot go on: %s", terms.number, error)
        return 1


async def _serve(terms: Terms) -> int:
    return await Door(terms).run()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
