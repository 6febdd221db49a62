"""Rt-Cluster: incremental clustering of subscriptions with keywords and a rectangle.

Follows section 2 of the paper on spatio-textual streams. A subscription joins the most similar cluster. If
the similarity is below NewTh, it starts a new cluster on the worker of the most similar one. With more
clusters than CMaxNumTh, the two most correlated clusters merge. An event visits the clusters in its cell of 5
degrees whose rectangle contains it and that have one of its keywords. In each, it is compared with the
subscriptions in its cell of 2 degrees that have one of its keywords. `visited` counts these clusters.

The paper does not say what happens at CMaxNumTh without correlations. Here no cluster is created then, and
the most similar one takes the subscription. Conjunctions without keywords, without a rectangle, or with a
rectangle of more than 20,000 cells are evaluated one by one.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

from hpwsn.matching.language.predicates import Conjunction, Event, Operator
from hpwsn.matching.language.values import Scalar, words
from hpwsn.matching.papers.categories import ranges_of
from hpwsn.matching.papers.clusters import (
    MATCHING_CELL,
    Cell,
    Cluster,
    Rectangle,
    SpatialSubscription,
    cell_of,
)
from hpwsn.matching.papers.conjunctions import ConjunctionEngine, StoredConjunction
from hpwsn.matching.papers.correlations import Correlations

CLUSTERING_CELL = 5.0
"""Side of a cell in degrees, in the grid that leads events to clusters."""

MAX_CELLS = 20_000
"""Maximum number of cells that a rectangle may touch; the whole earth has 16,200."""


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
            raise ValueError(
                f"alpha is {alpha}; give a weight of keywords against space, at least 0 and less than 1"
            )
        super().__init__()
        self.visited = 0
        self.clusters: dict[int, Cluster] = {}
        self.correlations = Correlations()
        self._place, self._keywords = place, keywords
        self._alpha, self._new_threshold, self._max_clusters = alpha, new_threshold, max(1, most_clusters)
        self._by_frequency, self._by_correlation = by_frequency, by_correlation
        self._cells: dict[Cell, dict[int, int]] = {}
        self._unindexed: dict[StoredConjunction, None] = {}
        self._next = 0

    def _insert(self, stored: StoredConjunction) -> None:
        spatial = spatial_subscription(stored.conjunction, self._place, self._keywords)
        if spatial is None:
            self._unindexed[stored] = None
            return
        best, similarity = self._most_similar(spatial)
        if best is None or (similarity < self._new_threshold and self._may_create_cluster()):
            best = self._create_cluster(self._worker_for(best, similarity))
        self._attach(best, stored, spatial)
        if len(self.clusters) > self._max_clusters:
            self._merge()

    def _most_similar(self, spatial: SpatialSubscription) -> tuple[Cluster | None, float]:
        best, most = None, -1.0
        for cluster in self.clusters.values():
            similarity = cluster.similarity(spatial, self._alpha, self._by_frequency)
            if similarity > most:
                best, most = cluster, similarity
        return best, most

    def _may_create_cluster(self) -> bool:
        return len(self.clusters) < self._max_clusters or (
            self._by_correlation and self.correlations.closest() is not None
        )

    def _worker_for(self, best: Cluster | None, similarity: float) -> int:
        return best.worker if best else 0

    def _create_cluster(self, worker: int) -> Cluster:
        cluster = self.clusters[self._next] = Cluster(self._next, worker)
        self._next += 1
        return cluster

    def _attach(self, cluster: Cluster, stored: StoredConjunction, spatial: SpatialSubscription) -> None:
        cluster.add(stored, spatial)
        stored.place = cluster
        for cell in spatial.rectangle.cells(CLUSTERING_CELL):
            counts = self._cells.setdefault(cell, {})
            counts[cluster.number] = counts.get(cluster.number, 0) + 1

    def _detach(self, cluster: Cluster, stored: StoredConjunction) -> SpatialSubscription:
        spatial = cluster.members[stored]
        cluster.remove(stored)
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
        """Merge the second cluster, with its correlations, into the first."""
        for stored, spatial in list(gone.members.items()):
            self._detach(gone, stored)
            self._attach(kept, stored, spatial)
        kept.load += gone.load
        self.correlations.merged(kept.number, gone.number)
        del self.clusters[gone.number]

    def _delete(self, stored: StoredConjunction) -> None:
        if stored in self._unindexed:
            del self._unindexed[stored]
            return
        cluster: Cluster = stored.place
        self._detach(cluster, stored)
        if not cluster.members:
            self.correlations.dropped(cluster.number)
            del self.clusters[cluster.number]

    def _find(self, event: Event) -> list[StoredConjunction]:
        found = [stored for stored in self._unindexed if self._holds(stored.conjunction, event)]
        value = event.get(self._keywords)
        if value is None:
            return found
        present = words(value)
        clustered: dict[StoredConjunction, None] = {}
        for x, y in points_of(event, self._place):
            clustered.update(dict.fromkeys(self._find_at(x, y, present, event)))
        if self._by_correlation:
            self._correlate(clustered)
        return [*found, *clustered]

    def _correlate(self, matched: Iterable[StoredConjunction]) -> None:
        """Increase the correlation between the clusters of subscriptions that one event matched."""
        self.correlations.matched(stored.place.number for stored in matched)

    def _find_at(
        self, x: float, y: float, present: frozenset[str], event: Event
    ) -> Iterator[StoredConjunction]:
        for cluster in self._clusters_for(x, y, present):
            self.visited += 1
            cluster.load += len(cluster.members)
            for stored in cluster.candidates(x, y, present):
                if self._holds(stored.conjunction, event):
                    yield stored

    def clusters_around(self, x: float, y: float) -> int:
        """Return how many clusters an event at a point checks."""
        return len(self._cells.get(cell_of(x, y, CLUSTERING_CELL), ()))

    def _clusters_for(self, x: float, y: float, present: frozenset[str]) -> Iterator[Cluster]:
        """Return the clusters that can contain a match."""
        for number in self._cells.get(cell_of(x, y, CLUSTERING_CELL), ()):
            cluster = self.clusters[number]
            around = cluster.rectangle
            if around and around.contains(x, y) and not present.isdisjoint(cluster.frequencies):
                yield cluster


def spatial_subscription(
    conjunction: Conjunction, place: tuple[str, str], keywords: str
) -> SpatialSubscription | None:
    """Return the keywords and rectangle of a conjunction; None if it lacks either."""
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
    return SpatialSubscription(wanted, rectangle) if _is_small_enough(rectangle) else None


def _is_small_enough(rectangle: Rectangle) -> bool:
    if rectangle.west > rectangle.east or rectangle.south > rectangle.north:
        return False
    columns = (rectangle.east - rectangle.west) / MATCHING_CELL + 1
    rows = (rectangle.north - rectangle.south) / MATCHING_CELL + 1
    return all(map(math.isfinite, rectangle)) and columns * rows <= MAX_CELLS


def points_of(event: Event, place: tuple[str, str]) -> Iterator[tuple[float, float]]:
    """Return the event's points; several if it repeats a coordinate."""
    xs, ys = (_numbers(event.get(name)) for name in place)
    for x in dict.fromkeys(xs):
        for y in dict.fromkeys(ys):
            yield x, y


def _numbers(value: Scalar | tuple[Scalar, ...] | None) -> list[float]:
    values = value if isinstance(value, tuple) else (value,)
    return [one for one in values if isinstance(one, float) and math.isfinite(one)]
