"""The way out of a door: a connection whose next request is not for the lane goes to the core.

Only once the client's side has taken all answers, since what waits in this process to be written cannot
follow it. Nothing is read meanwhile, so that no byte stays behind.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable


class Leaving:
    """Connections on their way; `give` takes an open file and the bytes so far."""

    def __init__(self, give: Callable[[int, bytes], None], changed: Callable[[], None]) -> None:
        self._give = give
        self._changed = changed
        self._waiting: set[_Waiting] = set()

    def __len__(self) -> int:
        return len(self._waiting)

    def hand_over(self, transport: asyncio.Transport, data: bytes) -> None:
        """Have a connection go, with what it has brought and nobody has answered."""
        waiting = _Waiting(transport, data, self)
        self._waiting.add(waiting)
        transport.pause_reading()
        transport.set_protocol(waiting)
        transport.set_write_buffer_limits(0)
        if not transport.get_write_buffer_size():
            waiting.resume_writing()

    def go(self, waiting: _Waiting) -> None:
        """All is written."""
        transport = waiting.transport
        if waiting in self._waiting and not transport.is_closing():
            file = os.dup(transport.get_extra_info("socket").fileno())
            # Ends it for this process alone: the other file keeps the connection open.
            transport.abort()
            self._give(file, waiting.data)

    def gone(self, waiting: _Waiting) -> None:
        """It is not this process's any more."""
        self._waiting.discard(waiting)
        self._changed()


class _Waiting(asyncio.Protocol):
    def __init__(self, transport: asyncio.Transport, data: bytes, leaving: Leaving) -> None:
        self.transport = transport
        self.data = data
        self._leaving = leaving

    def resume_writing(self) -> None:
        """The last answer is written."""
        self._leaving.go(self)

    def connection_lost(self, error: Exception | None) -> None:
        """By the client, or because it went to the core."""
        self._leaving.gone(self)
