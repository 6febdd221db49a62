"""A kd-tree of spatio-textual subscriptions: what Rt-Cluster's paper compares its throughput with.

Space is cut in halves, by longitude and latitude in turn, at the median of the rectangles' middles, until a
leaf has few rectangles; one that crosses a cut is in both halves. A leaf has an inverted index of keywords.
The tree is built anew when an eighth of the subscriptions have changed; until then additions are asked one by
one. Conjunctions without keywords and rectangle are always asked so.
"""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterator

from hpwsn.matching.language.predicates import Event
from hpwsn.matching.language.values import words
from hpwsn.matching.papers.clusters import Rectangle, Spatial
from hpwsn.matching.papers.conjunctions import ConjunctionEngine, Held
from hpwsn.matching.papers.rt_cluster import points_of, spatial_of

LEAF = 32
"""Rectangles that a leaf holds without being cut."""

DEEPEST = 24
FEWEST, SHARE = 64, 8


class Leaf:
    """Subscriptions of a part of space, by keyword."""

    __slots__ = ("_inverted",)

    def __init__(self, members: list[Held]) -> None:
        self._inverted: defaultdict[str, list[Held]] = defaultdict(list)
        for held in members:
            # One keyword is enough to find a subscription: it needs them all.
            self._inverted[min(held.place.keywords)].append(held)

    def candidates(self, present: frozenset[str]) -> Iterator[Held]:
        """Subscriptions that could hold for these words."""
        for word in present:
            yield from self._inverted.get(word, ())


class Cut:
    """A cut across one axis."""

    __slots__ = ("above", "at", "axis", "below")

    def __init__(self, axis: int, at: float, below: Cut | Leaf, above: Cut | Leaf) -> None:
        self.axis = axis
        self.at = at
        self.below = below
        self.above = above


def build(members: list[Held], depth: int = 0) -> Cut | Leaf:
    """The tree of these subscriptions."""
    axis = depth % 2
    if len(members) <= LEAF or depth == DEEPEST:
        return Leaf(members)
    at = statistics.median(sum(_side(held.place.rectangle, axis)) / 2 for held in members)
    below = [held for held in members if _side(held.place.rectangle, axis)[0] < at]
    above = [held for held in members if _side(held.place.rectangle, axis)[1] >= at]
    # Where most rectangles cross every cut, cutting on would only multiply them.
    if 2 * (len(below) + len(above)) > 3 * len(members):
        return Leaf(members)
    return Cut(axis, at, build(below, depth + 1), build(above, depth + 1))


def _side(rectangle: Rectangle, axis: int) -> tuple[float, float]:
    return rectangle[2 * axis], rectangle[2 * axis + 1]


class KdTreeEngine(ConjunctionEngine):
    """Spatio-textual subscriptions in a kd-tree."""

    def __init__(
        self, place: tuple[str, str] = ("longitude", "latitude"), keywords: str = "keywords"
    ) -> None:
        super().__init__()
        self._place, self._keywords = place, keywords
        self._others: dict[Held, None] = {}
        self._members: dict[Held, None] = {}
        self._waiting: dict[Held, None] = {}
        self._gone = 0
        self._top: Cut | Leaf = Leaf([])

    def _insert(self, held: Held) -> None:
        spatial: Spatial | None = spatial_of(held.conjunction, self._place, self._keywords)
        held.place = spatial
        if spatial is None:
            self._others[held] = None
        else:
            self._members[held] = self._waiting[held] = None

    def _delete(self, held: Held) -> None:
        if held in self._others:
            del self._others[held]
            return
        del self._members[held]
        if held in self._waiting:
            del self._waiting[held]
        else:
            self._gone += 1

    def _find(self, event: Event) -> list[Held]:
        if max(len(self._waiting), self._gone) > max(FEWEST, len(self._members) // SHARE):
            self._top = build(list(self._members))
            self._waiting.clear()
            self._gone = 0
        candidates = dict.fromkeys([*self._others, *self._waiting])
        value = event.get(self._keywords)
        present = words(value) if value is not None else frozenset()
        for point in points_of(event, self._place):
            found = self._leaf_of(point).candidates(present)
            candidates.update((held, None) for held in found if held in self._members)
        return [held for held in candidates if self._holds(held.conjunction, event)]

    def cuts_to(self, point: tuple[float, float]) -> int:
        """How many cuts an event at a point passes on its way to a leaf."""
        part, cuts = self._top, 0
        while isinstance(part, Cut):
            part, cuts = part.below if point[part.axis] < part.at else part.above, cuts + 1
        return cuts

    def _leaf_of(self, point: tuple[float, float]) -> Leaf:
        part = self._top
        while isinstance(part, Cut):
            part = part.below if point[part.axis] < part.at else part.above
        return part
