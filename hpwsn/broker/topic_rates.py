"""How many events a second each topic gets, as a mean over the last seconds.

A commit listener adds the size of each run to a dictionary, and does nothing else; recent_rates has the
window. Every commit is counted: what doors accept, what other nodes send, and what comes from ActiveMQ.
"""

from __future__ import annotations

from collections.abc import Sequence
from heapq import nlargest
from operator import itemgetter

from hpwsn.notification import INTERNAL, Run
from hpwsn.recent_rates import RecentRates
from hpwsn_client.wsn.topics.topic_expressions import Topic


class TopicRates(RecentRates[Topic]):
    """Counts the events of each topic; `sample` is called once a second while the task runs."""

    def __init__(self) -> None:
        super().__init__()
        self.version = 0
        """Changes with every sample."""

    def committed(self, first: int, runs: Sequence[Run]) -> None:
        """Count the runs of one commit; what was posted straight to a pull point is on no topic."""
        new = self.new
        for run in runs:
            if run.topic is not None and (run.target is None or run.target == INTERNAL):
                new[run.topic] += run.size

    def sample(self, seconds: float) -> None:
        """Take what was counted since the last call, so many seconds ago, into the window."""
        super().sample(seconds)
        self.version += 1

    def rate_below(self, topic: Topic) -> float:
        """Events a second on this topic and all below it; looks at each topic with recent events."""
        count = sum([count for each, count in self.counts.items() if topic.covers(each)])
        return count / self.seconds if count else 0.0

    def busiest(self, number: int) -> list[tuple[Topic, float]]:
        """The topics with the highest rates, the highest first; fewer if fewer have recent events."""
        found = nlargest(number, self.counts.items(), key=itemgetter(1))
        return [(topic, count / self.seconds) for topic, count in found]
