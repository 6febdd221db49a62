"""A task of the node's own that runs until the node closes, whatever happens to it.

Threads for documents that may be large: a tree of a million topics takes seconds to write.

They are few and their own: whoever asks for many documents at once waits in line, and does not take the
threads in which the event loop looks up the addresses of consumers.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import ParamSpec, TypeVar

_P = ParamSpec("_P")
_T = TypeVar("_T")

_threads = ThreadPoolExecutor(2, thread_name_prefix="documents")


async def in_thread(write: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> _T:
    """What a function gives that only looks at the state of the node, and does so from another thread."""
    return await asyncio.get_running_loop().run_in_executor(_threads, lambda: write(*args, **kwargs))


log = logging.getLogger(__name__)

PAUSE = 5.0
"""Seconds until a task that failed is begun again."""


class BackgroundTask:
    """Starts a coroutine and ends it."""

    def __init__(self, run: Callable[[], Coroutine[None, None, None]]) -> None:
        self._run = run
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin."""
        self._task = asyncio.get_running_loop().create_task(self._run_forever())

    async def _run_forever(self) -> None:
        while True:
            try:
                await self._run()
            except Exception:
                log.exception("%s failed; it goes on in %g s", type(self).__name__, PAUSE)
                await asyncio.sleep(PAUSE)

    async def close(self) -> None:
        """Stop, wherever it is."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
