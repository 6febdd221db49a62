"""The port's own bounds, before there is a request: how many connections, and how long one may say nothing
whole.

aiohttp times what comes after a request's head, and connections between requests; a client that never
finishes its first head would stay for ever. A connection past the limit gets a 503 at once and is closed.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import cast

from aiohttp import web

from hpwsn.errors import JournalUnavailable

log = logging.getLogger(__name__)

_REFUSAL = (
    b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nConnection: close\r\nContent-Type: text/plain\r\n"
    b"Content-Length: %d\r\n\r\n%s"
)

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Gate:
    """Makes the protocol for each connection."""

    server: web.Server

    def __init__(self, *, limit: int, head_within: float) -> None:
        self._limit = limit
        self._head_within = head_within
        self._silent: set[asyncio.Protocol] = set()
        self._full = False

    def __call__(self) -> asyncio.Protocol:
        """The protocol for a connection that has just been accepted."""
        if len(self.server.connections) >= self._limit:
            self._note_full()
            return _Refusal(self._limit)
        self._full = False
        protocol = cast(asyncio.Protocol, self.server())
        self._silent.add(protocol)
        asyncio.get_running_loop().call_later(self._head_within, self._check, protocol)
        return protocol

    def _note_full(self) -> None:
        if not self._full:
            self._full = True
            log.warning("%d connections are open (server.connections): more are refused", self._limit)

    def _check(self, protocol: asyncio.Protocol) -> None:
        if protocol in self._silent:
            self._silent.discard(protocol)
            transport = getattr(protocol, "transport", None)
            if transport is not None:
                transport.abort()

    @web.middleware
    async def middleware(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Note that a connection has brought a whole head; make a 503 of trouble with the journal."""
        self._silent.discard(request.protocol)
        try:
            return await handler(request)
        except JournalUnavailable as error:
            return web.json_response({"error": str(error)}, status=503, headers={"Retry-After": "1"})


class _Refusal(asyncio.Protocol):
    """Says that there is no room, and ends."""

    def __init__(self, limit: int) -> None:
        self._words = f"{limit} connections are open, and no more are taken; try again\n".encode()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Answer before anything is asked."""
        transport = cast(asyncio.Transport, transport)
        transport.write(_REFUSAL % (len(self._words), self._words))
        transport.close()
