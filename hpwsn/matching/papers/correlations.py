"""Correlation of clusters in Rt-Cluster: how many events matched a subscription in both of two clusters."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations


class Correlations:
    """A symmetric matrix of counts between numbered clusters."""

    def __init__(self) -> None:
        self._rows: dict[int, dict[int, int]] = {}

    def between(self, one: int, other: int) -> int:
        """Return how many events matched both clusters."""
        return self._rows.get(one, {}).get(other, 0)

    def of(self, one: int) -> dict[int, int]:
        """Return the clusters correlated with this one, and the counts."""
        return dict(self._rows.get(one, {}))

    def matched(self, clusters: Iterable[int]) -> None:
        """Record an event that matched subscriptions in all of these clusters."""
        for one, other in combinations(sorted(set(clusters)), 2):
            self._grow(one, other, 1)

    def _grow(self, one: int, other: int, by: int) -> None:
        for a, b in ((one, other), (other, one)):
            row = self._rows.setdefault(a, {})
            row[b] = row.get(b, 0) + by

    def closest(self) -> tuple[int, int] | None:
        """Return the two most correlated clusters, the oldest among equals; None without correlations."""
        rows = self._rows.items()
        pairs = ((-n, one, other) for one, row in rows for other, n in row.items() if one < other)
        best = min(pairs, default=None)
        return best[1:] if best else None

    def merged(self, kept: int, gone: int) -> None:
        """Add the correlations of a merged cluster to those of the cluster that is kept."""
        row = self.dropped(gone)
        for other, count in row.items():
            if other != kept:
                self._grow(kept, other, count)

    def dropped(self, gone: int) -> dict[int, int]:
        """Remove a cluster, and return its correlations."""
        row = self._rows.pop(gone, {})
        for other in row:
            del self._rows[other][gone]
        return row
