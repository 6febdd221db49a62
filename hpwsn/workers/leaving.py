"""The way out of a door: a connection whose next request is not for the lane goes to the core.

Only once the client's side has taken all answers, since what waits in this process to be written cannot
follow it, and within the time that a request has to arrive. Nothing is read meanwhile, so that no byte stays
behind. A connection with TLS cannot be taken out of the process that has its keys, and is spliced.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Callable

from hpwsn.workers.splice import splice


class Leaving:
    """Connections on their way; `give` takes an open file and the bytes so far."""

    def __init__(
        self, give: Callable[[int, bytes], None], changed: Callable[[], None], within: float
    ) -> None:
        self._give = give
        self._changed = changed
        self._within = within
        self._waiting: set[_Waiting] = set()
        self._spliced: set[asyncio.Transport] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    def __len__(self) -> int:
        """How many are still this process's alone; the core counts those that are spliced."""
        return len(self._waiting)

    @property
    def spliced(self) -> int:
        """How many are the core's and pass through here."""
        return len(self._spliced)

    def hand_over(self, transport: asyncio.Transport, data: bytes) -> None:
        """Have a connection go, with what it has brought and nobody has answered."""
        transport.pause_reading()
        if transport.get_extra_info("ssl_object") is not None:
            self._splice(transport, data)
            return
        waiting = _Waiting(transport, data, self)
        self._waiting.add(waiting)
        transport.set_protocol(waiting)
        transport.set_write_buffer_limits(0)
        if transport.get_write_buffer_size():
            waiting.timer = asyncio.get_running_loop().call_later(self._within, transport.abort)
        else:
            self.go(waiting)

    def go(self, waiting: _Waiting) -> None:
        """All is written."""
        transport = waiting.transport
        if not transport.is_closing():
            file = os.dup(transport.get_extra_info("socket").fileno())
            # Ends it for this process alone: the other file keeps the connection open.
            transport.abort()
            self._give(file, waiting.data)

    def gone(self, waiting: _Waiting) -> None:
        """It is not this process's any more."""
        self._waiting.discard(waiting)
        self._changed()

    def _splice(self, transport: asyncio.Transport, data: bytes) -> None:
        ours, theirs = socket.socketpair()
        self._give(theirs.detach(), data)
        self._spliced.add(transport)
        task = asyncio.create_task(splice(transport, ours, lambda: self._spliced.discard(transport)))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


class _Waiting(asyncio.Protocol):
    timer: asyncio.TimerHandle | None = None

    def __init__(self, transport: asyncio.Transport, data: bytes, leaving: Leaving) -> None:
        self.transport = transport
        self.data = data
        self._leaving = leaving

    def resume_writing(self) -> None:
        """The last answer is written."""
        self._leaving.go(self)

    def connection_lost(self, error: Exception | None) -> None:
        """By the client, or because it went to the core."""
        if self.timer is not None:
            self.timer.cancel()
        self._leaving.gone(self)
