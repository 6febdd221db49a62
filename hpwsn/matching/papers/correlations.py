"""Correlation of clusters: how often one event matched a subscription in each of two (Rt-Cluster)."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations


class Correlations:
    """A symmetric table of counts between numbered clusters."""

    def __init__(self) -> None:
        self._rows: dict[int, dict[int, int]] = {}

    def between(self, one: int, other: int) -> int:
        """How often the two were matched by the same event."""
        return self._rows.get(one, {}).get(other, 0)

    def of(self, one: int) -> dict[int, int]:
        """The clusters that one is correlated with, and how much."""
        return dict(self._rows.get(one, {}))

    def matched(self, clusters: Iterable[int]) -> None:
        """Note an event that matched subscriptions in all of these."""
        for one, other in combinations(sorted(set(clusters)), 2):
            self._grow(one, other, 1)

    def _grow(self, one: int, other: int, by: int) -> None:
        for a, b in ((one, other), (other, one)):
            row = self._rows.setdefault(a, {})
            row[b] = row.get(b, 0) + by

    def closest(self) -> tuple[int, int] | None:
        """The two that are most correlated, the older ones where several are."""
        rows = self._rows.items()
        pairs = ((-n, one, other) for one, row in rows for other, n in row.items() if one < other)
        best = min(pairs, default=None)
        return best[1:] if best else None

    def merged(self, kept: int, gone: int) -> None:
        """One cluster has taken the other in: what correlated with that correlates with this."""
        row = self.dropped(gone)
        for other, count in row.items():
            if other != kept:
                self._grow(kept, other, count)

    def dropped(self, gone: int) -> dict[int, int]:
        """Forget a cluster; what it was correlated with."""
        row = self._rows.pop(gone, {})
        for other in row:
            del self._rows[other][gone]
        return row
