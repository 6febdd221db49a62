"""Latencies of one run, in milliseconds: how late, and whether that grew while the load lasted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Self

GROWTH, GROWTH_MS = 2.0, 100.0
"""Lag grows where the last third is later than so many times the first third and so many milliseconds."""


@dataclass(frozen=True, slots=True)
class Latencies:
    """The distribution, and the means of the first and the last third of the run."""

    p50: float
    p95: float
    p99: float
    longest: float
    first: float
    last: float

    @classmethod
    def of(cls, samples: Sequence[tuple[float, float]]) -> Self:
        """Of pairs of the time at which something was due and how late it was; zeros if there are none."""
        if not samples:
            return cls(0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
        ordered = sorted(late for _, late in samples)
        begin, end = min(due for due, _ in samples), max(due for due, _ in samples)
        third = (end - begin) / 3
        first = fmean(late for due, late in samples if due <= begin + third)
        last = fmean(late for due, late in samples if due >= end - third)
        p50, p95, p99, longest = (_quantile(ordered, share) for share in (0.5, 0.95, 0.99, 1.0))
        return cls(p50, p95, p99, longest, first, last)

    @property
    def grew(self) -> bool:
        """Whether a backlog grew."""
        return self.last > GROWTH * self.first + GROWTH_MS

    def __str__(self) -> str:
        return f"p50 {self.p50:,.0f}, p95 {self.p95:,.0f}, max {self.longest:,.0f} ms"


def _quantile(ordered: Sequence[float], share: float) -> float:
    return ordered[min(int(share * len(ordered)), len(ordered) - 1)]
