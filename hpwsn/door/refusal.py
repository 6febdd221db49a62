"""The answer to a connection for which there is no room."""

from __future__ import annotations

import asyncio
from typing import cast

_REFUSAL = (
    b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nConnection: close\r\nContent-Type: text/plain\r\n"
    b"Content-Length: %d\r\n\r\n%s"
)


class Refusal(asyncio.Protocol):
    """Says that there is no room, and ends."""

    def __init__(self, limit: int) -> None:
        self._words = f"{limit} connections are open, and no more are taken; try again\n".encode()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Answer before anything is asked."""
        transport = cast(asyncio.Transport, transport)
        transport.write(_REFUSAL % (len(self._words), self._words))
        transport.close()
