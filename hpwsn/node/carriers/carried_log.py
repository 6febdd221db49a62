"""The log as carriers see it: what this node accepted and what carriers brought, in the order of the log.

What came by links is left out, since carriers take it from the node that accepted it; so is what is on an
internal topic or was posted to a pull point. The number of an event of this node is its offset in the log.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import NamedTuple

from hpwsn.background import in_thread
from hpwsn.dtn.bundles.bundle import NOTHING, CarriedEvent, Known, Origin
from hpwsn.dtn.carriers.carried_ids import offered
from hpwsn.journal.journal import Journal
from hpwsn.journal.store.records import Stored
from hpwsn.node.carriers.foreign_offsets import ForeignOffsets
from hpwsn.notification import Notification
from hpwsn.routing.wire.payloads import encode_payload
from hpwsn.routing.wire.publication import LargePayload
from hpwsn_client.wsn.topics.topic_expressions import Topic

READ_AT_ONCE = 200
"""Events between two turns of the event loop."""
ROOM = 1 << 20
"""Bytes of the log that are read at once."""


class Entry(NamedTuple):
    """An event that can be carried, with its offset in the log and its payload not encoded yet."""

    offset: int
    origin: Origin
    number: int
    previous: int
    time: int
    notification: Notification

    async def event(self) -> CarriedEvent:
        """The event as it goes into a bundle; a thread copies a large one."""
        # The id says where it came from, and goes into no payload; it is made again where it arrives.
        plain = self.notification._replace(message_id=None)
        payload = encode_payload(plain)
        if isinstance(payload, LargePayload):
            payload = await in_thread(b"".join, payload.parts)
        topic = None if plain.topic is None else str(plain.topic)
        return CarriedEvent(self.origin, self.number, self.previous, self.time, topic, payload)


class CarriedLog:
    """Reads the log of a node; `begin` is the first offset that carriers take."""

    def __init__(
        self, journal: Journal, foreign: ForeignOffsets, own: Origin, is_internal: Callable[[Topic], bool]
    ) -> None:
        self._journal = journal
        self._foreign = foreign
        self._own = own
        self._is_internal = is_internal
        self.begin = 1

    async def entries(self, start: int, head: int, own: Known = NOTHING) -> AsyncIterator[Entry]:
        """What can be carried from one offset to another, both included.

        `own` is what the receiver has of this node; `previous` of the first event of this node depends on it.
        """
        oldest = await self._journal.oldest()
        begin = max(start, 1)
        before = own.complete if own.complete + 1 >= oldest else oldest - 1
        async for offset, notification in self._read(begin, head):
            said = offered(notification.message_id)
            if said is not None:
                yield Entry(offset, *said[:4], notification)
            elif offset >= self.begin:
                # Below `oldest`, any number before this one may be that of an event which was removed.
                previous = offset - 1 if offset < oldest else min(before, offset - 1)
                yield Entry(offset, self._own, offset, previous, _micros(notification), notification)
                before = max(before, offset)

    async def _read(self, start: int, head: int) -> AsyncIterator[tuple[int, Notification]]:
        after = start - 1
        while after < head:
            page = await self._journal.scan(after, limit=READ_AT_ONCE, topics=None, head=head, room=ROOM)
            for offset, notification in map(_pair, page.entries):
                topic = notification.topic
                hidden = notification.target is not None or (topic is not None and self._is_internal(topic))
                if not hidden and offset not in self._foreign:
                    yield offset, notification
            after = max(page.upto, after + 1) if page.entries else max(page.upto, head)


def _pair(stored: Stored) -> tuple[int, Notification]:
    return stored.offset, stored.notification


def _micros(notification: Notification) -> int:
    return max(round(notification.time * 1e6), 0)
