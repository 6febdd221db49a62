"""How a node takes in a bundle: each event once, in the order of its origin.

The order in memory is ahead of the log for the time of an append, and is rolled back if that fails. The
documents follow the append. A node that is killed between the two finds the events in its log after the
restart, by their message ids.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

from hpwsn.broker.admission.admission import Admission
from hpwsn.dtn.bundles.bundle import Bundle, CarriedEvent, Origin
from hpwsn.dtn.bundles.bundle_format import BadBundle
from hpwsn.dtn.carriers.carried_ids import carried_id
from hpwsn.dtn.carriers.origin_order import Held, OriginOrder, Verdict
from hpwsn.node.carriers.carrier_documents import CarrierDocuments
from hpwsn.notification import LARGE, RELIABLE, Run
from hpwsn.routing.wire.binary import MalformedMessage
from hpwsn.routing.wire.payloads import parse_large_payload, parse_payload
from hpwsn.routing.wire.publication import LargePayload
from hpwsn.settings import DtnSettings

log = logging.getLogger(__name__)

AT_ONCE = 256
"""Events in one append."""
BYTES_AT_ONCE = 1 << 20
NO_TIME = -1.0
"""Before every event was held."""


class Delivering:
    """Takes in events; its callers take turns."""

    def __init__(
        self,
        name: str,
        settings: DtnSettings,
        admission: Admission,
        documents: CarrierDocuments,
        orders: dict[Origin, OriginOrder],
        clock: Callable[[], float],
    ) -> None:
        self._name = name
        self._settings = settings
        self._admission = admission
        self._documents = documents
        self._orders = orders
        self._clock = clock
        self._waiting: list[CarriedEvent] = []
        """Events of the append that is being prepared; they are published as far as the order knows."""
        self._waiting_bytes = 0
        self._saved: dict[Origin, tuple[int, list[tuple[int, int]], dict[int, Held]]] = {}
        self._unwritten: set[Origin] = set()
        """Origins of which the log has more than their documents say."""
        self.held = self.held_bytes = 0
        self._count_held()
        self.published = 0
        self.overflowed = 0
        """Events that were not taken because too many are held."""
        self._known_by_link = 0

    async def take(self, bundle: Bundle) -> Counter[str]:
        """Publish or hold the events of a bundle, which are `in_order`; how many by what became of them."""
        found: Counter[str] = Counter()
        before, held = self.published, []
        known = self._known_by_link
        for number, event in enumerate(bundle.events):
            if not number % AT_ONCE:
                await asyncio.sleep(0)
            outcome = self._judge(event, bundle)
            found[outcome] += 1
            if outcome == "published":
                await self._publish(event)
            elif outcome == "held":
                held.append(self._hold(event))
        for origin in {event.origin for event in bundle.events} & self._orders.keys():
            await self._drain(origin, NO_TIME)
        await self._flush()
        await self._documents.put_held(held)
        found["published"] = self.published - before
        found["repeated"] += self._known_by_link - known
        return found

    async def release(self, given_up: float) -> int:
        """Publish what is held since a time or longer; how many were published."""
        before = self.published
        for origin in [origin for origin, order in self._orders.items() if order.held]:
            await self._drain(origin, given_up)
        await self._flush()
        return self.published - before

    def _judge(self, event: CarriedEvent, bundle: Bundle) -> str:
        origin = event.origin
        if origin.name == self._name:
            return "repeated"
        size = bundle.sizes.get(origin, 1)
        if bundle.to != self._name and size > self._settings.gamma:
            return "passed"
        order = self._orders.get(origin)
        if order is None:
            if len(self._orders) >= self._settings.origins:
                return "refused"
            order = self._orders[origin] = OriginOrder()
        order.size = size
        verdict = order.judge(event.number, event.previous, bundle.floors.get(origin, 0))
        if verdict is Verdict.HOLD and event.number not in order.held and self._is_full(event):
            self.overflowed += 1
            return "refused"
        return _OUTCOMES[verdict]

    def _is_full(self, event: CarriedEvent) -> bool:
        settings = self._settings
        return self.held >= settings.held_events or self.held_bytes + _size(event) > settings.held_bytes

    def _hold(self, event: CarriedEvent) -> Held:
        order = self._orders[event.origin]
        if event.number not in order.held:
            self.held += 1
            self.held_bytes += _size(event)
        order.hold(event, self._clock())
        return order.held[event.number]

    async def _drain(self, origin: Origin, given_up: float) -> None:
        order = self._orders[origin]
        while (event := order.ready(given_up)) is not None:
            await self._publish(event)

    async def _publish(self, event: CarriedEvent) -> None:
        order = self._orders[event.origin]
        if event.origin not in self._saved:
            self._saved[event.origin] = order.saved()
        order.published(event.number, event.previous)
        self._waiting.append(event)
        self._waiting_bytes += _size(event)
        if len(self._waiting) >= AT_ONCE or self._waiting_bytes >= BYTES_AT_ONCE:
            await self._flush()

    async def _flush(self) -> None:
        """Append what is waiting; if that fails, nothing of it is published."""
        waiting, self._waiting, self._waiting_bytes = self._waiting, [], 0
        saved, self._saved = self._saved, {}
        if not waiting:
            return
        # A link of the cluster may have brought an event already.
        new = [event for event in waiting if not self._admission.knows(carried_id(event))]
        try:
            runs = [self._run(event) for event in new]
            first = await self._admission.store_from_peer(runs, None) if runs else 0
        except BaseException:
            for origin, state in saved.items():
                self._orders[origin].roll_back(state)
            self._count_held()
            raise
        self._unwritten |= saved.keys()
        for offset, event in enumerate(new, first):
            self._orders[event.origin].stored(event.number, offset)
        self.published += len(new)
        self._known_by_link += len(waiting) - len(new)
        await self.write()
        await self._forget_held(waiting, saved)

    async def write(self) -> None:
        """Write what is known of the origins with new events."""
        unwritten = {origin: self._orders[origin] for origin in self._unwritten}
        await self._documents.put_origins(unwritten)
        self._unwritten -= unwritten.keys()

    def _count_held(self) -> None:
        held = [held.event for order in self._orders.values() for held in order.held.values()]
        self.held, self.held_bytes = len(held), sum(map(_size, held))

    async def _forget_held(
        self,
        waiting: Iterable[CarriedEvent],
        saved: Mapping[Origin, tuple[int, list[tuple[int, int]], dict[int, Held]]],
    ) -> None:
        gone = [event for event in waiting if event.number in saved[event.origin][2]]
        self.held -= len(gone)
        self.held_bytes -= sum(map(_size, gone))
        await self._documents.drop_held(gone)

    def _run(self, event: CarriedEvent) -> Run:
        run = run_of(event)
        run.message_id = carried_id(event)
        run.time = self._clock()
        run.routing = RELIABLE & self._admission.carried
        return run


_OUTCOMES = {Verdict.PUBLISH: "published", Verdict.REPEATED: "repeated", Verdict.HOLD: "held"}


def in_order(events: Sequence[CarriedEvent]) -> tuple[CarriedEvent, ...]:
    """The events, with those of each origin by number, and otherwise as their maker had them in its log."""
    numbered: dict[Origin, list[CarriedEvent]] = {}
    for event in events:
        numbered.setdefault(event.origin, []).append(event)
    following = {
        origin: iter(sorted(found, key=lambda event: event.number)) for origin, found in numbered.items()
    }
    return tuple(next(following[event.origin]) for event in events)


def run_of(event: CarriedEvent) -> Run:
    """An event as it goes into the log; MalformedMessage if its payload has another form."""
    if len(event.payload) >= LARGE:
        return parse_large_payload(event.topic, LargePayload((event.payload,)))
    return Run.of(parse_payload(event.topic, event.payload))


def check_events(events: Sequence[CarriedEvent]) -> None:
    """Raise BadBundle for an event that could not be published."""
    for event in events:
        try:
            run_of(event)
        except MalformedMessage as error:
            raise BadBundle(f"event {event.number} of {event.origin.name} is malformed: {error}") from error


def _size(event: CarriedEvent) -> int:
    return len(event.payload)
