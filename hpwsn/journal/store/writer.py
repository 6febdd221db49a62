"""The thread that writes: it takes all that waits, makes one transaction of it, and hands the outcomes
back.

One change is all or nothing. When a transaction fails, its changes are tried again one by one, in order,
so that one that cannot be written (too large for what is left, say) takes no other with it. Nothing is
kept back after a failure: the next change simply tries again, which is how the journal recovers when
space is back. On a full disk the reserve is given up to the write-ahead log, and the file may not grow
until the reserve is back: cursors move, pruning makes room inside the file, and appends go on in that
room or are refused.

Long work as a chain of bounded steps, each a transaction among others, so that appends come in between.
"""

from __future__ import annotations

import json
import sqlite3
import threading
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

from hpwsn.errors import JournalUnavailable
from hpwsn.journal.store.append import Streams, insert_appends, queue_targeted
from hpwsn.journal.store.reserve import Reserve
from hpwsn.journal.store.tables import (
    fold,
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


@dataclass(frozen=True, slots=True)
class Step:
    """How far a step came and what it removed; None when there is no more to look at."""

    upto: int | None
    removed: int


Submit = Callable[[Callable[[sqlite3.Connection], Any]], Awaitable[Any]]


async def repeat(
    submit: Submit, work: Callable[[int], Callable[[sqlite3.Connection], Step]], start: int = 0
) -> int:
    """Take steps, each from where the last one stopped, to the end; give how much they removed."""
    removed, after = 0, start
    while True:
        step: Step = await submit(work(after))
        removed += step.removed
        if step.upto is None:
            return removed
        after = step.upto


MAX_GROUP = 2048
MAX_GROUP_BYTES = 8 << 20
CURSORS_ALONG = 256
ROOM_PAGES = 64

Work = Callable[[sqlite3.Connection], Any]


@dataclass(slots=True, eq=False)
class Change:
    """Something to write and what became of it; `handle` is the caller's own and means nothing here.

    What `grows`, as every append does, may not use the reserve.
    """

    handle: Any
    first: int = 0
    runs: Sequence[Run] = ()
    count: int = 0
    """Notifications in the runs."""
    size: int = 0
    work: Work | None = None
    grows: bool = False
    result: Any = None
    error: Exception | None = None


Settled = Callable[[list[Change]], None]


class Writer:
    """Owns the writing connection from the start of its thread to the end."""

    def __init__(
        self,
        db: sqlite3.Connection,
        path: Path,
        settled: Settled,
        reserve: Reserve,
        *,
        linger: float = 0.0,
    ) -> None:
        self._db = db
        self._path = path
        self._settled = settled
        self._reserve = reserve
        self._linger = linger
        self._max_pages = max_pages(db)
        if not reserve.held:
            freeze_size(db)
        self._streams = Streams(db)
        self._waiting: SimpleQueue[Change | None] = SimpleQueue()
        self._cursors: dict[str, int] = {}
        self._taken: dict[str, int] = {}
        self._gone: list[int] = []
        self._thread = threading.Thread(target=self._run, name="journal-writer", daemon=True)
        self.commits = 0
        self.entries = 0
        self.changes = 0

    def start(self) -> None:
        """Begin to write."""
        self._thread.start()

    def submit(self, change: Change) -> None:
        """Have a change written after all that came before it."""
        self._waiting.put(change)

    def stop(self) -> None:
        """Write what waits, close the connection, and come back when that is done."""
        self._waiting.put(None)
        self._thread.join()

    @property
    def waiting(self) -> int:
        """How many changes have not been looked at."""
        return self._waiting.qsize()

    def advance(self, reader: str, offset: int) -> None:
        """Note a cursor, to be written along with some commit."""
        if offset > self._cursors.get(reader, -1):
            self._cursors[reader] = offset

    @property
    def has_cursors(self) -> bool:
        """Whether cursors wait to be written."""
        return bool(self._cursors)

    def probe(self, db: sqlite3.Connection) -> None:
        """Fail unless an append could be written now."""
        db.execute("UPDATE removed SET upto = upto")
        if free_pages(db) < ROOM_PAGES:
            raise no_space(self._path)

    def write_cursors(self, db: sqlite3.Connection, limit: int | None = None) -> None:
        """Move cursors forward, never back and never those of readers that are gone."""
        while self._cursors and (limit is None or len(self._taken) < limit):
            reader, offset = self._cursors.popitem()
            self._taken[reader] = offset
        if self._taken:
            move_cursors(db, self._taken)

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
        error = self._insist(possible)
        if error is not None:
            self._write_singly(possible, error)

    def _possible(self, group: list[Change]) -> list[Change]:
        """The changes that may be tried: without the reserve, those that grow need room inside the file."""
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

    def _insist(self, group: list[Change]) -> Exception | None:
        """Try, and once more with all the room that can be made."""
        error = self._attempt(group)
        if error is None or not is_full(error) or not self._reserve.is_wanted():
            return error
        self._reserve.release()
        fold(self._db)
        freeze_size(self._db)
        return self._attempt(group)

    def _write_singly(self, group: list[Change], error: Exception) -> None:
        if len(group) == 1 or is_locked(error):
            self._fail(group, error)
            return
        for number, change in enumerate(group):
            found = self._insist([change])
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
        try:
            self._transact(group)
        except Exception as error:
            self._roll_back()
            return error
        self._count(group)
        return None

    def _transact(self, group: list[Change]) -> None:
        db = self._db
        db.execute("BEGIN IMMEDIATE")
        appends = [(change.first, change.runs) for change in group if change.runs]
        if appends:
            insert_appends(db, self._streams, appends)
        # A pull point's queue is in the order of submission, whichever way something comes into it.
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
        self.commits += 1
        self.changes += len(group)
        self.entries += sum(change.count for change in group)

    def _roll_back(self) -> None:
        self._streams.rolled_back()
        self._gone.clear()
        for reader, offset in self._taken.items():
            self._cursors.setdefault(reader, offset)  # a newer one may be there by now
        self._taken.clear()
        try:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
        except sqlite3.Error:
            pass  # SQLite has rolled back by itself, or the next BEGIN says what is wrong


def move_cursors(db: sqlite3.Connection, cursors: dict[str, int]) -> None:
    """Move many cursors in one statement."""
    db.execute(
        "UPDATE cursors SET offset = max(cursors.offset, j.value)"
        " FROM json_each(?) AS j WHERE cursors.id = j.key",
        (json.dumps(cursors),),
    )
