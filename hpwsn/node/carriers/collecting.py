"""How a node makes a bundle: one pass over its log, from the first event that the receiver may lack.

Of each origin the bundle has the oldest events. If one does not fit, the later ones of its origin stay too,
so that a bundle never makes a gap; events of other origins may still fit.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from hpwsn.background import in_thread
from hpwsn.dtn.bundles.bundle import Bundle, Origin
from hpwsn.dtn.bundles.bundle_format import BundleWriter
from hpwsn.dtn.carriers.carrier_memory import Wanted
from hpwsn.dtn.carriers.origin_order import OriginOrder
from hpwsn.journal.journal import Journal
from hpwsn.node.carriers.carried_log import CarriedLog, Entry


class NoRoom(ValueError):
    """The size that was asked for has no room for a bundle without events."""


class Collecting:
    """One bundle in the making; `left` counts the events that did not fit, once `read` has ended."""

    def __init__(self, bundle: Bundle, wanted: Wanted, room: int, most_events: int) -> None:
        try:
            self._writer = BundleWriter(bundle, room)
        except ValueError as error:
            raise NoRoom(str(error)) from error
        self._own = bundle.maker
        self._wanted = wanted
        self._most_events = most_events
        self._blocked: set[Origin] = set()
        self._known = {bundle.maker: wanted.known(bundle.maker)}
        self._floors: dict[Origin, int] = {}
        self._met: set[Origin] = set()
        self.upto: Counter[Origin] = Counter()
        """The last number of each origin in the bundle."""
        self.left = 0
        self.offsets: list[int] = []
        """Where the events in the bundle are in the log."""

    @property
    def events(self) -> int:
        """How many events there are in it."""
        return self._writer.events

    async def read(self, log: CarriedLog, journal: Journal, orders: Mapping[Origin, OriginOrder]) -> None:
        """Take the events from the log, up to its present end."""
        head, oldest = journal.last_offset, await journal.oldest()
        own = self._wanted.known(self._own)
        starts = [own.complete + 1]
        for origin, order in orders.items():
            known = self._known[origin] = self._wanted.known(origin)
            if known.complete < order.last and origin.name != self._wanted.to:
                starts.append(order.search_from(known))
        start = min(starts)
        async for entry in log.entries(start, head, own):
            if self._wants(entry):
                if entry.origin not in self._met and entry.previous > 0 and start < oldest:
                    self._floors[entry.origin] = entry.previous
                self._met.add(entry.origin)
                await self._take(entry)

    def _wants(self, entry: Entry) -> bool:
        known = self._known.get(entry.origin)
        return known is not None and entry.origin.name != self._wanted.to and not known.has(entry.number)

    async def _take(self, entry: Entry) -> None:
        fits = entry.origin not in self._blocked and self.events < self._most_events
        if fits and self._writer.add(await entry.event()):
            self.upto[entry.origin] = max(self.upto[entry.origin], entry.number)
            self.offsets.append(entry.offset)
            return
        self._blocked.add(entry.origin)
        self.left += 1

    async def close(self, key: bytes) -> bytes:
        """The file."""
        return await in_thread(self._writer.close, key, self._floors)
