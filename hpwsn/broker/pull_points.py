"""Pull points: queues that a subscriber empties itself. WS-BaseNotification 1.3, section 5.

A pull point is a consumer like any other: subscriptions are delivered into its queue, and anybody may send a
Notify to its address. The queue is in the journal; here is only what names it.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from hpwsn.errors import JournalUnavailable
from hpwsn.journal.journal import Journal
from hpwsn.journal.records import Pulled, PullPointRecord
from hpwsn.settings import PullPointsSettings
from hpwsn_client.wsn import faults

log = logging.getLogger(__name__)


@dataclass(slots=True, eq=False)
class PullPoint:
    """One queue, named by its id and, if its creator gave one, by a name."""

    id: str
    name: str | None
    created: float
    confirmed: int = 0
    handed_out: int = 0
    """The last places in the queue that clients have received, and that are on their way to one."""
    reading: asyncio.Lock = field(default_factory=asyncio.Lock)
    timer: asyncio.TimerHandle | None = None


def batch_name(seq: int) -> str:
    """What a client confirms a batch by: the place of its last message."""
    return f"b-{seq}"


class PullPoints:
    """The registry of a node's pull points."""

    def __init__(self, journal: Journal, *, settings: PullPointsSettings, clock: Callable[[], float]) -> None:
        self._journal = journal
        self._limit = settings.limit
        self._max_messages = settings.max_messages
        self._queue_limit = settings.queue_limit
        self._confirm_after = settings.confirm_after
        self._filled: set[str] = set()
        self.dropped = 0
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

    async def hand_out(self, id_: str, maximum: int | None, confirm: str | None) -> Sequence[Pulled]:
        """The oldest messages that are not on their way yet.

        A client that names what it received last (`confirm`) gets the rest again and again until it does; for
        another, this call tells that it received the batch before.
        """
        point = self.get(id_)
        limit = self._max_messages if maximum is None else min(maximum, self._max_messages)
        async with point.reading:
            if confirm is None or (point.handed_out and confirm == batch_name(point.handed_out)):
                self._confirm(point, point.handed_out)
            else:
                point.handed_out = point.confirmed
            pulled = await self._journal.pull(point.id, limit, after=point.handed_out) if limit else ()
            if pulled:
                point.handed_out = pulled[-1].seq
        return pulled

    async def handed_out(self, id_: str, pulled: Sequence[Pulled], taken: bool) -> None:
        """Told whether the client's connection took the answer; if not, it is handed out again."""
        point = self._by_id.get(id_)
        if point is None:
            return
        if not taken:
            point.handed_out = min(point.handed_out, pulled[0].seq - 1)
        elif self._confirm_after:
            self._confirm_later(point, pulled[-1].seq)

    def _confirm_later(self, point: PullPoint, upto: int) -> None:
        if point.timer is not None:
            point.timer.cancel()
        loop = asyncio.get_running_loop()
        point.timer = loop.call_later(self._confirm_after, self._confirm, point, upto)

    def _confirm(self, point: PullPoint, upto: int) -> None:
        """Remove what a client has received; if the journal cannot now, the next batch takes it along."""
        if upto > point.confirmed and point.id in self._by_id:
            point.confirmed = upto
            self._journal.confirm(point.id, upto).add_done_callback(_ignore_unavailable)

    def filled(self, id_: str) -> None:
        """Note that something came into a queue, which may be too long now."""
        self._filled.add(id_)

    async def trim(self) -> None:
        """Drop the oldest messages of pull points that nobody empties."""
        filled, self._filled = self._filled, set()
        for id_ in filled & self._by_id.keys():
            dropped = await self._journal.trim(id_, self._queue_limit)
            if dropped:
                self.dropped += dropped
                log.warning("pull point %s is full: its %d oldest messages were dropped", id_, dropped)

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
        if point.timer is not None:
            point.timer.cancel()
        self._by_id.pop(point.id, None)
        if point.name:
            self._by_name.pop(point.name, None)

    def __contains__(self, id_: object) -> bool:
        return id_ in self._by_id

    def __len__(self) -> int:
        return len(self._by_id)


def _ignore_unavailable(ended: asyncio.Future[int]) -> None:
    if not ended.cancelled() and not isinstance(ended.exception(), JournalUnavailable | None):
        log.error("a confirmed batch could not be removed", exc_info=ended.exception())
