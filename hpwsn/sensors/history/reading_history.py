"""The history of a node: keeps what was committed, and shows queries all of it.

Committed readings and results wait in memory for the next flush, which a thread does every FLUSH seconds. A
query sees them beside the files. What was committed before the history is ready, and what comes while the
disk refuses writes, is read from the log; retention of the log waits for it. Threads do all work on files.
Libraries are loaded with the first flush or query.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from itertools import chain, islice
from pathlib import Path
from typing import Any

from hpwsn.background import BackgroundTask, in_pool, in_thread
from hpwsn.notification import Run, count_of
from hpwsn.sensors.history.committed_results import results_of
from hpwsn.sensors.history.history_files import Catalogue, HistoryFile, find_files
from hpwsn.sensors.history.history_query import (
    HistoryBusy,
    HistoryDamaged,
    Row,
    Snapshot,
)
from hpwsn.sensors.history.history_state import HistoryState, open_history, save_state
from hpwsn.sensors.history.history_threads import HistoryThreads, flush_rows, merge_files, remove
from hpwsn.sensors.history.history_upkeep import MergePlan, outlived
from hpwsn.sensors.history.snapshot_queries import SnapshotQueries
from hpwsn.sensors.readings.reading import Reading

log = logging.getLogger(__name__)

FLUSH = 9.0
"""Seconds between two flushes, so that what was committed ten seconds ago is in a file."""
UPKEEP = 60.0
"""Seconds between two looks at what is to be merged or removed."""
MOST_PENDING = 200_000
"""Rows in memory; more of them are read from the log again when the disk takes them."""
CATCH_UP = 10.0
"""Seconds that a query waits for readings that are in the log, but not in memory."""

ReadLog = Callable[[int], Awaitable[tuple[int, Sequence[Row]]]]
"""Reads rows from the log, from an offset on; returns them, and the first offset that was not looked at."""


class ReadingHistory:
    """Readings and results of virtual sensors, in files and in memory."""

    def __init__(
        self,
        data: Path,
        *,
        age: float,
        size: int,
        clock: Callable[[], float],
        read_log: ReadLog,
        head: Callable[[], int],
    ) -> None:
        """Keep files in the data directory; `head` is the last offset of the log that is processed."""
        self._data = data
        self._age = age
        self._size = size
        self._clock = clock
        self._read_log = read_log
        self._head = head
        self._catalogue = Catalogue()
        self._state = HistoryState(0, 0)
        self._upto = 0
        """The first offset that is neither in files nor in memory."""
        self._pending: list[Row] = []
        self._flushing: list[Row] = []
        self._behind = True
        """Whether the log has more than files and memory, so that commits are not taken."""
        self._caught_up = asyncio.Event()
        self._wake = asyncio.Event()
        self._plan = MergePlan()
        self._threads = HistoryThreads()
        self._writing: asyncio.Future[bool] | None = None
        self._damaged: set[HistoryFile] = set()
        self._tasks = BackgroundTask(self._flush_periodically), BackgroundTask(self._tidy_periodically)
        self.problem: str | None = None
        """Why the last flush failed; None if it did not."""
        self.queries = SnapshotQueries(
            self._threads, self._complete, self._snapshot, self._forget_missing, self._note_damaged
        )

    async def open(self) -> None:
        """Find the files, and read from the log what a crash has kept from them."""
        self._state, files = await in_thread(open_history, self._data)
        self._catalogue = Catalogue(files)
        head = self._head()
        if self._state.next > head + 1:
            log.warning("the log ends at offset %d, before what was kept of it; going on there", head)
            self._state = self._state._replace(next=head + 1)
        self._upto = self._state.next
        await self._catch_up()
        for task in self._tasks:
            task.start()

    async def close(self) -> None:
        """Write everything to files."""
        for task in self._tasks:
            await task.close()
        if self._writing is not None:
            await self._writing
        if await self._flush() and self._state.number:
            await in_pool(self._threads.write, save_state, self._data, self._state)
        await in_thread(self._threads.close)

    @property
    def needed_from(self) -> int:
        """The first offset of the log that is not in files; retention must leave it."""
        idle = not (self._pending or self._flushing or self._behind)
        return self._upto if idle else self._state.next

    @property
    def damaged(self) -> int:
        """Files that could not be read."""
        return len(self._damaged)

    def figures(self) -> dict[str, Any]:
        """What an operator sees of the history."""
        return {
            "files": len(self._catalogue),
            "bytes": self._catalogue.size,
            "pending": len(self._pending) + len(self._flushing),
            "behind": self._behind,
            "damaged": self.damaged,
            "problem": self.problem,
        }

    def committed(self, first: int, runs: Sequence[Run]) -> None:
        """Take the results in new commits; called before `record` gets their readings."""
        if self._behind:
            return
        if first != self._upto or len(self._pending) >= MOST_PENDING:
            self._fall_behind()
            return
        self._pending += results_of(first, runs)
        self._upto = first + count_of(runs)

    def record(self, upto: int, batch: Iterable[tuple[int, Reading]]) -> None:
        """Take the readings of the commit that `committed` has just got, which ends before `upto`."""
        if self._behind:
            return
        if upto > self._upto:
            self._fall_behind()
            return
        self._pending += [Row(reading.time, offset, reading) for offset, reading in batch]
        if len(self._pending) >= MOST_PENDING // 2:
            self._wake.set()

    def _fall_behind(self) -> None:
        """Take no commits until the log was read."""
        self._behind = True
        self._caught_up.clear()
        self._wake.set()

    # Writing

    async def _flush_periodically(self) -> None:
        while True:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._wake.wait(), FLUSH)
            self._wake.clear()
            if await self._flush():
                await self._catch_up()
            else:
                await asyncio.sleep(FLUSH)

    async def _tidy_periodically(self) -> None:
        while True:
            await asyncio.sleep(UPKEEP)
            await self.tidy()

    async def _catch_up(self) -> None:
        """Read the log until there is nothing else; what comes after is taken as it is committed."""
        while self._behind:
            upto, rows = await self._read_log(self._upto)
            self._pending += rows
            moved, self._upto = upto > self._upto, max(upto, self._upto)
            if len(self._pending) >= MOST_PENDING // 2 and not await self._flush():
                return
            if self._upto > self._head():
                self._behind = False
                self._caught_up.set()
            elif not moved:
                return

    async def _flush(self) -> bool:
        """Write what is pending to files; whether everything is there now."""
        # A flush that has begun ends, even if who waits for it is cancelled.
        if self._writing is None or self._writing.done():
            self._writing = asyncio.ensure_future(self._write_pending())
        return await asyncio.shield(self._writing)

    async def _write_pending(self) -> bool:
        if not self._pending:
            self._state = self._state._replace(next=self._upto)
            return True
        self._flushing, self._pending, upto = self._pending, [], self._upto
        try:
            self._state, files = await in_pool(
                self._threads.write, flush_rows, self._data, self._state, self._flushing, upto
            )
        except Exception as error:
            self._pending = self._flushing + self._pending
            self._flushing = []
            if self.problem is None:
                log.error("readings cannot be kept: %s; they stay in the log until they can", error)
            self.problem = str(error)
            return False
        self._flushing = []
        self._catalogue.change(files, ())
        if self.problem is not None:
            log.info("readings are kept again")
        self.problem = None
        return True

    async def tidy(self) -> None:
        """Merge small files, and remove those beyond the limits of age and size."""
        files, now = tuple(self._catalogue), self._clock()
        gone = await in_pool(self._threads.write, outlived, files, now, self._age, self._size)
        if gone:
            self._catalogue.change((), gone)
            await in_pool(self._threads.write, remove, self._data, gone)
        while several := await in_pool(
            self._threads.write, self._plan.next, tuple(self._catalogue), self._clock()
        ):
            try:
                done = await in_pool(self._threads.write, merge_files, self._data, several)
            except HistoryDamaged as error:
                self._note_damaged(error)
                self._plan.leave(error.file)
                continue
            except FileNotFoundError:
                if not await self._forget_missing():
                    raise
                continue
            if done is None:
                self._plan.give_up(several)
                continue
            merged, old = done
            self._catalogue.change([merged], old)
            await in_pool(self._threads.write, remove, self._data, old)

    # Queries

    async def _complete(self) -> Snapshot:
        """All that is kept, once nothing of it is in the log alone; HistoryBusy if that takes long."""
        try:
            async with asyncio.timeout(CATCH_UP):
                while self._behind:
                    await self._caught_up.wait()
        except TimeoutError:
            reason = self.problem or "the disk is slower than the readings"
            raise HistoryBusy(f"some readings are only in the log ({reason}); try again later") from None
        return self._snapshot()

    def _snapshot(self) -> Snapshot:
        # A list that grows meanwhile is read up to its length now.
        rows = chain(self._flushing, islice(self._pending, len(self._pending)))
        return Snapshot(self._data, self._catalogue.days, rows)

    def _note_damaged(self, error: HistoryDamaged) -> None:
        """Log once that a file cannot be read; nothing is merged with it."""
        if error.file not in self._damaged:
            self._damaged.add(error.file)
            log.error("%s", error)

    async def _forget_missing(self) -> bool:
        """Drop files from the catalogue that somebody else has removed; whether there were some."""
        known = set(self._catalogue)
        there, _ = await in_pool(self._threads.read, find_files, self._data)
        missing = known.difference(there).intersection(self._catalogue)
        if missing:
            log.warning("%d files of readings are gone, such as %s", len(missing), min(missing).path)
            self._catalogue.change((), missing)
            self._damaged -= missing
        return bool(missing)
