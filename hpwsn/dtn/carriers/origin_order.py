"""The order of the events of one origin at a node: what is published, what is missing, what is held. Pure.

An event is published at once if nothing that the origin could carry is missing before it. Otherwise it is
*held*. It is published when the gap is filled, or when the wait for the gap has ended. A gap that was given
up stays known: an event of it that comes later is still published, once, though not in order any more. So a
carrier that is lost loses nothing.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from enum import Enum
from typing import NamedTuple

from hpwsn.dtn.bundles.bundle import CarriedEvent, Known

MOST_GAPS = 1000
"""Gaps of one origin that are remembered; of more, the oldest is given up for ever."""
BETWEEN_PLACES = 256
"""Events between two that the search in the log can begin at."""


class Verdict(Enum):
    """What is to be done with an event that a bundle brings."""

    PUBLISH = "publish"
    REPEATED = "repeated"
    HOLD = "hold"


class Held(NamedTuple):
    """An event that waits for those before it, since a time in seconds."""

    event: CarriedEvent
    since: float


class OriginOrder:
    """What a node knows of the events of one origin; `size` is that of the origin's community, in nodes."""

    __slots__ = ("_gaps", "_since_place", "abandoned", "held", "last", "places", "size")

    def __init__(
        self,
        last: int = 0,
        gaps: Iterable[tuple[int, int]] = (),
        size: int = 1,
        places: Iterable[tuple[int, int]] = (),
    ) -> None:
        self.last = last
        self.size = size
        self._gaps = sorted(gaps)
        self.held: dict[int, Held] = {}
        self.places = list(places)
        """Some numbers with their offsets in the log of this node, both increasing."""
        self._since_place = BETWEEN_PLACES
        self.abandoned = 0
        """Gaps that were too many to remember."""

    @property
    def known(self) -> Known:
        """Which events this node has published."""
        return Known(self.last, tuple(self._gaps))

    def judge(self, number: int, previous: int, floor: int = 0) -> Verdict:
        """What to do with an event; it does not wait for events up to `floor`."""
        if self.known.has(number):
            return Verdict.REPEATED
        return Verdict.PUBLISH if previous <= max(self.last, floor) or number <= self.last else Verdict.HOLD

    def hold(self, event: CarriedEvent, since: float) -> None:
        """Keep an event; one that is held already keeps its time."""
        self.held.setdefault(event.number, Held(event, since))

    def published(self, number: int, previous: int) -> None:
        """Record that an event is in the log of this node, or is being stored there."""
        self.held.pop(number, None)
        if self.known.has(number):
            return
        if number <= self.last:
            self._fill(number, previous)
            return
        if previous > self.last:
            self._gaps.append((self.last, previous))
            if len(self._gaps) > MOST_GAPS:
                del self._gaps[0]
                self.abandoned += 1
        self.last = number

    def stored(self, number: int, offset: int) -> None:
        """Record where a published event is in the log of this node."""
        self._since_place += 1
        in_order = not self.places or (number > self.places[-1][0] and offset > self.places[-1][1])
        if self._since_place >= BETWEEN_PLACES and in_order:
            self.places.append((number, offset))
            self._since_place = 0

    def saved(self) -> tuple[int, list[tuple[int, int]], dict[int, Held]]:
        """What `published` changes, for `roll_back`."""
        return self.last, list(self._gaps), dict(self.held)

    def roll_back(self, saved: tuple[int, list[tuple[int, int]], dict[int, Held]]) -> None:
        """Forget what was recorded since, because it could not be stored."""
        self.last, self._gaps, self.held = saved[0], list(saved[1]), dict(saved[2])

    def _fill(self, number: int, previous: int) -> None:
        at = next(at for at, (low, high) in enumerate(self._gaps) if low < number <= high)
        low, high = self._gaps[at]
        rest = ((low, min(previous, number - 1)), (number, high))
        self._gaps[at : at + 1] = [(begin, end) for begin, end in rest if begin < end]

    def published_meanwhile(self) -> list[CarriedEvent]:
        """Stop holding events that are in the log already; which they were."""
        known = self.known
        return [self.held.pop(number).event for number in list(self.held) if known.has(number)]

    def ready(self, given_up: float) -> CarriedEvent | None:
        """The next held event to publish, or None.

        Events that are held since `given_up` or longer wait for no gap any more, and neither do those before
        them.
        """
        if not self.held:
            return None
        number = min(self.held)
        event = self.held[number].event
        if event.previous <= self.last or any(held.since <= given_up for held in self.held.values()):
            return event
        return None

    def search_from(self, known: Known) -> int:
        """The offset in the log before which all events of this origin are known."""
        at = bisect_right(self.places, known.complete, key=lambda place: place[0])
        if at:
            return self.places[at - 1][1]
        return self.places[0][1] if self.places else 0
