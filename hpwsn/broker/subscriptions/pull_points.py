"""Pull points: queues from which a subscriber fetches its messages. WS-BaseNotification 1.3, section 5.

A pull point is a consumer: subscriptions deliver into its queue, and a Notify can be sent to its address. The
queue itself is in the journal; this module has the registry and the unacknowledged batches.

A pull point with a lifetime ends when nobody has read it for that long. A read only notes its time; when a
lifetime may have passed, `idle` looks whether there was a read. The journal has the end of a pull point that
is never read, from which a restart learns the lifetime. A restart counts as a read, since nobody can read
while the node is down.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from hpwsn.broker.lifetimes.leases import Lifetimes
from hpwsn.broker.subscriptions.resource_addresses import PLAIN_IDS, ResourceIds
from hpwsn.journal.journal import Journal
from hpwsn.journal.store.records import Pulled, PullPointRecord
from hpwsn.listeners import Listeners
from hpwsn.settings import PullPointsSettings
from hpwsn_client.wsn.soap import faults
from hpwsn_client.wsn.soap.times import Duration

log = logging.getLogger(__name__)


RESERVED = "\x1f"
"""The first character of names that doors give; XML cannot contain it."""


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
    lifetime: float | None = None
    """Seconds without a read after which it is destroyed; None means never."""
    last_read: float | None = None
    """When a client last asked for messages; None if not since the node has started."""
    leased: float = 0.0
    """When the lifetime began, unless there was a read since."""
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

    @property
    def terminates(self) -> float | None:
        """When it ends if nobody reads it; None means never."""
        return None if self.lifetime is None else max(self.leased, self.last_read or 0.0) + self.lifetime

    @property
    def is_reserved(self) -> bool:
        """Whether a door has created it for a protocol of its own; no client can choose such a name."""
        return (self.name or "").startswith(RESERVED)

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
        self._idle_lifetime = settings.idle_lifetime or None
        self._lifetimes: Lifetimes[str] = Lifetimes()
        self.lifetimes_changed: Listeners[()] = Listeners("lifetimes of pull points")
        self._filled: set[str] = set()
        self._naming = asyncio.Lock()
        self.dropped = 0
        self.expired = 0
        self._clock = clock
        self._by_id: dict[str, PullPoint] = {}
        self._by_name: dict[str, PullPoint] = {}

    async def create(self, name: str | None = None, lifetime: Duration | None = None) -> PullPoint:
        """Create a pull point, or return the existing one with this name, with its lifetime begun anew."""
        now = self._clock()
        try:
            seconds = None if lifetime is None else _seconds(lifetime, now)
        except ValueError as error:
            raise faults.UnableToCreatePullPointFault(f"hp:lifetime: {error}") from None
        async with self._naming:
            existing = self._by_name.get(name or "")
            if existing is None:
                return await self._create(name, seconds)
            existing.leased = now
            if seconds is not None:
                await self._set_lifetime(existing, seconds)
            return existing

    async def _set_lifetime(self, point: PullPoint, seconds: float) -> None:
        before, point.lifetime = point.lifetime, seconds
        try:
            await self._journal.put_pull_point(_record(point, seconds))
        except BaseException:
            point.lifetime = before
            raise
        self._watch(point)

    async def _create(self, name: str | None, lifetime: float | None) -> PullPoint:
        if len(self._by_id) >= self._limit:
            raise faults.UnableToCreatePullPointFault(
                f"this node holds its limit of {self._limit} pull points (pull_points.limit);"
                " destroy some or raise it"
            )
        point = PullPoint(self._ids(), name or None, self._clock())
        self._admit(point, lifetime)
        try:
            await self._journal.put_pull_point(_record(point, lifetime))
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
        point.last_read = self._clock()
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
            own = None if record.terminates is None else record.terminates - record.created
            self._admit(PullPoint(record.id, record.name, record.created), own)
        return len(self._by_id)

    def _admit(self, point: PullPoint, lifetime: float | None) -> None:
        point.leased = self._clock()
        point.lifetime = None if point.is_reserved else lifetime or self._idle_lifetime
        self._by_id[point.id] = point
        if point.name:
            self._by_name[point.name] = point
        self._watch(point)

    def _watch(self, point: PullPoint) -> None:
        self._lifetimes.set(point.id, point.terminates)
        self.lifetimes_changed()

    def next_due(self) -> float | None:
        """When to look next for pull points that nobody reads; None if none has a lifetime."""
        return self._lifetimes.next_due()

    def idle(self, now: float) -> list[PullPoint]:
        """The pull points whose lifetime has passed without a read; each is returned once."""
        found = []
        for point in map(self.get, self._lifetimes.due(now)):
            if point.terminates is not None and point.terminates <= now:
                found.append(point)
            else:
                self._lifetimes.set(point.id, point.terminates)
        return found

    def keep(self, point: PullPoint, until: float) -> None:
        """Look again at a pull point that could not be destroyed."""
        if point.id in self._by_id:
            self._lifetimes.set(point.id, until)

    def _remove(self, point: PullPoint) -> None:
        self._by_id.pop(point.id, None)
        self._lifetimes.discard(point.id)
        point.wake()
        if point.name:
            self._by_name.pop(point.name, None)

    def __iter__(self) -> Iterator[PullPoint]:
        return iter(list(self._by_id.values()))

    def __contains__(self, id_: object) -> bool:
        return id_ in self._by_id

    def __len__(self) -> int:
        return len(self._by_id)


def _seconds(lifetime: Duration, now: float) -> float:
    """The seconds of a duration that begins now; a month has no fixed length."""
    start = datetime.fromtimestamp(now, UTC)
    return (lifetime.after(start) - start).total_seconds()


def _record(point: PullPoint, lifetime: float | None) -> PullPointRecord:
    """The record of a pull point; `lifetime` is what its creator asked for, not the default of the node."""
    return PullPointRecord(
        point.id, point.name, point.created, None if lifetime is None else point.created + lifetime
    )


def _note_failure(ended: asyncio.Future[int]) -> None:
    if not ended.cancelled() and ended.exception() is not None:
        log.warning("received or expired messages stay in the journal: %s", ended.exception())
