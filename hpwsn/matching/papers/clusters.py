"""Clusters of spatio-textual subscriptions, and their similarity to a subscription (Rt-Cluster, section 2).

KeySim is the share of the subscription's keywords among all keyword frequencies of the cluster. SpatialSim is
the growth of the cluster's rectangle relative to its area. Sim = α·KeySim / ((1 − α)·(1 + SpatialSim)).
Inside a cluster, a grid and an inverted index of keywords find subscriptions.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import NamedTuple, TypeVar

from hpwsn.matching.papers.conjunctions import StoredConjunction

MATCHING_CELL = 2.0
"""Side of a cell in degrees, inside a cluster."""

Cell = tuple[int, int]
K = TypeVar("K")


class Rectangle(NamedTuple):
    """A closed rectangle."""

    west: float
    east: float
    south: float
    north: float

    @property
    def area(self) -> float:
        """The area in square degrees."""
        return (self.east - self.west) * (self.north - self.south)

    def joined(self, other: Rectangle) -> Rectangle:
        """Return the smallest rectangle that contains both."""
        return Rectangle(
            min(self.west, other.west),
            max(self.east, other.east),
            min(self.south, other.south),
            max(self.north, other.north),
        )

    def contains(self, x: float, y: float) -> bool:
        """Whether the point lies in the rectangle or on its edge."""
        return self.west <= x <= self.east and self.south <= y <= self.north

    def cells(self, side: float) -> Iterator[Cell]:
        """Return the cells that the rectangle touches."""
        for column in range(math.floor(self.west / side), math.floor(self.east / side) + 1):
            for row in range(math.floor(self.south / side), math.floor(self.north / side) + 1):
                yield column, row


def cell_of(x: float, y: float, side: float) -> Cell:
    """Return the cell of a point."""
    return math.floor(x / side), math.floor(y / side)


class SpatialSubscription(NamedTuple):
    """A subscription's keywords and rectangle."""

    keywords: frozenset[str]
    rectangle: Rectangle


class Cluster:
    """Similar subscriptions on one worker."""

    def __init__(self, number: int, worker: int = 0) -> None:
        self.number = number
        self.worker = worker
        self.load = 0
        self.members: dict[StoredConjunction, SpatialSubscription] = {}
        self.frequencies: Counter[str] = Counter()
        self.rectangle: Rectangle | None = None
        self._total = 0
        self._cells: defaultdict[Cell, dict[StoredConjunction, None]] = defaultdict(dict)
        self._inverted: defaultdict[str, dict[StoredConjunction, None]] = defaultdict(dict)

    def add(self, stored: StoredConjunction, spatial: SpatialSubscription) -> None:
        """Add a subscription."""
        self.members[stored] = spatial
        self.load += 1
        self.frequencies.update(spatial.keywords)
        self._total += len(spatial.keywords)
        rectangle = spatial.rectangle
        self.rectangle = self.rectangle.joined(rectangle) if self.rectangle else rectangle
        for cell in rectangle.cells(MATCHING_CELL):
            self._cells[cell][stored] = None
        for word in spatial.keywords:
            self._inverted[word][stored] = None

    def remove(self, stored: StoredConjunction) -> None:
        """Remove a subscription, and shrink the rectangle to the others."""
        spatial = self.members.pop(stored)
        self.load += 1
        self._total -= len(spatial.keywords)
        for word in spatial.keywords:
            self.frequencies[word] -= 1
            _drop(self._inverted, word, stored)
            if not self.frequencies[word]:
                del self.frequencies[word]
        for cell in spatial.rectangle.cells(MATCHING_CELL):
            _drop(self._cells, cell, stored)
        self.rectangle = self._bounds()

    def _bounds(self) -> Rectangle | None:
        bounds = None
        for spatial in self.members.values():
            bounds = bounds.joined(spatial.rectangle) if bounds else spatial.rectangle
        return bounds

    def candidates(self, x: float, y: float, words: frozenset[str]) -> list[StoredConjunction]:
        """Return subscriptions in the point's cell that have one of the words, by the smaller index."""
        cell = self._cells.get(cell_of(x, y, MATCHING_CELL), {})
        lists = [self._inverted[word] for word in words if word in self._inverted]
        if sum(map(len, lists)) < len(cell):
            return [
                stored
                for stored in dict.fromkeys(stored for one in lists for stored in one)
                if stored in cell
            ]
        return [stored for stored in cell if not words.isdisjoint(self.members[stored].keywords)]

    def key_similarity(self, keywords: frozenset[str], by_frequency: bool = True) -> float:
        """Return KeySim; without frequencies every keyword of the cluster counts as one."""
        if not self._total:
            return 0.0
        if not by_frequency:
            return len(keywords & self.frequencies.keys()) / len(self.frequencies)
        return sum(self.frequencies[word] for word in keywords) / self._total

    def spatial_similarity(self, rectangle: Rectangle) -> float:
        """Return SpatialSim: 0 if the rectangle need not grow, infinite if it grows from area 0."""
        if self.rectangle is None:
            return math.inf
        growth = self.rectangle.joined(rectangle).area - self.rectangle.area
        if self.rectangle.area == 0:
            return 0.0 if self.rectangle.joined(rectangle) == self.rectangle else math.inf
        return growth / self.rectangle.area

    def similarity(self, spatial: SpatialSubscription, alpha: float, by_frequency: bool = True) -> float:
        """Return Sim of the subscription and this cluster."""
        keys = self.key_similarity(spatial.keywords, by_frequency)
        return alpha * keys / ((1 - alpha) * (1 + self.spatial_similarity(spatial.rectangle)))


def _drop(index: defaultdict[K, dict[StoredConjunction, None]], key: K, stored: StoredConjunction) -> None:
    del index[key][stored]
    if not index[key]:
        del index[key]
