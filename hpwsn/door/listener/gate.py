"""Connection limits of the port: the number of connections, and the time for the first request head.

aiohttp limits the time after a request's head and between requests, but not the time until the first head is
complete. A connection beyond the limit gets a 503 at once and is closed.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from typing import cast

from aiohttp import web

from hpwsn.door.listener.full_lane import FullLane
from hpwsn.door.listener.http_lane import Lanes
from hpwsn.door.listener.http_statistics import HttpStatistics
from hpwsn.errors import JournalUnavailable

log = logging.getLogger(__name__)

LEFT = 499
"""The status of a response to a client that has disconnected; aiohttp does not write it."""

_REFUSAL = (
    b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nConnection: close\r\nContent-Type: text/plain\r\n"
    b"Content-Length: %d\r\n\r\n%s"
)

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Gate:
    """Creates the protocol for each connection, within the limits."""

    server: web.Server
    lanes: Lanes | None = None

    def __init__(self, *, limit: int, head_within: float, statistics: HttpStatistics) -> None:
        self._limit = limit
        self._statistics = statistics
        self._head_within = head_within
        self._silent: set[asyncio.Protocol] = set()
        self._full = False

    def __call__(self) -> asyncio.Protocol:
        """The protocol for a connection that has just been accepted."""
        lanes = self.lanes
        if len(self) + (0 if lanes is None else len(lanes)) >= self._limit:
            self._note_full()
            return Refusal(self._limit)
        self._full = False
        return self._full_lane() if lanes is None else lanes()

    def __len__(self) -> int:
        return len(self.server.connections)

    def hand_over(self, transport: asyncio.Transport, data: bytes) -> None:
        """Move a connection to aiohttp (the full lane), with its unanswered bytes."""
        protocol = self._full_lane()
        transport.set_protocol(protocol)
        protocol.connection_made(transport)
        protocol.data_received(data)

    def _full_lane(self) -> asyncio.Protocol:
        loop = asyncio.get_running_loop()
        # None turns the access log off, though aiohttp's types do not say so.
        no_log = cast(logging.Logger, None)
        protocol = cast(asyncio.Protocol, FullLane(self.server, loop=loop, access_log=no_log))
        self._silent.add(protocol)
        loop.call_later(self._head_within, self._check, protocol)
        return protocol

    def _note_full(self) -> None:
        self._statistics.refused += 1
        if not self._full:
            self._full = True
            log.warning("the limit of %d connections is reached (server.connections)", self._limit)

    def _check(self, protocol: asyncio.Protocol) -> None:
        if protocol in self._silent:
            self._silent.discard(protocol)
            transport = getattr(protocol, "transport", None)
            if transport is not None:
                transport.abort()

    def join(self, app: web.Application) -> None:
        """Add the count around all other middlewares, since they change statuses, and the answers inside."""
        app.middlewares.insert(0, self._count)
        app.middlewares.append(self._answer)

    @web.middleware
    async def _count(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Record that a head is complete, and count the answer by the status that is sent."""
        self._silent.discard(request.protocol)
        began, status = time.perf_counter(), LEFT
        try:
            response = await handler(request)
            status = response.status
        except web.HTTPException as error:
            status = error.status
            raise
        except Exception:
            status = 500
            raise
        finally:
            self._statistics.answered(request.path, status, time.perf_counter() - began)
        return response

    @web.middleware
    async def _answer(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Turn JournalUnavailable into a 503.

        A client that disconnects before its answer is not an error of this node and is not logged.
        """
        try:
            return await handler(request)
        except JournalUnavailable as error:
            return web.json_response({"error": str(error)}, status=503, headers={"Retry-After": "1"})
        except ConnectionError:
            if not _has_left(request):
                raise
            return web.Response(status=LEFT)


def _has_left(request: web.Request) -> bool:
    return request.transport is None or request.transport.is_closing()


class Refusal(asyncio.Protocol):
    """Answers a connection beyond the limit with 503 and closes it."""

    def __init__(self, limit: int) -> None:
        self._words = f"the limit of {limit} open connections is reached; try again later\n".encode()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Answer without waiting for a request."""
        transport = cast(asyncio.Transport, transport)
        transport.write(_REFUSAL % (len(self._words), self._words))
        transport.close()
