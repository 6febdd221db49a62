"""The exchange of a node with carriers: what the door asks for, one request after the other.

It owns what is known of origins, of other nodes and of carriers, and writes it into the journal. A request
that was begun is ended even if its client goes away.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections import Counter
from collections.abc import Callable, Coroutine
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from hpwsn.background import BackgroundTask, in_thread
from hpwsn.broker.admission.admission import Admission
from hpwsn.broker.queueing.transmissions import Transmissions
from hpwsn.dtn.bundles.bundle import Bundle, Origin
from hpwsn.dtn.bundles.bundle_format import BadBundle, parse_bundle
from hpwsn.dtn.carriers.carried_ids import offered
from hpwsn.dtn.carriers.carrier_memory import CarrierMemory
from hpwsn.dtn.carriers.origin_order import OriginOrder
from hpwsn.journal.journal import Journal
from hpwsn.node.carriers.carried_log import CarriedLog
from hpwsn.node.carriers.carrier_documents import (
    CarrierDocuments,
    Documents,
    OwnState,
    read_memory,
    read_orders,
    read_self,
)
from hpwsn.node.carriers.collecting import Collecting
from hpwsn.node.carriers.delivering import Delivering, check_events, in_order
from hpwsn.node.carriers.foreign_offsets import KIND, ForeignOffsets
from hpwsn.node.carriers.outgoing_bundles import OutgoingBundle, OutgoingBundles
from hpwsn.settings import DtnSettings
from hpwsn.topics.tree.tree import TopicTree

log = logging.getLogger(__name__)

T = TypeVar("T")

LOOK_EVERY = 1.0
"""Seconds between two looks for events that were held long enough."""
NOTE_EVERY = 60.0
"""Seconds after which the end of the log is noted, so that a restart reads little of it."""


class CarrierExchange(BackgroundTask):
    """The carriers of one node."""

    def __init__(
        self,
        name: str,
        key: bytes,
        settings: DtnSettings,
        *,
        folder: Path,
        journal: Journal,
        admission: Admission,
        tree: TopicTree[Any],
        clock: Callable[[], float],
        community: Callable[[], int],
        transmissions: Transmissions,
    ) -> None:
        super().__init__(self._look)
        self._name = name
        self._key = key
        self._settings = settings
        self._journal = journal
        self._admission = admission
        self._tree = tree
        self._clock = clock
        self._community = community
        self._transmissions = transmissions
        self._waiting_in: dict[str, list[int]] = {}
        """By bundle that no carrier has yet: its events that wait in queues which count transmissions."""
        self._turn = asyncio.Lock()
        self._documents = CarrierDocuments(journal)
        self._outgoing = OutgoingBundles(folder, settings.bundles_kept)
        self.foreign = ForeignOffsets(journal)
        self._orders: dict[Origin, OriginOrder] = {}
        self._memory = CarrierMemory()
        self._state: OwnState | None = None
        self._log: CarriedLog
        self._delivering: Delivering
        self._counts: Counter[str] = Counter(collected=0, repeated=0, passed=0, refused=0)

    def restore(self, documents: Documents) -> None:
        """Take up what the journal has."""
        self.foreign.restore(documents.get(KIND, {}))
        self._state = read_self(documents)
        self._orders = read_orders(documents)
        self._memory = read_memory(documents)

    async def open(self, clustered: bool) -> None:
        """Find the events that carriers brought before the last stop and that no document tells of."""
        await in_thread(self._outgoing.open)
        head = self._journal.last_offset
        if self._state is None:
            # What links brought before is not known any more, so a node of a cluster begins with now.
            self._state = OwnState(secrets.randbits(60), head + 1 if clustered else 1, head)
            await self._documents.put_self(self._state)
        self._log = CarriedLog(self._journal, self.foreign, self._own, self._tree.is_internal)
        self._log.begin = self._state.begin
        await self._read_log(self._state.upto + 1, head)
        self._delivering = Delivering(
            self._name, self._settings, self._admission, self._documents, self._orders, self._clock
        )
        await self._note_end()
        self.start()

    async def close(self) -> None:
        """End the request that is under way, and stop."""
        await super().close()
        async with self._turn:
            await self._note_end()

    @property
    def _own(self) -> Origin:
        assert self._state is not None
        return Origin(self._name, self._state.epoch)

    async def _read_log(self, start: int, head: int) -> None:
        changed = {}
        async for entry in self._log.entries(start, head):
            if offered(entry.notification.message_id) is not None:
                order = changed[entry.origin] = self._orders.setdefault(entry.origin, OriginOrder())
                order.published(entry.number, entry.previous)
                order.stored(entry.number, entry.offset)
        await self._documents.put_origins(changed)
        for order in self._orders.values():
            await self._documents.drop_held(order.published_meanwhile())

    async def collect(self, to: str, carrier: str, room: int | None, again: bool) -> OutgoingBundle:
        """Make a bundle for a node; NoRoom if `room`, in bytes, is too small. An empty carrier is anybody."""
        return await self._in_turn(self._collect(to, carrier, room, again))

    async def _collect(self, to: str, carrier: str, room: int | None, again: bool) -> OutgoingBundle:
        assert self._state is not None
        wanted = self._memory.wanted(to, carrier, again)
        self._state.made = max(round(self._clock() * 1e6), self._state.made + 1)
        has = {origin: order.known for origin, order in self._orders.items()}
        sizes = {origin: order.size for origin, order in self._orders.items()} | {
            self._own: self._community()
        }
        bundle = Bundle(self._own, to, carrier, self._state.made, has, sizes)
        largest = self._settings.bundle_bytes if room is None else min(room, self._settings.bundle_bytes)
        making = Collecting(bundle, wanted, largest, self._settings.bundle_events)
        await making.read(self._log, self._journal, self._orders)
        data = await making.close(self._key)
        await self._documents.put_self(self._state)
        made = await self._outgoing.add(data, to, carrier, making.events, making.left, making.upto)
        known = {id_: offsets for id_, offsets in self._waiting_in.items() if self._outgoing.find(id_)}
        counted = [offset for offset in making.offsets if offset in self._transmissions.watched]
        self._waiting_in = known | ({made.id: counted} if counted else {})
        return made

    def find(self, id_: str) -> OutgoingBundle | None:
        """A bundle that was not taken yet."""
        return self._outgoing.find(id_)

    async def taken(self, bundle: OutgoingBundle) -> None:
        """Record that the carrier has the file; it is not given the same events again."""
        await self._in_turn(self._taken(bundle))

    async def _taken(self, bundle: OutgoingBundle) -> None:
        if bundle.carrier:
            self._memory.give(bundle.to, bundle.carrier, bundle.upto)
            given = self._memory.given[bundle.to, bundle.carrier]
            await self._documents.put_given(bundle.to, bundle.carrier, given)
        if self._outgoing.find(bundle.id) is not None:
            self._counts["collected"] += bundle.events
            self._transmissions.carried(self._waiting_in.pop(bundle.id, ()))
            self._outgoing.remove(bundle.id)

    async def deliver(self, data: bytes) -> Counter[str]:
        """Publish what a bundle has; how many events by what became of them. BadBundle changes nothing."""
        try:
            bundle = await in_thread(self._checked, data)
        except BadBundle as error:
            self._counts["refused"] += 1
            log.warning("a bundle was refused: %s", error)
            raise
        return await self._in_turn(self._deliver(bundle))

    def _checked(self, data: bytes) -> Bundle:
        bundle = parse_bundle(data, self._key, self._settings.bundle_events)
        if bundle.maker.name == self._name and bundle.maker != self._own:
            raise BadBundle(
                f"the bundle was made by another node named {self._name!r}, or by this one with an earlier"
                " data directory; give each node a name of its own (node.name)"
            )
        check_events(bundle.events)
        return replace(bundle, events=in_order(bundle.events))

    async def _deliver(self, bundle: Bundle) -> Counter[str]:
        found = await self._delivering.take(bundle)
        if bundle.maker != self._own and self._memory.hear(bundle):
            await self._documents.put_heard(bundle.maker.name, self._memory.heard[bundle.maker.name])
        self._counts["repeated"] += found["repeated"]
        self._counts["passed"] += found["passed"]
        return found

    async def _in_turn(self, work: Coroutine[Any, Any, T]) -> T:
        """Do one thing at a time, to its end."""

        async def turn() -> T:
            async with self._turn:
                return await work

        return await asyncio.shield(asyncio.ensure_future(turn()))

    async def _look(self) -> None:
        noted = self._clock()
        while True:
            await asyncio.sleep(min(LOOK_EVERY, max(self._settings.gap_wait, 0.05)))
            now = self._clock()
            if any(order.held for order in self._orders.values()):
                released = await self._in_turn(self._delivering.release(now - self._settings.gap_wait))
                if released:
                    log.warning(
                        "published %d held events although earlier ones of their origin are missing"
                        " (dtn.gap_wait)",
                        released,
                    )
            if abs(now - noted) >= NOTE_EVERY:
                noted = now
                await self._in_turn(self._note_end())

    async def _note_end(self) -> None:
        assert self._state is not None
        # A restart reads the log from there, so the documents must have all before it.
        head = self._journal.last_offset
        await self._delivering.write()
        self._state.upto = head
        await self._documents.put_self(self._state)
        await self.foreign.forget(await self._journal.oldest())

    @property
    def needed_from(self) -> int | None:
        """The first offset of the log that a restart reads."""
        return None if self._state is None else self._state.upto + 1

    def figures(self) -> dict[str, int]:
        """The figures of /status, `dtn`."""
        delivering = self._delivering
        return {
            **self._counts,
            "published": delivering.published,
            "held": delivering.held,
            "held_bytes": delivering.held_bytes,
            "overflowed": delivering.overflowed,
            "gaps": sum(len(order.known.gaps) for order in self._orders.values()),
            "origins": len(self._orders),
            "nodes": len(self._memory.heard),
            "bundles": len(self._outgoing),
            "bundle_bytes": self._outgoing.bytes,
        }
