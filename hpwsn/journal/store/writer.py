"""The writer thread: it commits all pending changes in one transaction and returns their outcomes.

A change is atomic. If a transaction fails, its changes are retried one by one, in order, so that a change
that cannot be written does not make others fail. A failure leaves no state behind: the next change is simply
tried, so the journal recovers when there is space again. On a full disk the reserve is released for the
write-ahead log, and the file may not grow until the reserve is taken again. Cursors still move, pruning
frees pages inside the file, and appends use these pages or are refused. `repeat` runs long work as a chain of
bounded steps, each in a transaction of its own, so that appends can run in between.
"""

from __future__ import annotations

import sqlite3
import threading
import time
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

from hpwsn.errors import JournalUnavailable
from hpwsn.histogram import Histogram
from hpwsn.journal.cursors.cursor_rows import drop_passed, move_cursors, put_ahead
from hpwsn.journal.store.append import Streams, insert_appends, queue_targeted
from hpwsn.journal.store.reserve import Reserve
from hpwsn.journal.store.tables import (
    checkpoint,
    free_pages,
    freeze_size,
    is_full,
    is_locked,
    limit_pages,
    max_pages,
    no_space,
    unavailable,
)
from hpwsn.notification import Run

MAX_GROUP = 2048
MAX_GROUP_BYTES = 8 << 20
CURSORS_ALONG = 256
ROOM_PAGES = 64

Work = Callable[[sqlite3.Connection], Any]
Submit = Callable[[Callable[[sqlite3.Connection], Any]], Awaitable[Any]]


@dataclass(slots=True, eq=False)
class Change:
    """A change to write, and its result or error; `handle` belongs to the caller.

    A change that `grows` the file, like every append, may not use the reserve.
    """

    handle: Any
    first: int = 0
    runs: Sequence[Run] = ()
    count: int = 0
    """The number of notifications in the runs."""
    size: int = 0
    work: Work | None = None
    grows: bool = False
    result: Any = None
    error: Exception | None = None


Settled = Callable[[list[Change]], None]


class Writer:
    """Owns the writing connection while its thread runs."""

    def __init__(
        self,
        db: sqlite3.Connection,
        path: Path,
        settled: Settled,
        reserve: Reserve,
        *,
        linger: float = 0.0,
        commit_times: Histogram | None = None,
    ) -> None:
        self._db = db
        self._path = path
        self._settled = settled
        self._reserve = reserve
        self._linger = linger
        self._commit_times = commit_times or Histogram()
        self._max_pages = max_pages(db)
        if not reserve.held:
            freeze_size(db)
        self._streams = Streams(db)
        self._waiting: SimpleQueue[Change | None] = SimpleQueue()
        self._cursors: dict[str, int] = {}
        self._taken: dict[str, int] = {}
        self._ahead: deque[tuple[str, Sequence[int]]] = deque()
        self._taken_ahead: list[tuple[str, Sequence[int]]] = []
        self._gone: list[int] = []
        self._thread = threading.Thread(target=self._run, name="journal-writer", daemon=True)
        self.commits = 0
        self.entries = 0
        self.changes = 0

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def submit(self, change: Change) -> None:
        """Queue a change; changes are written in the order of submission."""
        self._waiting.put(change)

    def stop(self) -> None:
        """Write all queued changes, close the connection, and wait for the thread to end."""
        self._waiting.put(None)
        self._thread.join()

    @property
    def waiting(self) -> int:
        """The number of queued changes."""
        return self._waiting.qsize()

    def advance(self, reader: str, offset: int) -> None:
        """Queue a cursor, which a later commit writes."""
        if offset > self._cursors.get(reader, -1):
            self._cursors[reader] = offset

    def advance_ahead(self, reader: str, offsets: Sequence[int]) -> None:
        """Queue offsets beyond a cursor that its reader is done with, which a later commit writes."""
        self._ahead.append((reader, offsets))

    @property
    def has_cursors(self) -> bool:
        """Whether there are unwritten cursors, or offsets beyond them."""
        return bool(self._cursors or self._ahead)

    def probe(self, db: sqlite3.Connection) -> None:
        """Raise an error unless an append could be written now."""
        db.execute("UPDATE removed SET upto = upto")
        if free_pages(db) < ROOM_PAGES:
            raise no_space(self._path)

    def write_cursors(self, db: sqlite3.Connection, limit: int | None = None) -> None:
        """Move cursors forward, never back; cursors of removed readers are ignored."""
        while self._cursors and (limit is None or len(self._taken) < limit):
            reader, offset = self._cursors.popitem()
            self._taken[reader] = offset
        if self._taken:
            move_cursors(db, self._taken)
            drop_passed(db, self._taken)
        while self._ahead:
            self._taken_ahead.append(self._ahead.popleft())
        for reader, offsets in self._taken_ahead:
            put_ahead(db, reader, offsets)

    def discard_streams(self, numbers: Sequence[int]) -> None:
        """Forget streams once the transaction that removes them is committed."""
        self._gone.extend(numbers)

    def _run(self) -> None:
        try:
            while (change := self._waiting.get()) is not None:
                if self._linger:
                    time.sleep(self._linger)
                group, last = self._gather(change)
                try:
                    self._write(group)
                except Exception as error:
                    self._fail(group, JournalUnavailable(f"the journal {self._path} cannot be used: {error}"))
                self._settled(group)
                if last:
                    break
        finally:
            self._db.close()

    def _gather(self, change: Change) -> tuple[list[Change], bool]:
        group, rows, size = [change], change.count, change.size
        while rows < MAX_GROUP and size < MAX_GROUP_BYTES:
            try:
                following = self._waiting.get_nowait()
            except Empty:
                break
            if following is None:
                return group, True
            group.append(following)
            rows += following.count or 1
            size += following.size
        return group, False

    def _write(self, group: list[Change]) -> None:
        possible = self._possible(group)
        error = self._attempt_with_reserve(possible)
        if error is not None:
            self._write_singly(possible, error)

    def _possible(self, group: list[Change]) -> list[Change]:
        """The changes to try: without the reserve, growing changes need free pages inside the file."""
        growing = [change for change in group if change.grows]
        if not growing or self._has_reserve() or free_pages(self._db) >= ROOM_PAGES:
            return group
        for change in growing:
            change.error = no_space(self._path)
        return [change for change in group if not change.grows]

    def _has_reserve(self) -> bool:
        if not self._reserve.held and self._reserve.take():
            limit_pages(self._db, self._max_pages)
        return self._reserve.held

    def _attempt_with_reserve(self, group: list[Change]) -> Exception | None:
        """Try a transaction; on a full disk, free the reserve and try once more."""
        error = self._attempt(group)
        if error is None or not is_full(error) or not self._reserve.is_wanted():
            return error
        self._reserve.release()
        checkpoint(self._db)
        freeze_size(self._db)
        return self._attempt(group)

    def _write_singly(self, group: list[Change], error: Exception) -> None:
        if len(group) == 1 or is_locked(error):
            self._fail(group, error)
            return
        for number, change in enumerate(group):
            found = self._attempt_with_reserve([change])
            if found is not None and is_locked(found):
                self._fail(group[number:], found)
                return
            if found is not None:
                self._fail([change], found)

    def _fail(self, group: list[Change], error: Exception) -> None:
        said = error
        if isinstance(error, sqlite3.Error):
            said = unavailable(self._path, error)
            said.__cause__ = error
        for change in group:
            change.error = said

    def _attempt(self, group: list[Change]) -> Exception | None:
        if not group:
            return None
        began = time.perf_counter()
        try:
            self._transact(group)
        except Exception as error:
            self._roll_back()
            return error
        self._commit_times.observe(time.perf_counter() - began)
        self._count(group)
        return None

    def _transact(self, group: list[Change]) -> None:
        db = self._db
        db.execute("BEGIN IMMEDIATE")
        appends = [(change.first, change.runs) for change in group if change.runs]
        if appends:
            insert_appends(db, self._streams, appends)
        # A pull point's queue keeps the order of submission for posted and for subscribed notifications.
        for change in group:
            if change.runs:
                queue_targeted(db, change.first, change.runs)
            if change.work is not None:
                change.result = change.work(db)
        self.write_cursors(db, CURSORS_ALONG)
        db.execute("COMMIT")

    def _count(self, group: list[Change]) -> None:
        if self._streams.new:
            self._streams.committed()
        if self._gone:
            self._streams.discard(self._gone)
            self._gone.clear()
        self._taken.clear()
        self._taken_ahead.clear()
        self.commits += 1
        self.changes += len(group)
        self.entries += sum(change.count for change in group)

    def _roll_back(self) -> None:
        self._streams.rolled_back()
        self._gone.clear()
        for reader, offset in self._taken.items():
            self._cursors.setdefault(reader, offset)  # keep a newer cursor that came in the meantime
        self._taken.clear()
        self._ahead.extendleft(reversed(self._taken_ahead))
        self._taken_ahead.clear()
        try:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
        except sqlite3.Error:
            pass  # SQLite has rolled back by itself, or the next BEGIN says what is wrong


@dataclass(frozen=True, slots=True)
class Step:
    """The result of a step: where the next one starts, None at the end, and how much was removed."""

    upto: int | None
    removed: int


async def repeat(
    submit: Submit, work: Callable[[int], Callable[[sqlite3.Connection], Step]], start: int = 0
) -> int:
    """Run steps to the end, each from where the last one stopped; return how much they removed."""
    removed, after = 0, start
    while True:
        step: Step = await submit(work(after))
        removed += step.removed
        if step.upto is None:
            return removed
        after = step.upto
