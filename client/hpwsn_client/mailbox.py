"""A bounded queue of notifications between a receiver's HTTP service and the code that reads it.

All notifications of one delivery go in together or not at all, so that a delivery refused for want of room
can be repeated without doubling a part of it. Closing lets readers finish what is in it.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence

from .notification import Notification


class Mailbox:
    """Holds up to `capacity` notifications; a delivery larger than that goes into an empty one."""

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._waiting: deque[Notification] = deque()
        self._changed = asyncio.Condition()
        self._turn = asyncio.Lock()
        self._closed = False

    # Nothing is awaited between a wait that ends well and the change: a cancelled reader loses nothing.

    async def put(self, delivery: Sequence[Notification], patience: float) -> bool:
        """Add a whole delivery once there is room; False where there was none in time, or all is closed."""
        try:
            async with asyncio.timeout(patience), self._turn, self._changed:
                await self._changed.wait_for(lambda: self._closed or self._has_room(len(delivery)))
                if not self._closed:
                    self._waiting.extend(delivery)
                    self._changed.notify_all()
                return not self._closed
        except TimeoutError:
            return False

    async def get(self, timeout: float | None = None) -> Notification | None:  # noqa: ASYNC109
        """Take the oldest; TimeoutError where none came in time, None where all is closed and read."""
        async with asyncio.timeout(timeout), self._changed:
            await self._changed.wait_for(lambda: self._closed or self._waiting)
            self._changed.notify_all()
            return self._waiting.popleft() if self._waiting else None

    async def close(self) -> None:
        """Take nothing more, and wake everyone who waits."""
        async with self._changed:
            self._closed = True
            self._changed.notify_all()

    def _has_room(self, number: int) -> bool:
        return not self._waiting or len(self._waiting) + number <= self._capacity
