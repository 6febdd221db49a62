"""One connection with several requests on it: each is written at once, the answers come in the same order.

It owns the connection and its bytes. What an answer means, and what is sent again after a loss, is its
owner's affair.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from typing import cast
from urllib.parse import urlsplit

from .replies import NotHttp, RawReply, ReplyReader

Answered = Callable[["Pipeline", RawReply], None]
Lost = Callable[["Pipeline", Exception | None], None]


class Pipeline(asyncio.Protocol):
    """A connection to one server; `answered` is called for each answer, `lost` once at the end."""

    def __init__(self, answered: Answered, lost: Lost, limit: int) -> None:
        self._answered = answered
        self._lost = lost
        self._reader = ReplyReader(limit)
        self._error: Exception | None = None
        self._transport: asyncio.Transport | None = None

    @classmethod
    async def open(
        cls, url: str, answered: Answered, lost: Lost, limit: int, tls: ssl.SSLContext | None = None
    ) -> Pipeline:
        """Connect to the URL's host; `tls` None trusts the system's authorities."""
        parts = urlsplit(url)
        secure = (tls or ssl.create_default_context()) if parts.scheme == "https" else None
        _, connection = await asyncio.get_running_loop().create_connection(
            lambda: cls(answered, lost, limit),
            parts.hostname or "",
            parts.port or (443 if secure else 80),
            ssl=secure,
        )
        return connection

    def write(self, request: bytes) -> None:
        """Send a request behind those that are under way."""
        if self._transport is not None:
            self._transport.write(request)

    def close(self, error: Exception | None = None) -> None:
        """End the connection; `lost` gets the error."""
        self._error = self._error or error
        if self._transport is not None:
            self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See asyncio.Protocol."""
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        """Hand the answers over that are complete now."""
        try:
            for reply in self._reader.feed(data):
                self._answered(self, reply)
                if not reply.keep_alive:
                    self.close()
                    return
        except NotHttp as error:
            self.close(error)

    def connection_lost(self, error: Exception | None) -> None:
        """See asyncio.Protocol."""
        self._transport = None
        if error is None and self._error is None and (reply := self._reader.end()) is not None:
            self._answered(self, reply)
        self._lost(self, self._error or error)


def request_head(url: str) -> bytes:
    """The request line and the Host header of a POST to the URL."""
    parts = urlsplit(url)
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    host = parts.netloc.rpartition("@")[2]
    return f"POST {path} HTTP/1.1\r\nHost: {host}\r\n".encode("ascii")
