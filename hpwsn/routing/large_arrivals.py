"""Large publications of other nodes, from their arrival to their commit.

A thread parses one, and the journal writes it to a file, while smaller publications go on. Publications with
the topic of a large one wait for its commit, so that the order of a topic holds.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable

from hpwsn.routing.wire.publication import LargePayload, Publication


class LargeArrivals:
    """The large publications that are being stored; `deliver` gets those that waited, in order."""

    def __init__(
        self, store: Callable[[Publication], Awaitable[None]], deliver: Callable[[Publication], None]
    ) -> None:
        self._store = store
        self._deliver = deliver
        self._waiting: dict[str | None, deque[Publication]] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def take(self, publication: Publication) -> bool:
        """Take a publication that is large, or whose topic waits for one; False for any other."""
        if self._waiting and publication.topic in self._waiting:
            self._waiting[publication.topic].append(publication)
            return True
        if isinstance(publication.payload, bytes):
            return False
        assert isinstance(publication.payload, LargePayload)
        self._waiting[publication.topic] = deque()
        task = asyncio.get_running_loop().create_task(self._store_one(publication))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return True

    async def _store_one(self, publication: Publication) -> None:
        try:
            await self._store(publication)
        finally:
            for waiting in self._waiting.pop(publication.topic):
                self._deliver(waiting)

    async def close(self) -> None:
        """Wait for the publications that are being stored."""
        while self._tasks:
            await asyncio.wait(self._tasks)
