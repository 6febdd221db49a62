"""Rt-Cluster: subscriptions with keywords and a rectangle, clustered as they come.

Follows section 2 of the paper on spatio-textual streams. A subscription joins the most similar cluster; under
NewTh it founds a new one, on the worker of the most similar. With more clusters than CMaxNumTh the two that
are most correlated merge. An event goes to the clusters in its cell of 5 degrees whose rectangle contains it
and which have one of its keywords, and in each to the subscriptions in its cell of 2 degrees with one of its
keywords. `visited` counts those clusters.

The paper leaves open what happens at CMaxNumTh without correlations: then no cluster is founded, and the most
similar one takes the subscription. Conjunctions without keywords or without a rectangle of at most 20,000
cells are no subscriptions of this kind and are asked one by one.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

from hpwsn.matching.language.predicates import Conjunction, Event, Operator
from hpwsn.matching.language.values import Scalar, words
from hpwsn.matching.papers.categories import ranges_of
from hpwsn.matching.papers.clusters import MATCHING_CELL, Cell, Cluster, Rectangle, Spatial, cell_of
from hpwsn.matching.papers.conjunctions import ConjunctionEngine, Held
from hpwsn.matching.papers.correlations import Correlations

CLUSTERING_CELL = 5.0
"""Degrees of a cell's side where events are led to clusters."""

MOST_CELLS = 20_000
"""Cells that a rectangle may touch: the whole earth has 16,200."""


class RtCluster(ConjunctionEngine):
    """Spatio-textual subscriptions in clusters."""

    def __init__(
        self,
        place: tuple[str, str] = ("longitude", "latitude"),
        keywords: str = "keywords",
        *,
        alpha: float = 0.5,
        new_threshold: float = 0.5,
        most_clusters: int = 64,
        by_frequency: bool = True,
        by_correlation: bool = True,
    ) -> None:
        if not 0 <= alpha < 1:
            raise ValueError(f"alpha is {alpha}; it weighs keywords against space, from 0 to less than 1")
        super().__init__()
        self.visited = 0
        self.clusters: dict[int, Cluster] = {}
        self.correlations = Correlations()
        self._place, self._keywords = place, keywords
        self._alpha, self._new_threshold, self._most = alpha, new_threshold, max(1, most_clusters)
        self._by_frequency, self._by_correlation = by_frequency, by_correlation
        self._cells: dict[Cell, dict[int, int]] = {}
        self._others: dict[Held, None] = {}
        self._next = 0

    def _insert(self, held: Held) -> None:
        spatial = spatial_of(held.conjunction, self._place, self._keywords)
        if spatial is None:
            self._others[held] = None
            return
        best, similarity = self._most_similar(spatial)
        if best is None or (similarity < self._new_threshold and self._may_found()):
            best = self._found(self._worker_for(best, similarity))
        self._join(best, held, spatial)
        if len(self.clusters) > self._most:
            self._merge()

    def _most_similar(self, spatial: Spatial) -> tuple[Cluster | None, float]:
        best, most = None, -1.0
        for cluster in self.clusters.values():
            similarity = cluster.similarity(spatial, self._alpha, self._by_frequency)
            if similarity > most:
                best, most = cluster, similarity
        return best, most

    def _may_found(self) -> bool:
        return len(self.clusters) < self._most or (
            self._by_correlation and self.correlations.closest() is not None
        )

    def _worker_for(self, best: Cluster | None, similarity: float) -> int:
        return best.worker if best else 0

    def _found(self, worker: int) -> Cluster:
        cluster = self.clusters[self._next] = Cluster(self._next, worker)
        self._next += 1
        return cluster

    def _join(self, cluster: Cluster, held: Held, spatial: Spatial) -> None:
        cluster.add(held, spatial)
        held.place = cluster
        for cell in spatial.rectangle.cells(CLUSTERING_CELL):
            counts = self._cells.setdefault(cell, {})
            counts[cluster.number] = counts.get(cluster.number, 0) + 1

    def _leave(self, cluster: Cluster, held: Held) -> Spatial:
        spatial = cluster.members[held]
        cluster.remove(held)
        for cell in spatial.rectangle.cells(CLUSTERING_CELL):
            counts = self._cells[cell]
            counts[cluster.number] -= 1
            if not counts[cluster.number]:
                del counts[cluster.number]
            if not counts:
                del self._cells[cell]
        return spatial

    def _merge(self) -> None:
        closest = self.correlations.closest()
        if closest is not None:
            self.merge(self.clusters[closest[0]], self.clusters[closest[1]])

    def merge(self, kept: Cluster, gone: Cluster) -> None:
        """One cluster takes in another, with its correlations."""
        for held, spatial in list(gone.members.items()):
            self._leave(gone, held)
            self._join(kept, held, spatial)
        kept.load += gone.load
        self.correlations.merged(kept.number, gone.number)
        del self.clusters[gone.number]

    def _delete(self, held: Held) -> None:
        if held in self._others:
            del self._others[held]
            return
        cluster: Cluster = held.place
        self._leave(cluster, held)
        if not cluster.members:
            self.correlations.dropped(cluster.number)
            del self.clusters[cluster.number]

    def _find(self, event: Event) -> list[Held]:
        found = [held for held in self._others if self._holds(held.conjunction, event)]
        value = event.get(self._keywords)
        if value is None:
            return found
        present = words(value)
        clustered: dict[Held, None] = {}
        for x, y in points_of(event, self._place):
            clustered.update(dict.fromkeys(self._find_at(x, y, present, event)))
        if self._by_correlation:
            self._correlate(clustered)
        return [*found, *clustered]

    def _correlate(self, matched: Iterable[Held]) -> None:
        """Clusters of subscriptions that one event matched belong together a little more."""
        self.correlations.matched(held.place.number for held in matched)

    def _find_at(self, x: float, y: float, present: frozenset[str], event: Event) -> Iterator[Held]:
        for cluster in self._led_to(x, y, present):
            self.visited += 1
            cluster.load += len(cluster.members)
            for held in cluster.candidates(x, y, present):
                if self._holds(held.conjunction, event):
                    yield held

    def clusters_around(self, x: float, y: float) -> int:
        """How many clusters are looked at for an event at a point."""
        return len(self._cells.get(cell_of(x, y, CLUSTERING_CELL), ()))

    def _led_to(self, x: float, y: float, present: frozenset[str]) -> Iterator[Cluster]:
        """The clusters that could hold a match."""
        for number in self._cells.get(cell_of(x, y, CLUSTERING_CELL), ()):
            cluster = self.clusters[number]
            around = cluster.rectangle
            if around and around.contains(x, y) and not present.isdisjoint(cluster.frequencies):
                yield cluster


def spatial_of(conjunction: Conjunction, place: tuple[str, str], keywords: str) -> Spatial | None:
    """The keywords and the rectangle of a conjunction, or None where it has not both."""
    wanted = frozenset(
        str(word)
        for predicate in conjunction
        if predicate.attribute == keywords and predicate.operator is Operator.HAS and not predicate.negated
        for word in predicate.operands
    )
    ranges = {range_.attribute: range_ for range_ in ranges_of(conjunction)}
    if not wanted or not ranges.keys() >= set(place):
        return None
    x, y = ranges[place[0]], ranges[place[1]]
    rectangle = Rectangle(x.low, x.high, y.low, y.high)
    return Spatial(wanted, rectangle) if _is_of_this_earth(rectangle) else None


def _is_of_this_earth(rectangle: Rectangle) -> bool:
    if rectangle.west > rectangle.east or rectangle.south > rectangle.north:
        return False
    columns = (rectangle.east - rectangle.west) / MATCHING_CELL + 1
    rows = (rectangle.north - rectangle.south) / MATCHING_CELL + 1
    return all(map(math.isfinite, rectangle)) and columns * rows <= MOST_CELLS


def points_of(event: Event, place: tuple[str, str]) -> Iterator[tuple[float, float]]:
    """Where the event is; several places, if it repeats an attribute."""
    xs, ys = (_numbers(event.get(name)) for name in place)
    for x in dict.fromkeys(xs):
        for y in dict.fromkeys(ys):
            yield x, y


def _numbers(value: Scalar | tuple[Scalar, ...] | None) -> list[float]:
    values = value if isinstance(value, tuple) else (value,)
    return [one for one in values if isinstance(one, float) and math.isfinite(one)]
