"""Work beside the requests of a node: tasks that run until the node closes, slices, and threads.

A task that fails is logged and restarted. The threads write documents that take long, such as a tree of a
million topics. They are a small pool of their own: many documents at once wait for each other, and do not
occupy the threads in which the event loop resolves host names. Work on the state of the node that a thread
must not read runs in the event loop, in slices.
"""

from __future__ import annotations

import asyncio
import logging
import sys
import time
from collections.abc import Callable, Coroutine, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import ParamSpec, TypeVar

_P = ParamSpec("_P")
_T = TypeVar("_T")

log = logging.getLogger(__name__)

PAUSE = 5.0
"""Seconds until a failed task is restarted."""


class BackgroundTask:
    """Runs a coroutine function from `start` to `close`, and restarts it after an error."""

    def __init__(self, run: Callable[[], Coroutine[None, None, None]]) -> None:
        self._run = run
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Start the task in the running event loop."""
        self._task = asyncio.get_running_loop().create_task(self._run_forever())

    async def _run_forever(self) -> None:
        while True:
            try:
                await self._run()
            except Exception:
                log.exception("%s failed; restarting it in %g s", type(self).__name__, PAUSE)
                await asyncio.sleep(PAUSE)

    async def close(self) -> None:
        """Cancel the task and wait for its end."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])


SHORT_SWITCH = 0.0005
"""Seconds after which a busy thread gives the interpreter lock to the event loop, while a thread works.

Python's own 5 ms would be added to every step of every request.
"""

_threads = ThreadPoolExecutor(2, thread_name_prefix="documents")
_usual_switch = sys.getswitchinterval()
_working = 0


async def in_thread(write: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> _T:
    """Run `write` in another thread and return its result; `write` must only read the state of the node."""
    return await in_pool(_threads, write, *args, **kwargs)


async def in_pool(
    threads: ThreadPoolExecutor, write: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs
) -> _T:
    """The same in threads of the caller's own, for work that takes seconds."""
    global _working
    _working += 1
    sys.setswitchinterval(SHORT_SWITCH)
    try:
        return await asyncio.get_running_loop().run_in_executor(threads, lambda: write(*args, **kwargs))
    finally:
        _working -= 1
        if not _working:
            sys.setswitchinterval(_usual_switch)


SLICE = 0.002
"""Seconds that work in slices keeps the event loop for itself."""


async def in_slices(steps: Iterable[None]) -> None:
    """Run all steps, which must be short, and let the event loop go on after each SLICE."""
    until = time.monotonic() + SLICE
    for _ in steps:
        if time.monotonic() >= until:
            await asyncio.sleep(0)
            until = time.monotonic() + SLICE


LARGE_PAUSE = 0.5
"""Seconds after the last piece of a large message in which threads still switch sooner."""


def switch_sooner() -> None:
    """Let the journal's threads have the interpreter lock while the loop is busy with a large message."""
    global _working
    if _pieces.timer is None:
        _working += 1
        sys.setswitchinterval(SHORT_SWITCH)
        _pieces.timer = asyncio.get_running_loop().call_later(LARGE_PAUSE, _pieces.rest)
    _pieces.more = True


class _Pieces:
    timer: asyncio.TimerHandle | None = None
    more = False

    def rest(self) -> None:
        global _working
        if self.more:
            self.more = False
            self.timer = asyncio.get_running_loop().call_later(LARGE_PAUSE, self.rest)
            return
        self.timer = None
        _working -= 1
        if not _working:
            sys.setswitchinterval(_usual_switch)


_pieces = _Pieces()
