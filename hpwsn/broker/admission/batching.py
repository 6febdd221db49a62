"""Batching: the runs that arrive in one turn of the event loop go to the backbone as one append.

A run by itself costs a future, a task and a hand-over to the journal's thread; a hundred together cost the
same once. Nothing waits for more to come: the batch goes at the end of the turn. When an append fails,
nothing of it is stored and each caller is told, so that it can try its runs alone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from hpwsn.notification import ROW_BYTES, ROW_MEMBERS, Run

MOST = 2048
"""Notifications after which a batch goes at once."""
MOST_BYTES = 4 << 20

Stored = Callable[[bool], None]
Append = Callable[[Sequence[Run]], Awaitable[bool]]


class Batching:
    """Joins runs; `append` tells whether they are stored."""

    def __init__(self, append: Append) -> None:
        self._append = append
        self._runs: list[Run] = []
        self._following: list[Run] = []
        """Runs that continue the last one, and are joined to it in one step."""
        self._size = self._length = 0
        """Notifications and bytes of the last run, with those that continue it."""
        self._count = self._bytes = 0
        self._callers: list[Stored] = []
        self._appending: set[asyncio.Future[bool]] = set()

    def put(self, runs: Sequence[Run], size: int, stored: Stored) -> None:
        """Take the runs of some Notifies, of that many bytes; `stored` is always told later."""
        if not self._callers:
            asyncio.get_running_loop().call_soon(self._flush)
        for run in runs:
            self._size += run.size
            self._length += len(run.payloads)
            # A row of the log takes so many: a longer run would be cut again.
            fits = self._size <= ROW_MEMBERS and self._length <= ROW_BYTES
            if self._runs and fits and run.continues(self._runs[-1]):
                self._following.append(run)
            else:
                self._join()
                self._runs.append(run)
                self._size, self._length = run.size, len(run.payloads)
            self._count += run.size
        self._callers.append(stored)
        self._bytes += size
        if self._count >= MOST or self._bytes >= MOST_BYTES:
            self._flush()

    def _join(self) -> None:
        if self._following:
            self._runs[-1].extend(self._following)
            self._following.clear()

    def _flush(self) -> None:
        if not self._callers:
            return
        self._join()
        runs, callers = self._runs, self._callers
        self._runs, self._callers = [], []
        self._count = self._bytes = 0
        appended = asyncio.ensure_future(self._append(runs))
        self._appending.add(appended)
        appended.add_done_callback(lambda ended: self._settle(ended, callers))

    def _settle(self, ended: asyncio.Future[bool], callers: list[Stored]) -> None:
        self._appending.discard(ended)
        stored = not ended.cancelled() and ended.exception() is None and ended.result()
        for tell in callers:
            tell(stored)
