"""Questions to the history: pages of rows, pictures, past readings, and whether there is a reading.

Each works on a snapshot of files and memory, in a thread. If a file was merged into another one meanwhile,
it is asked again. At most MOST_QUERIES questions are under way or wait; more are told to come back.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Concatenate, ParamSpec, TypeVar

from hpwsn.background import in_pool
from hpwsn.sensors.history.history_query import (
    HistoryBusy,
    HistoryDamaged,
    HistoryQuery,
    Page,
    Picture,
    Place,
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

    async def readings(self, query: HistoryQuery, limit: int) -> list[Reading]:
        """The first readings that a query means."""
        found: list[Reading] = []
        after: Place | None = None
        while len(found) < limit:
            page = await self.page(query, min(limit - len(found), AT_ONCE), after)
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
            return await self._try(pool, self._complete, work, *args, **kwargs)
        except HistoryDamaged as error:
            self._damaged(error)
            raise
        finally:
            self._asked -= 1

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
