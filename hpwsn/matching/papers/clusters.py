"""Clusters of spatio-textual subscriptions, and how similar a subscription is to one (Rt-Cluster, section 2).

KeySim is the share of the subscription's keywords among all keyword frequencies of the cluster, SpatialSim
how much the cluster's rectangle must grow for its own area, Sim = α·KeySim / ((1 − α)·(1 + SpatialSim)).
Inside a cluster subscriptions lie in a grid and in an inverted index of keywords.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import NamedTuple, TypeVar

from hpwsn.matching.papers.conjunctions import Held

MATCHING_CELL = 2.0
"""Degrees of a cell's side inside a cluster."""

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
        """Square degrees."""
        return (self.east - self.west) * (self.north - self.south)

    def joined(self, other: Rectangle) -> Rectangle:
        """The least rectangle around both."""
        return Rectangle(
            min(self.west, other.west),
            max(self.east, other.east),
            min(self.south, other.south),
            max(self.north, other.north),
        )

    def contains(self, x: float, y: float) -> bool:
        """Whether a point lies in it or on its edge."""
        return self.west <= x <= self.east and self.south <= y <= self.north

    def cells(self, side: float) -> Iterator[Cell]:
        """The cells that it touches."""
        for column in range(math.floor(self.west / side), math.floor(self.east / side) + 1):
            for row in range(math.floor(self.south / side), math.floor(self.north / side) + 1):
                yield column, row


def cell_of(x: float, y: float, side: float) -> Cell:
    """The cell of a point."""
    return math.floor(x / side), math.floor(y / side)


class Spatial(NamedTuple):
    """A subscription's keywords and rectangle."""

    keywords: frozenset[str]
    rectangle: Rectangle


class Cluster:
    """Subscriptions that are alike, on one worker."""

    def __init__(self, number: int, worker: int = 0) -> None:
        self.number = number
        self.worker = worker
        self.load = 0
        self.members: dict[Held, Spatial] = {}
        self.frequencies: Counter[str] = Counter()
        self.rectangle: Rectangle | None = None
        self._total = 0
        self._cells: defaultdict[Cell, dict[Held, None]] = defaultdict(dict)
        self._inverted: defaultdict[str, dict[Held, None]] = defaultdict(dict)

    def add(self, held: Held, spatial: Spatial) -> None:
        """Take a subscription."""
        self.members[held] = spatial
        self.load += 1
        self.frequencies.update(spatial.keywords)
        self._total += len(spatial.keywords)
        rectangle = spatial.rectangle
        self.rectangle = self.rectangle.joined(rectangle) if self.rectangle else rectangle
        for cell in rectangle.cells(MATCHING_CELL):
            self._cells[cell][held] = None
        for word in spatial.keywords:
            self._inverted[word][held] = None

    def remove(self, held: Held) -> None:
        """Forget a subscription; the rectangle shrinks to what is left."""
        spatial = self.members.pop(held)
        self.load += 1
        self._total -= len(spatial.keywords)
        for word in spatial.keywords:
            self.frequencies[word] -= 1
            _drop(self._inverted, word, held)
            if not self.frequencies[word]:
                del self.frequencies[word]
        for cell in spatial.rectangle.cells(MATCHING_CELL):
            _drop(self._cells, cell, held)
        self.rectangle = self._bounds()

    def _bounds(self) -> Rectangle | None:
        bounds = None
        for spatial in self.members.values():
            bounds = bounds.joined(spatial.rectangle) if bounds else spatial.rectangle
        return bounds

    def candidates(self, x: float, y: float, words: frozenset[str]) -> list[Held]:
        """Subscriptions in the point's cell that have one of the words: from the index or the cell."""
        cell = self._cells.get(cell_of(x, y, MATCHING_CELL), {})
        lists = [self._inverted[word] for word in words if word in self._inverted]
        if sum(map(len, lists)) < len(cell):
            return [held for held in dict.fromkeys(held for one in lists for held in one) if held in cell]
        return [held for held in cell if not words.isdisjoint(self.members[held].keywords)]

    def key_similarity(self, keywords: frozenset[str], by_frequency: bool = True) -> float:
        """KeySim; without frequencies every keyword of the cluster counts as one."""
        if not self._total:
            return 0.0
        if not by_frequency:
            return len(keywords & self.frequencies.keys()) / len(self.frequencies)
        return sum(self.frequencies[word] for word in keywords) / self._total

    def spatial_similarity(self, rectangle: Rectangle) -> float:
        """SpatialSim: 0 where nothing must grow, endless for a cluster without area that must."""
        if self.rectangle is None:
            return math.inf
        growth = self.rectangle.joined(rectangle).area - self.rectangle.area
        if self.rectangle.area == 0:
            return 0.0 if self.rectangle.joined(rectangle) == self.rectangle else math.inf
        return growth / self.rectangle.area

    def similarity(self, spatial: Spatial, alpha: float, by_frequency: bool = True) -> float:
        """Sim of the subscription and this cluster."""
        keys = self.key_similarity(spatial.keywords, by_frequency)
        return alpha * keys / ((1 - alpha) * (1 + self.spatial_similarity(spatial.rectangle)))


def _drop(index: defaultdict[K, dict[Held, None]], key: K, held: Held) -> None:
    del index[key][held]
    if not index[key]:
        del index[key]
