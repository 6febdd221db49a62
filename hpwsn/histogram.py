"""Histograms of durations, cheap enough for every batch of notifications.

A histogram is a list of counts over fixed bounds: an observation is one bisection and two additions. There is
no lock, so that only one thread may observe; any thread may read. `Timings` has the histograms of one node.
/metrics shows them whole, /history percentiles of each second, /status those of the last WINDOW seconds.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Sequence
from itertools import accumulate

SHORT = (
    *(0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05),
    *(0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0),
)
"""Upper bounds in seconds for work of this node and for answers of consumers."""
LONG = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 30.0, 60.0, 600.0, 3600.0, 86400.0)
"""Upper bounds in seconds for waits in a queue, which last as long as a consumer is away."""

WINDOW = 10
"""Samples, one a second, over which /status has percentiles."""

Percentiles = dict[str, float | None]
"""`p50` and `p99` in seconds; None where nothing was measured."""


class Histogram:
    """Counts of durations up to each bound, the last of them without a bound, and the sum."""

    __slots__ = ("bounds", "counts", "total")

    def __init__(self, bounds: Sequence[float] = SHORT) -> None:
        self.bounds = tuple(bounds)
        self.counts = [0] * (len(self.bounds) + 1)
        self.total = 0.0
        """The sum of all durations in seconds."""

    def observe(self, seconds: float, count: int = 1) -> None:
        """Add `count` observations of the same duration; a clock that went back counts as no time."""
        if seconds < 0.0:
            seconds = 0.0
        self.counts[bisect_left(self.bounds, seconds)] += count
        self.total += seconds * count

    def cumulative(self) -> list[tuple[float, int]]:
        """Each bound, infinity last, with the number of observations up to it."""
        return list(zip((*self.bounds, float("inf")), accumulate(self.counts), strict=True))

    def percentile(self, share: float, since: Sequence[int] = ()) -> float | None:
        """The duration below which that share of the observations lies, without those counted in `since`.

        It is interpolated between two bounds. Beyond the last bound it is the last bound. None without
        observations.
        """
        counts = self.counts
        if since:
            counts = [now - before for now, before in zip(counts, since, strict=True)]
        wanted = share * sum(counts)
        if not wanted:
            return None
        below, lower = 0, 0.0
        for bound, count in zip(self.bounds, counts, strict=False):
            if below + count >= wanted:
                return lower + (bound - lower) * (wanted - below) / count
            below, lower = below + count, bound
        return self.bounds[-1]


class Timings:
    """The durations that a node measures, in seconds."""

    def __init__(self) -> None:
        self.accept = Histogram()
        """From a complete request to its answer 202; one observation for each request."""
        self.commit = Histogram()
        """Transactions of the journal; observed by its writer's thread."""
        self.match = Histogram()
        """Finding the subscribers for the notifications of one append."""
        self.queue_wait = Histogram(LONG)
        """From acceptance to the first send: of the oldest notification in each send."""
        self.delivery = Histogram()
        """From a send to the consumer's acknowledgement; pull points are not counted."""
        self.latest: dict[str, Percentiles] = {}
        """The percentiles of `accept` and `deliver` between the last two calls of `sample`."""
        self._shown = {"accept": self.accept, "deliver": self.delivery}
        self._sampled = {
            name: deque([list(histogram.counts)], WINDOW) for name, histogram in self._shown.items()
        }
        self.sample()

    def sample(self) -> None:
        """Set `latest`, for the time since the last call; to be called once a second."""
        for name, histogram in self._shown.items():
            samples = self._sampled[name]
            self.latest[name] = _percentiles(histogram, samples[-1])
            samples.append(list(histogram.counts))

    def latency(self) -> dict[str, Percentiles]:
        """The percentiles of `accept` and `deliver` over the last WINDOW calls of `sample`, and since."""
        return {
            name: _percentiles(histogram, self._sampled[name][0]) for name, histogram in self._shown.items()
        }


def _percentiles(histogram: Histogram, since: Sequence[int]) -> Percentiles:
    return {"p50": histogram.percentile(0.5, since), "p99": histogram.percentile(0.99, since)}
