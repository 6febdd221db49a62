"""How many things a second happen to each key, as a mean over the last seconds.

Whoever counts adds to a dictionary, and does nothing else. Once a second the dictionary becomes the newest of
the WINDOW seconds that count. A key without counts in the window is forgotten, so the memory and the work of
a second are bounded by the keys with recent counts.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict, deque
from collections.abc import Mapping
from typing import Generic, TypeVar

from hpwsn.background import BackgroundTask

K = TypeVar("K")

WINDOW = 10
"""Samples over which a rate is the mean, of about a second each."""
INTERVAL = 1.0
"""Seconds between two samples."""


class RecentRates(BackgroundTask, Generic[K]):
    """Counts by key; `sample` is called once a second while the task runs."""

    def __init__(self) -> None:
        super().__init__(self._sample_forever)
        self.new: defaultdict[K, int] = defaultdict(int)
        """The counts since the last sample. Callers add to it, and do not keep it: a sample replaces it."""
        self._samples: deque[tuple[float, Mapping[K, int]]] = deque()
        self._counts: dict[K, int] = {}
        self.seconds = 0.0
        """The length of the window; less than WINDOW seconds shortly after the start."""

    async def _sample_forever(self) -> None:
        loop = asyncio.get_running_loop()
        before = loop.time()
        while True:
            await asyncio.sleep(INTERVAL)
            now = loop.time()
            self.sample(now - before)
            before = now

    def sample(self, seconds: float) -> None:
        """Take what was counted since the last call, so many seconds ago, into the window."""
        new, self.new = self.new, defaultdict(int)
        counts = self._counts
        for key, count in new.items():
            counts[key] = counts.get(key, 0) + count
        self._samples.append((seconds, new))
        if len(self._samples) > WINDOW:
            self._drop(self._samples.popleft()[1])
        self.seconds = sum([each for each, _ in self._samples])

    def _drop(self, old: Mapping[K, int]) -> None:
        counts = self._counts
        for key, count in old.items():
            left = counts[key] - count
            if left:
                counts[key] = left
            else:
                del counts[key]

    @property
    def counts(self) -> Mapping[K, int]:
        """The counts of each key in the window; divided by `seconds` they are rates."""
        return self._counts

    def rate(self, key: K) -> float:
        """The mean per second in the window; 0 without recent counts."""
        count = self._counts.get(key, 0)
        return count / self.seconds if count else 0.0
