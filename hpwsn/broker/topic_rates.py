"""How many events a second each topic gets, as a mean over the last seconds.

A commit listener adds the size of each run to a dictionary, and does nothing else. Once a second the
dictionary becomes the newest of the WINDOW seconds that count. Every commit is counted: what doors accept,
what other nodes send, and what comes from ActiveMQ. A topic without events in the window is forgotten, so the
memory is bounded by the topics with recent events.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict, deque
from collections.abc import Mapping, Sequence
from heapq import nlargest
from operator import itemgetter

from hpwsn.background import BackgroundTask
from hpwsn.notification import INTERNAL, Run
from hpwsn_client.wsn.topics.topic_expressions import Topic

WINDOW = 10
"""Samples over which a rate is the mean, of about a second each."""
INTERVAL = 1.0
"""Seconds between two samples."""

Counts = dict[Topic | None, int]


class TopicRates(BackgroundTask):
    """Counts the events of each topic; `sample` is called once a second while the task runs."""

    def __init__(self) -> None:
        super().__init__(self._sample_forever)
        self._new: defaultdict[Topic | None, int] = defaultdict(int)
        self._samples: deque[tuple[float, Counts]] = deque()
        self._counts: dict[Topic, int] = {}
        self.seconds = 0.0
        """The length of the window; less than WINDOW seconds shortly after the start."""
        self.version = 0
        """Changes with every sample."""

    def committed(self, first: int, runs: Sequence[Run]) -> None:
        """Count the runs of one commit; what was posted straight to a pull point is on no topic."""
        new = self._new
        for run in runs:
            if run.target is None or run.target == INTERNAL:
                new[run.topic] += run.size

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
        new, self._new = self._new, defaultdict(int)
        new.pop(None, None)
        counts = self._counts
        for topic, count in new.items():
            assert topic is not None
            counts[topic] = counts.get(topic, 0) + count
        self._samples.append((seconds, new))
        self.seconds += seconds
        if len(self._samples) > WINDOW:
            self._drop(*self._samples.popleft())
        self.version += 1

    def _drop(self, seconds: float, old: Counts) -> None:
        counts = self._counts
        for topic, count in old.items():
            assert topic is not None
            left = counts[topic] - count
            if left:
                counts[topic] = left
            else:
                del counts[topic]
        self.seconds = sum(each for each, _ in self._samples)

    @property
    def counts(self) -> Mapping[Topic, int]:
        """The events of each topic in the window; divided by `seconds` they are rates."""
        return self._counts

    def rate(self, topic: Topic) -> float:
        """Events a second on this topic, without those below it."""
        count = self._counts.get(topic, 0)
        return count / self.seconds if count else 0.0

    def rate_below(self, topic: Topic) -> float:
        """Events a second on this topic and all below it; looks at each topic with recent events."""
        count = sum([count for each, count in self._counts.items() if topic.covers(each)])
        return count / self.seconds if count else 0.0

    def busiest(self, number: int) -> list[tuple[Topic, float]]:
        """The topics with the highest rates, the highest first; fewer if fewer have recent events."""
        found = nlargest(number, self._counts.items(), key=itemgetter(1))
        return [(topic, count / self.seconds) for topic, count in found]
