"""What a node keeps about carriers: documents of the journal, in CBOR.

| kind | name | body |
|---|---|---|
| dtn | self | epoch, first offset that carriers take, offset up to which the documents are complete, clock |
| dtn-origin | EPOCH:NAME | last number, gaps, size of the community, places in the log |
| dtn-held | EPOCH:NUMBER:NAME | an event, and since when it is held |
| dtn-heard | node | when it made its newest bundle, and what it had |
| dtn-given | number | node, carrier, and the last number of each origin that the carrier took |
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from hashlib import sha256
from typing import Any

import cbor2

from hpwsn.dtn.bundles.bundle import CarriedEvent, Known, Origin
from hpwsn.dtn.bundles.bundle_format import encode_event, parse_event
from hpwsn.dtn.carriers.carrier_memory import CarrierMemory, Heard
from hpwsn.dtn.carriers.origin_order import Held, OriginOrder
from hpwsn.journal.journal import Journal

SELF, ORIGIN, HELD, HEARD, GIVEN = "dtn", "dtn-origin", "dtn-held", "dtn-heard", "dtn-given"

Documents = Mapping[str, Mapping[str, bytes]]
"""What the journal has, by kind and name."""


class OwnState:
    """The state of this node itself; `made` is the time of its newest bundle, in microseconds."""

    def __init__(self, epoch: int, begin: int, upto: int, made: int = 0) -> None:
        self.epoch = epoch
        self.begin = begin
        self.upto = upto
        self.made = made


class CarrierDocuments:
    """Reads and writes the documents; a write returns when it can no longer be lost."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    async def put_self(self, state: OwnState) -> None:
        """Write the state of this node."""
        body = cbor2.dumps([state.epoch, state.begin, state.upto, state.made])
        await self._journal.put_documents(SELF, {"self": body})

    async def put_origins(self, orders: Mapping[Origin, OriginOrder]) -> None:
        """Write what is known of some origins."""
        await self._put(ORIGIN, {_name(*origin): _of_order(order) for origin, order in orders.items()})

    async def put_held(self, held: Iterable[Held]) -> None:
        """Write events that are held."""
        documents = {_held_name(event): cbor2.dumps([since, encode_event(event)]) for event, since in held}
        await self._put(HELD, documents)

    async def drop_held(self, events: Iterable[CarriedEvent]) -> None:
        """Remove events that are not held any more."""
        names = [_held_name(event) for event in events]
        if names:
            await self._journal.delete_documents(HELD, names)

    async def put_heard(self, node: str, heard: Heard) -> None:
        """Write what a node has."""
        has = [[*origin, known.last, list(known.gaps)] for origin, known in heard.has.items()]
        await self._put(HEARD, {node: cbor2.dumps([heard.made, has])})

    async def put_given(self, to: str, carrier: str, upto: Mapping[Origin, int]) -> None:
        """Write what a carrier took for a node."""
        body = [to, carrier, [[*origin, number] for origin, number in upto.items()]]
        await self._put(GIVEN, {sha256(cbor2.dumps([to, carrier])).hexdigest(): cbor2.dumps(body)})

    async def _put(self, kind: str, documents: Mapping[str, bytes]) -> None:
        if documents:
            await asyncio.shield(self._journal.put_documents(kind, documents))


def read_self(documents: Documents) -> OwnState | None:
    """The state of this node; None if it never had carriers."""
    body = documents.get(SELF, {}).get("self")
    return None if body is None else OwnState(*cbor2.loads(body))


def read_orders(documents: Documents) -> dict[Origin, OriginOrder]:
    """What is known of each origin, with the events that are held."""
    orders = {}
    for name, body in documents.get(ORIGIN, {}).items():
        last, gaps, size, places = cbor2.loads(body)
        orders[_origin(name)] = OriginOrder(last, map(_pair, gaps), size, map(_pair, places))
    for body in documents.get(HELD, {}).values():
        since, encoded = cbor2.loads(body)
        event = parse_event(encoded)
        order = orders.setdefault(event.origin, OriginOrder())
        order.hold(event, since)
    return orders


def read_memory(documents: Documents) -> CarrierMemory:
    """What is known of other nodes and of carriers."""
    memory = CarrierMemory()
    for node, body in documents.get(HEARD, {}).items():
        made, has = cbor2.loads(body)
        known = {Origin(name, epoch): Known(last, tuple(map(_pair, gaps))) for name, epoch, last, gaps in has}
        memory.heard[node] = Heard(made, known)
    for body in documents.get(GIVEN, {}).values():
        to, carrier, upto = cbor2.loads(body)
        memory.given[to, carrier] = {Origin(name, epoch): number for name, epoch, number in upto}
    return memory


def _of_order(order: OriginOrder) -> bytes:
    return cbor2.dumps([order.last, list(order.known.gaps), order.size, order.places])


def _name(name: str, epoch: int) -> str:
    return f"{epoch:x}:{name}"


def _origin(text: str) -> Origin:
    epoch, name = text.split(":", 1)
    return Origin(name, int(epoch, 16))


def _held_name(event: CarriedEvent) -> str:
    return f"{event.origin.epoch:x}:{event.number}:{event.origin.name}"


def _pair(value: Any) -> tuple[int, int]:
    low, high = value
    return low, high
