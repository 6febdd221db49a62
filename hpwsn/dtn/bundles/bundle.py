"""A bundle as data: the events that a carrier takes to a node, and what its maker has. Pure.

Every event has an origin: the node that accepted it from a publisher, and the epoch of that node's journal.
Its number is unique at its origin and increases; `previous` is the number of the event before it that the
origin could still carry. So the numbers need not be consecutive, and a receiver still recognises a gap.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple


class Origin(NamedTuple):
    """The node that accepted an event first, and the epoch of its journal.

    A node with a new data directory has a new epoch, so that its numbers are not taken for the old ones.
    """

    name: str
    epoch: int


class CarriedEvent(NamedTuple):
    """One event on its way.

    `time` is when the origin accepted it, in microseconds since the epoch. `payload` is the notification in
    the form that it has between nodes (hpwsn.routing.wire.payloads), and `topic` its topic as text.
    """

    origin: Origin
    number: int
    previous: int
    time: int
    topic: str | None
    payload: bytes


class Known(NamedTuple):
    """Which events of one origin a node has: all up to `last`, but those in `gaps`.

    A gap is a pair of numbers: the events after the first one, up to and including the second.
    """

    last: int
    gaps: tuple[tuple[int, int], ...] = ()

    def has(self, number: int) -> bool:
        """Whether the node has the event of this number."""
        return number <= self.last and not any(low < number <= high for low, high in self.gaps)

    @property
    def complete(self) -> int:
        """The number up to which nothing is missing."""
        return self.gaps[0][0] if self.gaps else self.last


NOTHING = Known(0)


@dataclass(frozen=True, slots=True)
class Bundle:
    """What one file has.

    `made` is in microseconds by the clock of the maker; a later bundle of the same maker has a greater one.
    `has` is what the maker has of other origins; `sizes` are the sizes of the communities of the origins, in
    nodes. `floors` are the numbers up to which the maker has no events of an origin any more, so that a
    receiver need not wait for them.
    """

    maker: Origin
    to: str
    carrier: str
    made: int
    has: Mapping[Origin, Known] = field(default_factory=dict)
    sizes: Mapping[Origin, int] = field(default_factory=dict)
    floors: Mapping[Origin, int] = field(default_factory=dict)
    events: Sequence[CarriedEvent] = ()
