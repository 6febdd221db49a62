"""Questions to the history: pages of rows, pictures, past readings, and whether there is a reading.

Each works on a snapshot of files and memory, in a thread. If a file was merged into another one meanwhile,
it is asked again. At most MOST_QUERIES questions are under way or wait; more are told to come back.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any, Concatenate, ParamSpec, TypeVar

from hpwsn.background import in_pool
from hpwsn.sensors.history.history_query import (
    HistoryBusy,
    HistoryDamaged,
    HistoryQuery,
    Page,
    Picture,
    Place,
    Row,
    Snapshot,
)
from hpwsn.sensors.history.history_threads import (
    HistoryThreads,
    draw_chart,
    page_of_rows,
    present_keys,
    series_of,
)
from hpwsn.sensors.readings.reading import Reading

P = ParamSpec("P")
T = TypeVar("T")

MOST_QUERIES = 64
"""Questions under way or waiting."""
MOST_PICTURES = 8
"""Pictures among them, which take longer."""
AT_ONCE = 10_000
"""Rows of one page of past readings."""
FIRST_WINDOW, WIDER = 600_000, 8
"""Milliseconds before the end in which the latest rows are looked for first, and how much longer then."""
MOST_WORK = 30.0
"""Seconds after which a search for the latest rows fails."""


class SnapshotQueries:
    """Asks a history. `complete` gives a snapshot of all that is kept, or raises HistoryBusy."""

    def __init__(
        self,
        threads: HistoryThreads,
        complete: Callable[[], Awaitable[Snapshot]],
        snapshot: Callable[[], Snapshot],
        forget_missing: Callable[[], Awaitable[Any]],
        damaged: Callable[[HistoryDamaged], None],
    ) -> None:
        self._threads = threads
        self._complete = complete
        self._snapshot = snapshot
        self._forget_missing = forget_missing
        self._damaged = damaged
        self._asked = 0
        self._drawn = 0

    async def page(self, query: HistoryQuery, limit: int, after: Place | None = None) -> Page:
        """The first rows after a place; HistoryBusy if that takes too long, or too many ask."""
        return await self._ask(self._threads.read, page_of_rows, query, limit, after)

    async def latest(self, query: HistoryQuery, limit: int, before: Place | None = None) -> Page:
        """The last rows before a place, the last one first; the page's place is where earlier ones begin.

        They are looked for in times that get longer, from the end; HistoryBusy if that takes too long.
        """
        ends = [end for end in (query.end, before and before.time + 1) if end is not None]
        end, width, until = min(ends, default=None), FIRST_WINDOW, time.monotonic() + MOST_WORK
        found: list[Row] = []
        while len(found) <= limit:
            start = self._start(query, end, width)
            part = await self._last(
                replace(query, start=start, end=end), limit + 1 - len(found), before, until
            )
            found = [*part, *found]
            if start == query.start:
                break
            end, width = start, width * WIDER
        rows = found[: -limit - 1 : -1]
        return Page(rows, rows[-1].place if len(found) > limit else None)

    def _start(self, query: HistoryQuery, end: int | None, width: int) -> int | None:
        """Where the next search for the latest rows begins, if all rows from `end` on are known."""
        ends = [
            file.end if end is None else min(file.end, end)
            for files in self._snapshot().days.values()
            for file in files
            if file.top == query.top and (end is None or file.start < end)
        ]
        if not ends or (query.start is not None and max(ends) - width <= query.start):
            return query.start
        return max(ends) - width

    async def _last(
        self, query: HistoryQuery, limit: int, before: Place | None, until: float
    ) -> Sequence[Row]:
        """The last rows that come before a place, in order."""
        found: deque[Row] = deque(maxlen=limit)
        after: Place | None = None
        while True:
            page = await self.page(query, AT_ONCE, after)
            found.extend(row for row in page.rows if before is None or row.place < before)
            after = page.after
            if after is None:
                return list(found)
            if time.monotonic() > until:
                raise HistoryBusy("the query takes too long; ask for a shorter time")

    async def readings(self, query: HistoryQuery, limit: int) -> list[Reading]:
        """The first readings that a query means; it waits for no other question."""
        found: list[Reading] = []
        after: Place | None = None
        while len(found) < limit:
            most = min(limit - len(found), AT_ONCE)
            page = await self._read(self._threads.past, page_of_rows, query, most, after)
            found += [row.item for row in page.rows if isinstance(row.item, Reading)]
            after = page.after
            if after is None:
                break
        return found

    async def picture(self, picture: Picture) -> bytes:
        """Draw what a query means; HistoryBusy if that takes too long, or too many ask."""
        if self._drawn >= MOST_PICTURES:
            raise HistoryBusy(f"{MOST_PICTURES} pictures are being drawn; try again later")
        self._drawn += 1
        try:
            series = await self._ask(self._threads.draw, series_of, picture)
            return await in_pool(self._threads.draw, draw_chart, series, picture.form)
        finally:
            self._drawn -= 1

    async def has(self, keys: Sequence[tuple[str, int]]) -> set[tuple[str, int]]:
        """Those of some sensors and times in milliseconds at which there is a reading.

        Files that cannot be read are passed over, and so is what is only in the log.
        """
        found, damaged = await self._try(self._threads.keys, self._now, present_keys, keys)
        for error in damaged:
            self._damaged(error)
        return found

    async def _now(self) -> Snapshot:
        return self._snapshot()

    async def _ask(
        self,
        pool: ThreadPoolExecutor,
        work: Callable[Concatenate[Snapshot, P], T],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> T:
        if self._asked >= MOST_QUERIES:
            raise HistoryBusy(f"{MOST_QUERIES} queries of readings are under way; try again later")
        self._asked += 1
        try:
            return await self._read(pool, work, *args, **kwargs)
        finally:
            self._asked -= 1

    async def _read(
        self,
        pool: ThreadPoolExecutor,
        work: Callable[Concatenate[Snapshot, P], T],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> T:
        try:
            return await self._try(pool, self._complete, work, *args, **kwargs)
        except HistoryDamaged as error:
            self._damaged(error)
            raise

    async def _try(
        self,
        pool: ThreadPoolExecutor,
        take: Callable[[], Awaitable[Snapshot]],
        work: Callable[Concatenate[Snapshot, P], T],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> T:
        """Run a query on a snapshot in a thread; again if a file of the snapshot was merged meanwhile."""
        while True:
            snapshot = await take()
            try:
                return await in_pool(pool, work, snapshot, *args, **kwargs)
            except FileNotFoundError:
                await self._forget_missing()
