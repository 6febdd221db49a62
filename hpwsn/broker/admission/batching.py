"""The intake: what doors bring in one turn of the event loop goes to the backbone as one send.

A notification by itself costs a future, a task and a hand-over to the journal's thread; a hundred together
cost the same once. Nobody waits for others to come: what is there at the end of the turn goes. When a send
of several fails, nothing of it is stored and each is told, so that it can be tried alone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from hpwsn.notification import Batch, Notification, Run, parts_of

MOST = 2048
"""Notifications after which a send goes at once."""
MOST_BYTES = 4 << 20

Stored = Callable[[bool], None]
Send = Callable[[Sequence[Notification]], Awaitable[bool]]


class Intake:
    """Joins notifications; `send` tells whether they are stored."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._parts: list[Sequence[Notification]] = []
        self._waiting: list[Notification] = []
        """The last of the parts, if that is a list."""
        self._count = 0
        self._told: list[Stored] = []
        self._bytes = 0
        self._sending: set[asyncio.Future[bool]] = set()

    def put(self, notifications: Sequence[Notification], size: int, stored: Stored) -> None:
        """Take the notifications of some Notifies, of that size in all; `stored` is told, never at once."""
        if not self._told:
            asyncio.get_running_loop().call_soon(self._flush)
        for part in parts_of(notifications):
            if isinstance(part, Run):
                self._parts.append(part)
                self._waiting = []
            else:
                if not self._waiting:
                    self._parts.append(self._waiting)
                self._waiting += part
        self._count += len(notifications)
        self._told.append(stored)
        self._bytes += size
        if self._count >= MOST or self._bytes >= MOST_BYTES:
            self._flush()

    def _flush(self) -> None:
        parts, told = self._parts, self._told
        if not told:
            return
        self._parts, self._waiting, self._count = [], [], 0
        self._told, self._bytes = [], 0
        sent = asyncio.ensure_future(self._send(parts[0] if len(parts) == 1 else Batch(parts)))
        self._sending.add(sent)
        sent.add_done_callback(lambda ended: self._settle(ended, told))

    def _settle(self, ended: asyncio.Future[bool], told: list[Stored]) -> None:
        self._sending.discard(ended)
        stored = not ended.cancelled() and ended.exception() is None and ended.result()
        for tell in told:
            tell(stored)
