"""A kd-tree of spatio-textual subscriptions, the baseline in Rt-Cluster's throughput measurements.

Space is cut alternately by longitude and latitude, at the median of the rectangles' centres, until a leaf has
few rectangles. A rectangle that crosses a cut is in both halves. A leaf has an inverted index of keywords.
The tree is rebuilt when an eighth of the subscriptions have changed; until then additions are evaluated one
by one. Conjunctions without keywords or without a rectangle are always evaluated one by one.
"""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterator

from hpwsn.matching.language.predicates import Event
from hpwsn.matching.language.values import words
from hpwsn.matching.papers.clusters import Rectangle, SpatialSubscription
from hpwsn.matching.papers.conjunctions import ConjunctionEngine, StoredConjunction
from hpwsn.matching.papers.rt_cluster import points_of, spatial_subscription

MAX_LEAF = 32
"""Rectangles that a leaf holds before it is cut."""

MAX_DEPTH = 24
MIN_CHANGES, REBUILD_FRACTION = 64, 8


class Leaf:
    """The subscriptions of one region, by keyword."""

    __slots__ = ("_inverted",)

    def __init__(self, members: list[StoredConjunction]) -> None:
        self._inverted: defaultdict[str, list[StoredConjunction]] = defaultdict(list)
        for stored in members:
            # A match has all the keywords, so indexing one is enough.
            self._inverted[min(stored.place.keywords)].append(stored)

    def candidates(self, present: frozenset[str]) -> Iterator[StoredConjunction]:
        """Return the subscriptions that can match these words."""
        for word in present:
            yield from self._inverted.get(word, ())


class Cut:
    """An inner node: a cut across one axis."""

    __slots__ = ("above", "at", "axis", "below")

    def __init__(self, axis: int, at: float, below: Cut | Leaf, above: Cut | Leaf) -> None:
        self.axis = axis
        self.at = at
        self.below = below
        self.above = above


def build(members: list[StoredConjunction], depth: int = 0) -> Cut | Leaf:
    """Return the tree of these subscriptions."""
    axis = depth % 2
    if len(members) <= MAX_LEAF or depth == MAX_DEPTH:
        return Leaf(members)
    at = statistics.median(sum(_side(stored.place.rectangle, axis)) / 2 for stored in members)
    below = [stored for stored in members if _side(stored.place.rectangle, axis)[0] < at]
    above = [stored for stored in members if _side(stored.place.rectangle, axis)[1] >= at]
    # If most rectangles cross every cut, more cuts would only duplicate them.
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
        self._unindexed: dict[StoredConjunction, None] = {}
        self._members: dict[StoredConjunction, None] = {}
        self._pending: dict[StoredConjunction, None] = {}
        self._removed = 0
        self._top: Cut | Leaf = Leaf([])

    def _insert(self, stored: StoredConjunction) -> None:
        spatial: SpatialSubscription | None = spatial_subscription(
            stored.conjunction, self._place, self._keywords
        )
        stored.place = spatial
        if spatial is None:
            self._unindexed[stored] = None
        else:
            self._members[stored] = self._pending[stored] = None

    def _delete(self, stored: StoredConjunction) -> None:
        if stored in self._unindexed:
            del self._unindexed[stored]
            return
        del self._members[stored]
        if stored in self._pending:
            del self._pending[stored]
        else:
            self._removed += 1

    def _find(self, event: Event) -> list[StoredConjunction]:
        if max(len(self._pending), self._removed) > max(MIN_CHANGES, len(self._members) // REBUILD_FRACTION):
            self._top = build(list(self._members))
            self._pending.clear()
            self._removed = 0
        candidates = dict.fromkeys([*self._unindexed, *self._pending])
        value = event.get(self._keywords)
        present = words(value) if value is not None else frozenset()
        for point in points_of(event, self._place):
            found = self._leaf_of(point).candidates(present)
            candidates.update((stored, None) for stored in found if stored in self._members)
        return [stored for stored in candidates if self._holds(stored.conjunction, event)]

    def cuts_to(self, point: tuple[float, float]) -> int:
        """Return how many cuts lie between the root and the leaf of a point."""
        part, cuts = self._top, 0
        while isinstance(part, Cut):
            part, cuts = part.below if point[part.axis] < part.at else part.above, cuts + 1
        return cuts

    def _leaf_of(self, point: tuple[float, float]) -> Leaf:
        part = self._top
        while isinstance(part, Cut):
            part = part.below if point[part.axis] < part.at else part.above
        return part
