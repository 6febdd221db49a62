"""A connection with TLS on its way to the core: its keys stay in the door, which passes the plain bytes on.

The core gets one end of a pair of Unix sockets in place of the connection. Whoever is slower sets the pace of
both, and when one side ends, so does the other, once it has all that was sent before.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from typing import cast


class Half(asyncio.Protocol):
    """One of the two sides; what it reads goes to the other."""

    def __init__(self, ended: Callable[[], None] = lambda: None) -> None:
        self.other: Half | None = None
        self.transport: asyncio.Transport | None = None
        self._ended = ended

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin, once the other side is there too."""
        self.transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        """Pass it on."""
        if (transport := self._beyond()) is not None:
            transport.write(data)

    def pause_writing(self) -> None:
        """This side does not read: take no more from the other."""
        if (transport := self._beyond()) is not None:
            transport.pause_reading()

    def resume_writing(self) -> None:
        """It does again."""
        if (transport := self._beyond()) is not None:
            transport.resume_reading()

    def connection_lost(self, error: Exception | None) -> None:
        """End the other side too."""
        if (transport := self._beyond()) is not None:
            transport.close()
        self._ended()

    def _beyond(self) -> asyncio.Transport | None:
        """The other side's transport, where it is there and open."""
        transport = None if self.other is None else self.other.transport
        return None if transport is None or transport.is_closing() else transport


async def splice(client: asyncio.Transport, ours: socket.socket, ended: Callable[[], None]) -> None:
    """Join a connection that is not being read with our end of a pair."""
    outer, inner = Half(ended), Half()
    outer.transport = client
    # Known to each other before the pair is read: the core may have answered, and ended, by then.
    outer.other, inner.other = inner, outer
    client.set_protocol(outer)
    loop = asyncio.get_running_loop()
    await loop.create_unix_connection(lambda: inner, sock=ours)
    if client.is_closing():
        assert inner.transport is not None
        inner.transport.close()
    else:
        client.set_write_buffer_limits()
        client.resume_reading()
