"""What other nodes have, and what carriers were given for them. Pure.

A bundle says what its maker has; the newest bundle of a maker counts, whoever delivers it. What a carrier was
given counts only for that carrier: if the carrier is lost, another one gets the same events.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from hpwsn.dtn.bundles.bundle import NOTHING, Bundle, Known, Origin

MOST_NODES = 10_000
"""Other nodes that are remembered; the one that was heard of longest ago is forgotten first."""
MOST_CARRIERS = 10_000
"""Carriers that are remembered for all nodes; the one that took something longest ago is forgotten first."""


class Heard(NamedTuple):
    """What a node had when it made its newest bundle, by its clock."""

    made: int
    has: Mapping[Origin, Known]


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which events go into a bundle: what the node `to` lacks and its carrier was not given."""

    to: str
    has: Mapping[Origin, Known] = field(default_factory=dict)
    given: Mapping[Origin, int] = field(default_factory=dict)

    def known(self, origin: Origin) -> Known:
        """What the node or the carrier has of an origin; a node needs none of its own events."""
        has, given = self.has.get(origin, NOTHING), self.given.get(origin, 0)
        return Known(given) if given >= has.last else Known(has.last, _after(has.gaps, given))


def _after(gaps: tuple[tuple[int, int], ...], number: int) -> tuple[tuple[int, int], ...]:
    """The gaps beyond a number."""
    return tuple((max(low, number), high) for low, high in gaps if high > number)


class CarrierMemory:
    """What is known of other nodes and of carriers."""

    def __init__(self) -> None:
        self.heard: dict[str, Heard] = {}
        self.given: dict[tuple[str, str], dict[Origin, int]] = {}
        """By the node that the bundles were for, and the carrier."""

    def hear(self, bundle: Bundle) -> bool:
        """Learn from a bundle what its maker has; False if a later bundle of the maker told more."""
        name = bundle.maker.name
        before = self.heard.get(name)
        if before is not None and before.made >= bundle.made:
            return False
        self.heard.pop(name, None)
        self.heard[name] = Heard(bundle.made, dict(bundle.has))
        if len(self.heard) > MOST_NODES:
            del self.heard[next(iter(self.heard))]
        return True

    def give(self, to: str, carrier: str, upto: Mapping[Origin, int]) -> None:
        """Record that a carrier took the events up to these numbers for a node."""
        before = self.given.pop((to, carrier), {})
        self.given[to, carrier] = {**before, **{o: max(n, before.get(o, 0)) for o, n in upto.items()}}
        if len(self.given) > MOST_CARRIERS:
            del self.given[next(iter(self.given))]

    def wanted(self, to: str, carrier: str, again: bool) -> Wanted:
        """What a bundle for a node is to have; with `again` also what the carrier was given before.

        An empty name of a carrier means that nothing is remembered of it.
        """
        heard = self.heard.get(to)
        given = {} if again or not carrier else self.given.get((to, carrier), {})
        return Wanted(to, {} if heard is None else heard.has, given)
