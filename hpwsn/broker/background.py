"""A task of the node's own that runs until the node closes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine


class Background:
    """Starts a coroutine and ends it."""

    def __init__(self, run: Callable[[], Coroutine[None, None, None]]) -> None:
        self._run = run
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin."""
        self._task = asyncio.get_running_loop().create_task(self._run())

    async def close(self) -> None:
        """Stop, wherever it is."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
