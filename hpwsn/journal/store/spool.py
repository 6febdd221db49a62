"""The backbone's state in the journal: frames that wait for its server, and the numbers of stored frames.

One transaction adds the notifications of a frame to the log, removes the frame from the spool and extends the
range of stored frames. So a crash neither loses a frame nor stores it twice. With peers, the offsets of their
notifications are kept until the cursor `peers` has passed them.
"""

import asyncio
import json
import sqlite3
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any

from hpwsn.journal.store.append import insert_rows, micros
from hpwsn.journal.store.records import FrameRange, SpooledFrame, SpoolSize
from hpwsn.journal.store.writer import Step, Work, repeat

PEERS = "peers"
STEP = 1000
_FIRST = "SELECT source, number, notifications, body FROM spool ORDER BY seq LIMIT ?"

Change = Callable[..., asyncio.Future[Any]]
Read = Callable[[Work], Awaitable[Any]]


class Spool:
    """The waiting frames in order, and the ranges of stored frames."""

    def __init__(self, change: Change, read: Read) -> None:
        self._change = change
        self._read = read

    def put(self, frames: Sequence[SpooledFrame]) -> asyncio.Future[None]:
        """Append frames to the spool, all or none; frames that are already there are skipped."""
        values = [value for f in frames for value in (f.source, f.number, f.notifications, f.body)]

        def work(db: sqlite3.Connection) -> None:
            insert_rows(
                db, "INSERT OR IGNORE INTO spool (source, number, notifications, body) VALUES", 4, values
            )

        return self._change(work, grows=True)

    async def first(self, limit: int, room: int) -> list[SpooledFrame]:
        """The oldest frames that fit into `room` bytes, at least one."""

        def work(db: sqlite3.Connection) -> list[SpooledFrame]:
            found: list[SpooledFrame] = []
            left = room
            for row in db.execute(_FIRST, (limit,)):
                frame = SpooledFrame(*row)
                left -= len(frame.body)
                if found and left < 0:
                    break
                found.append(frame)
            return found

        found: list[SpooledFrame] = await self._read(work)
        return found

    def drop(self, frames: Sequence[FrameRange]) -> asyncio.Future[None]:
        """Remove frames whose notifications are already in the log."""
        return self._change(lambda db: _unspool(db, frames))

    async def size(self) -> SpoolSize:
        """The size of the spool."""

        def work(db: sqlite3.Connection) -> SpoolSize:
            figures = "count(*), coalesce(sum(notifications), 0), coalesce(sum(length(body)), 0)"
            return SpoolSize(*db.execute(f"SELECT {figures} FROM spool").fetchone())

        found: SpoolSize = await self._read(work)
        return found

    async def ranges(self) -> list[FrameRange]:
        """The ranges of stored frames."""

        def work(db: sqlite3.Connection) -> list[FrameRange]:
            rows = db.execute("SELECT source, first, last FROM frames ORDER BY source, first")
            return [FrameRange(*row) for row in rows]

        found: list[FrameRange] = await self._read(work)
        return found

    async def forget(self, before: float) -> int:
        """Remove the ranges of sources that were silent since a time; return how many were removed."""

        def work(db: sqlite3.Connection) -> Step:
            removed = db.execute(
                "DELETE FROM frames WHERE (source, first) IN"
                " (SELECT source, first FROM frames WHERE time < ? LIMIT ?)",
                (micros(before), STEP),
            ).rowcount
            return Step(None if removed < STEP else 0, removed)

        return await repeat(self._change, lambda _: work)

    async def peers(self, head: int) -> tuple[int, list[tuple[int, int]]]:
        """The cursor of the peers, initially `head`, and the offset ranges after it that came from peers."""

        def start(db: sqlite3.Connection) -> tuple[int, list[tuple[int, int]]]:
            db.execute("INSERT OR IGNORE INTO cursors VALUES (?, ?)", (PEERS, head))
            (cursor,) = db.execute("SELECT offset FROM cursors WHERE id = ?", (PEERS,)).fetchone()
            rows = db.execute("SELECT first, last FROM from_peers WHERE last > ? ORDER BY first", (cursor,))
            return cursor, rows.fetchall()

        found: tuple[int, list[tuple[int, int]]] = await self._change(start, grows=True)
        return found

    async def topics(self) -> list[str]:
        """The keys of all topics in the log."""

        def work(db: sqlite3.Connection) -> list[str]:
            rows = db.execute("SELECT topic FROM streams WHERE target = '' AND topic <> ''")
            return [topic for (topic,) in rows]

        found: list[str] = await self._read(work)
        return found

    def told_peers(self, cursor: int) -> asyncio.Future[None]:
        """Move the cursor of the peers."""

        def work(db: sqlite3.Connection) -> None:
            db.execute("UPDATE cursors SET offset = max(offset, ?) WHERE id = ?", (cursor, PEERS))
            db.execute("DELETE FROM from_peers WHERE last <= ?", (cursor,))

        return self._change(work)


def note_frames(
    frames: Sequence[FrameRange], ranges: Iterable[FrameRange], time: float, from_peers: int
) -> Callable[[int], Work]:
    """The work that an append at an offset runs: record its frames as stored, and unspool them."""
    moment = micros(time)
    rows = [value for r in ranges for value in (r.source, r.first, r.last, moment)]

    def at(first: int) -> Work:
        def work(db: sqlite3.Connection) -> None:
            insert_rows(db, "INSERT OR REPLACE INTO frames (source, first, last, time) VALUES", 4, rows)
            _unspool(db, frames)
            if from_peers:
                db.execute("INSERT INTO from_peers VALUES (?, ?)", (first, first + from_peers - 1))

        return work

    return at


def _unspool(db: sqlite3.Connection, frames: Sequence[FrameRange]) -> None:
    if frames:
        db.execute(
            "DELETE FROM spool WHERE (source, number) IN"
            " (SELECT json_extract(value, '$[0]'), json_extract(value, '$[1]') FROM json_each(?))",
            (json.dumps([(f.source, f.first) for f in frames]),),
        )
