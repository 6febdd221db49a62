"""What routing keeps in the journal: which notifications other nodes have not all confirmed, and which came.

A reliable notification of this node is noted in the transaction that stores it, and stays noted until every
node that wants it has it. What came from others reliably is noted by its id in the transaction that stores
it, in the table of frames, until its origin says that it will not send it again. The epoch is the life of
this journal, since offsets mean nothing in another one.
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
    """What a node that starts has to go on with: its epoch, its own by offset and flags, and what came."""

    epoch: int
    own: list[tuple[int, int]]
    stored: list[FrameRange]


def route_source(origin: str, epoch: int) -> str:
    """The source of frames under which the publications of another node are noted."""
    return f"{SOURCE}{epoch}:{origin}"


def parse_route_source(source: str) -> tuple[str, int]:
    """The origin and the epoch of a source."""
    epoch, _, origin = source.removeprefix(SOURCE).partition(":")
    return origin, int(epoch)


class Routed:
    """The state of routing in the journal."""

    def __init__(self, change: Change) -> None:
        self._change = change

    async def start(self, epoch: int) -> Unconfirmed:
        """What is there; a new journal gets this epoch."""

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
        """Forget own ones up to an offset, and of each source given what lies before its `first`."""

        def work(db: sqlite3.Connection) -> None:
            db.execute("DELETE FROM routed WHERE offset <= ?", (upto,))
            for floor in floors:
                db.execute("DELETE FROM frames WHERE source = ? AND last < ?", (floor.source, floor.first))

        return self._change(work)
