"""All that a core adds to a node: its doors, and the connections that they hand over to aiohttp.

Such a connection counts as the core's own from then on; one that has ended may count for half a second more.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Mapping
from typing import cast

from hpwsn.door.gate import Gate
from hpwsn.settings import Config
from hpwsn.workers.accepting import Acceptor
from hpwsn.workers.core_link import Core
from hpwsn.workers.counts import Counts
from hpwsn.workers.doors import Doors
from hpwsn.workers.terms import Terms

COUNT_EVERY = 0.5
_CORE = 0


class Front:
    """The doors of a node, and the socket that it listens on."""

    def __init__(self, config: Config, listener: socket.socket, gate: Gate, core: Core) -> None:
        self._gate = gate
        self._counts = Counts.create(config.server.workers)
        self._doors = Doors(_terms(config), core, self._counts, self._take)
        self._acceptor = Acceptor(listener, lambda: list(self._doors))
        self._loop = asyncio.get_running_loop()
        self._tasks: set[asyncio.Task[None]] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._draining = False
        self._drained: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Accept connections, once all doors take them."""
        await self._doors.start()
        self._acceptor.start()

    def figures(self) -> Mapping[str, Mapping[str, int]]:
        """What operators see of each door."""
        return self._doors.figures()

    def reload(self) -> None:
        """Have the doors read the certificate again."""
        self._doors.reload()

    def drain(self, within: float) -> None:
        """Accept no more, and have the doors end when what is under way is answered."""
        self._draining = True
        self._acceptor.close()
        self._drained = asyncio.create_task(self._doors.drain(within))

    async def drained(self) -> None:
        """Return when all doors have ended."""
        if self._drained is not None:
            await self._drained
        if self._timer is not None:
            self._timer.cancel()
        self._counts.close()

    def _take(self, connection: socket.socket, data: bytes) -> None:
        if self._draining:
            connection.close()
            return
        task = asyncio.create_task(self._accept(connection, data))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _accept(self, connection: socket.socket, data: bytes) -> None:
        try:
            await self._loop.connect_accepted_socket(lambda: _Arrived(self._gate, data), connection)
        except OSError:
            # The client left on the way.
            connection.close()
        self._count()

    def _count(self) -> None:
        self._counts.connections[_CORE] = len(self._gate)
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_later(COUNT_EVERY, self._count) if len(self._gate) else None


class _Arrived(asyncio.Protocol):
    """Hands a connection on as soon as it has a transport."""

    def __init__(self, gate: Gate, data: bytes) -> None:
        self._gate = gate
        self._data = data

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Nothing has been read from it here."""
        self._gate.hand_over(cast(asyncio.Transport, transport), self._data)


def _terms(config: Config) -> Terms:
    server = config.server
    return Terms(
        number=0,
        doors=server.workers,
        connections=server.connections,
        request_timeout=server.request_timeout,
        drain_timeout=server.drain_timeout,
        body_limit=server.body_limit,
        depth_limit=server.depth_limit,
        attribute_limit=server.attribute_limit,
        message_limit=server.message_limit,
        log_level=config.log.level,
        log_format=config.log.format,
        tls_certificate=server.tls_certificate,
        tls_key=server.tls_key,
        tls_client_ca=server.tls_client_ca,
    )
