"""Pull points: queues from which a subscriber fetches its messages. WS-BaseNotification 1.3, section 5.

A pull point is a consumer: subscriptions deliver into its queue, and a Notify can be sent to its address. The
queue itself is in the journal; this module has the registry and the unacknowledged batches.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from hpwsn.broker.subscriptions.resource_addresses import PLAIN_IDS, ResourceIds
from hpwsn.journal.journal import Journal
from hpwsn.journal.store.records import Pulled, PullPointRecord
from hpwsn.settings import PullPointsSettings
from hpwsn_client.wsn.soap import faults

log = logging.getLogger(__name__)


@dataclass(slots=True, eq=False)
class UnconfirmedBatch:
    """Messages of one response, by their sequence numbers in the queue."""

    first: int
    last: int
    named: bool
    """The client confirms batches explicitly by name; its next call alone confirms nothing."""
    written: bool = False


@dataclass(slots=True, eq=False)
class PullPoint:
    """One pull point, with its id and an optional name from its creator."""

    id: str
    name: str | None
    created: float
    confirmed: int = 0
    """The last sequence number that a client has confirmed by name."""
    handed_out: int = 0
    """The last sequence number that was sent to a client."""
    batches: list[UnconfirmedBatch] = field(default_factory=list)
    reading: asyncio.Lock = field(default_factory=asyncio.Lock)
    watches: set[asyncio.Event] = field(default_factory=set)
    """One event for each waiting client, set when a message may have arrived."""
    confirming: asyncio.Future[int] | None = None
    """The last removal of received messages, which may still run."""

    async def settled(self) -> None:
        """Wait until the received messages are removed from the queue, or the removal has failed."""
        if self.confirming is not None:
            await asyncio.wait([self.confirming])

    def wake(self) -> None:
        """Wake every waiting client."""
        for watch in self.watches:
            watch.set()


def batch_name(seq: int) -> str:
    """The name by which a client confirms a batch: the sequence number of its last message."""
    return f"b-{seq}"


def _place(name: str) -> int:
    digits = name.removeprefix("b-")
    return int(digits) if digits != name and digits.isdecimal() and len(digits) < 19 else 0


class PullPoints:
    """The registry of a node's pull points."""

    def __init__(
        self,
        journal: Journal,
        *,
        settings: PullPointsSettings,
        clock: Callable[[], float],
        ids: ResourceIds = PLAIN_IDS,
    ) -> None:
        self._journal = journal
        self._ids = ids
        self._limit = settings.limit
        self._max_messages = settings.max_messages
        self._queue_limit = settings.queue_limit
        self._confirm_after = settings.confirm_after
        self._filled: set[str] = set()
        self._naming = asyncio.Lock()
        self.dropped = 0
        self.expired = 0
        self._clock = clock
        self._by_id: dict[str, PullPoint] = {}
        self._by_name: dict[str, PullPoint] = {}

    async def create(self, name: str | None = None) -> PullPoint:
        """Create a pull point, or return the existing one with this name."""
        async with self._naming:
            return self._by_name.get(name or "") or await self._create(name)

    async def _create(self, name: str | None) -> PullPoint:
        if len(self._by_id) >= self._limit:
            raise faults.UnableToCreatePullPointFault(
                f"this node holds its limit of {self._limit} pull points (pull_points.limit);"
                " destroy some or raise it"
            )
        point = PullPoint(self._ids(), name or None, self._clock())
        self._admit(point)
        try:
            await self._journal.put_pull_point(PullPointRecord(point.id, point.name, point.created))
        except BaseException:
            self._remove(point)
            raise
        return point

    def get(self, id_: str) -> PullPoint:
        """The pull point by its id; ResourceUnknownFault if it does not exist."""
        point = self._by_id.get(id_)
        if point is None:
            raise faults.ResourceUnknownFault(
                f"pull point {id_!r} does not exist here: it was destroyed, or never created; create another"
            )
        return point

    async def hand_out(
        self,
        id_: str,
        maximum: int | None,
        confirm: str | None,
        expired: Callable[[Pulled], bool] = lambda entry: False,
    ) -> Sequence[Pulled]:
        """Return the oldest messages, and acknowledge received ones.

        A client that confirms by name gets all messages after the last batch that it confirmed. For other
        clients, a call acknowledges everything sent before, and returns messages that were not sent yet.
        Expired messages are removed from the queue instead.
        """
        point = self.get(id_)
        limit = self._max_messages if maximum is None else min(maximum, self._max_messages)
        async with point.reading:
            if confirm is None:
                after = self._received(point)
            else:
                await point.settled()
                after = await self._named(point, _place(confirm))
            pulled = await self._pull(point, limit, after, expired) if limit else ()
            if pulled:
                point.handed_out = max(point.handed_out, pulled[-1].seq)
                point.batches.append(UnconfirmedBatch(pulled[0].seq, pulled[-1].seq, confirm is not None))
        return pulled

    async def _pull(
        self, point: PullPoint, limit: int, after: int, expired: Callable[[Pulled], bool]
    ) -> Sequence[Pulled]:
        while pulled := await self._journal.pull(point.id, limit, after=after):
            if gone := {entry.seq for entry in pulled if expired(entry)}:
                self._journal.discard(point.id, gone).add_done_callback(self._count_expired)
            if len(gone) < len(pulled):
                return [entry for entry in pulled if entry.seq not in gone]
            after = pulled[-1].seq
        return ()

    def _count_expired(self, ended: asyncio.Future[int]) -> None:
        _note_failure(ended)
        if not ended.cancelled() and ended.exception() is None:
            self.expired += ended.result()

    def _received(self, point: PullPoint) -> int:
        for batch in [batch for batch in point.batches if batch.written and not batch.named]:
            self._confirm(point, batch)
        return point.handed_out

    async def _named(self, point: PullPoint, place: int) -> int:
        """Remove the batches up to a sequence number, which is valid even after a restart."""
        if point.confirmed < place and (place <= point.handed_out or not point.handed_out):
            await self._journal.confirm(point.id, place)
            point.confirmed = place
        # Unconfirmed batches of such clients are sent again, so they need no record.
        point.batches = [batch for batch in point.batches if not batch.named and batch.last > point.confirmed]
        return point.confirmed

    async def handed_out(self, id_: str, pulled: Sequence[Pulled], taken: bool) -> None:
        """Record whether the response was written; if not, its messages are sent again."""
        point = self._by_id.get(id_)
        first, last = pulled[0].seq, pulled[-1].seq
        batch = (
            next((b for b in point.batches if (b.first, b.last) == (first, last)), None) if point else None
        )
        if point is None or batch is None:
            return
        batch.written = taken
        if not taken:
            point.batches.remove(batch)
            point.handed_out = min(point.handed_out, batch.first - 1)
            point.wake()
        elif self._confirm_after and not batch.named:
            asyncio.get_running_loop().call_later(self._confirm_after, self._confirm, point, batch)

    def _confirm(self, point: PullPoint, batch: UnconfirmedBatch) -> None:
        """Remove received messages; if the journal fails, they are sent again after a restart."""
        if batch in point.batches and point.id in self._by_id:
            point.batches.remove(batch)
            confirming = point.confirming = self._journal.confirm(point.id, batch.last, batch.first)
            confirming.add_done_callback(_note_failure)

    def received(self, id_: str) -> None:
        """Acknowledge all messages written so far, because the client has called again."""
        self._received(self.get(id_))

    def arrived(self, id_: str) -> None:
        """Wake the clients that wait for this queue, which has new messages."""
        point = self._by_id.get(id_)
        if point is not None:
            point.wake()

    def filled(self, id_: str) -> None:
        """Mark a queue that has grown, so that `trim` checks its length."""
        self._filled.add(id_)

    async def trim(self) -> None:
        """Drop the oldest messages of queues beyond `pull_points.queue_limit`."""
        filled, self._filled = self._filled, set()
        for id_ in filled & self._by_id.keys():
            dropped = await self._journal.trim(id_, self._queue_limit)
            if dropped:
                self.dropped += dropped
                log.warning("pull point %s is full: its %d oldest messages were dropped", id_, dropped)

    async def destroy(self, id_: str) -> None:
        """Remove a pull point and its queue."""
        point = self.get(id_)
        await self._journal.delete_pull_point(point.id)
        self._remove(point)

    def restore(self, records: Iterable[PullPointRecord]) -> int:
        """Restore the pull points of the journal; return their number."""
        for record in records:
            self._admit(PullPoint(record.id, record.name, record.created))
        return len(self._by_id)

    def _admit(self, point: PullPoint) -> None:
        self._by_id[point.id] = point
        if point.name:
            self._by_name[point.name] = point

    def _remove(self, point: PullPoint) -> None:
        self._by_id.pop(point.id, None)
        point.wake()
        if point.name:
            self._by_name.pop(point.name, None)

    def __iter__(self) -> Iterator[PullPoint]:
        return iter(list(self._by_id.values()))

    def __contains__(self, id_: object) -> bool:
        return id_ in self._by_id

    def __len__(self) -> int:
        return len(self._by_id)


def _note_failure(ended: asyncio.Future[int]) -> None:
    if not ended.cancelled() and ended.exception() is not None:
        log.warning("received or expired messages stay in the journal: %s", ended.exception())
