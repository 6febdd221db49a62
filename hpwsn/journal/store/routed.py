"""Routing's state in the journal: unconfirmed notifications of this node, and received ones of other nodes.

The transaction that stores a reliable notification of this node also records it as unconfirmed. The record
stays until every interested node has confirmed it. The transaction that stores a reliable notification of
another node records its id in the table `frames`, until its origin says that it will not resend it. The
epoch identifies this journal, since offsets are only valid within one journal.
"""

import asyncio
import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from hpwsn.journal.store.records import FrameRange

SOURCE = "route:"
Change = Callable[..., asyncio.Future[Any]]


@dataclass(frozen=True, slots=True)
class Unconfirmed:
    """The routing state at start: the epoch, own unconfirmed offsets with flags, and received ranges."""

    epoch: int
    own: list[tuple[int, int]]
    stored: list[FrameRange]


def route_source(origin: str, epoch: int) -> str:
    """The name in the table `frames` under which notifications of another node are recorded."""
    return f"{SOURCE}{epoch}:{origin}"


def parse_route_source(source: str) -> tuple[str, int]:
    """The origin and the epoch of a source."""
    epoch, _, origin = source.removeprefix(SOURCE).partition(":")
    return origin, int(epoch)


class Routed:
    """Reads and changes the routing state in the journal."""

    def __init__(self, change: Change) -> None:
        self._change = change

    async def start(self, epoch: int) -> Unconfirmed:
        """Read the state; a new journal gets this epoch."""

        def work(db: sqlite3.Connection) -> Unconfirmed:
            db.execute("INSERT INTO routing SELECT ? WHERE NOT EXISTS (SELECT 1 FROM routing)", (epoch,))
            (known,) = db.execute("SELECT epoch FROM routing").fetchone()
            own = db.execute("SELECT offset, flags FROM routed ORDER BY offset").fetchall()
            rows = db.execute(
                "SELECT source, first, last FROM frames WHERE source >= ? AND source < ?"
                " ORDER BY source, first",
                (SOURCE, SOURCE[:-1] + ";"),
            )
            return Unconfirmed(known, own, [FrameRange(*row) for row in rows])

        found: Unconfirmed = await self._change(work, grows=True)
        return found

    def confirmed(self, upto: int, floors: Sequence[FrameRange]) -> asyncio.Future[None]:
        """Forget own notifications up to an offset, and ranges of each given source before its `first`."""

        def work(db: sqlite3.Connection) -> None:
            db.execute("DELETE FROM routed WHERE offset <= ?", (upto,))
            for floor in floors:
                db.execute("DELETE FROM frames WHERE source = ? AND last < ?", (floor.source, floor.first))

        return self._change(work)
