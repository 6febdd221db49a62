"""Pull points: queues that a subscriber empties itself. WS-BaseNotification 1.3, section 5.

A pull point is a consumer like any other: subscriptions are delivered into its queue, and anybody may send a
Notify to its address. The queue is in the journal; here is only what names it.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from hpwsn.journal.journal import Journal
from hpwsn.journal.records import Pulled, PullPointRecord
from hpwsn_client.wsn import faults


@dataclass(slots=True, eq=False)
class PullPoint:
    """One queue, named by its id and, if its creator gave one, by a name."""

    id: str
    name: str | None
    created: float
    handed_out: int = 0
    """The last place in the queue that is on its way to a client."""
    reading: asyncio.Lock = field(default_factory=asyncio.Lock)


class PullPoints:
    """The registry of a node's pull points."""

    def __init__(
        self, journal: Journal, *, limit: int, max_messages: int, clock: Callable[[], float]
    ) -> None:
        self._journal = journal
        self._limit = limit
        self._max_messages = max_messages
        self._clock = clock
        self._by_id: dict[str, PullPoint] = {}
        self._by_name: dict[str, PullPoint] = {}

    async def create(self, name: str | None = None) -> PullPoint:
        """Make one, or give the one that has this name."""
        known = self._by_name.get(name) if name else None
        if known is not None:
            return known
        if len(self._by_id) >= self._limit:
            raise faults.UnableToCreatePullPointFault(
                f"this node holds its limit of {self._limit} pull points (pull_points.limit);"
                " destroy some or raise it"
            )
        point = PullPoint(secrets.token_hex(12), name or None, self._clock())
        self._admit(point)
        try:
            await self._journal.put_pull_point(PullPointRecord(point.id, point.name, point.created))
        except BaseException:
            self._remove(point)
            raise
        return point

    def get(self, id_: str) -> PullPoint:
        """The pull point by its id; ResourceUnknownFault if there is none."""
        point = self._by_id.get(id_)
        if point is None:
            raise faults.ResourceUnknownFault(
                f"there is no pull point {id_!r} here: it was destroyed, or never made; create another"
            )
        return point

    async def hand_out(self, id_: str, maximum: int | None) -> Sequence[Pulled]:
        """The oldest waiting messages; `handed_out` must be told what became of them."""
        point = self.get(id_)
        limit = self._max_messages if maximum is None else min(maximum, self._max_messages)
        if not limit:
            return ()
        async with point.reading:
            pulled = await self._journal.pull(point.id, limit, after=point.handed_out)
            if pulled:
                point.handed_out = pulled[-1].seq
        return pulled

    async def handed_out(self, id_: str, pulled: Sequence[Pulled], taken: bool) -> None:
        """Remove messages that their client has taken; the others are handed out again."""
        point = self._by_id.get(id_)
        if point is None:
            return
        if taken:
            await self._journal.confirm(id_, pulled[-1].seq)
        else:
            point.handed_out = min(point.handed_out, pulled[0].seq - 1)

    async def destroy(self, id_: str) -> None:
        """Remove it with all that waits in it."""
        point = self.get(id_)
        self._remove(point)
        await self._journal.delete_pull_point(point.id)

    def restore(self, records: Iterable[PullPointRecord]) -> int:
        """Bring back what the journal holds; returns how many."""
        for record in records:
            self._admit(PullPoint(record.id, record.name, record.created))
        return len(self._by_id)

    def _admit(self, point: PullPoint) -> None:
        self._by_id[point.id] = point
        if point.name:
            self._by_name[point.name] = point

    def _remove(self, point: PullPoint) -> None:
        self._by_id.pop(point.id, None)
        if point.name:
            self._by_name.pop(point.name, None)

    def __contains__(self, id_: object) -> bool:
        return id_ in self._by_id

    def __len__(self) -> int:
        return len(self._by_id)
