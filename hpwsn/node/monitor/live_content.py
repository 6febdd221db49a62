"""What the live stream tells of topics and subscriptions, and when it is new.

Both are made from what the node counts anyway, at most once a second and only for readers. Subscriptions are
counted by the survey of the backlogs: with many of them, as of its last complete walk.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hpwsn.node.monitor.node_sample import NodeSample

if TYPE_CHECKING:
    from hpwsn.node.node_parts import Parts

BUSIEST = 10
"""The most topics with their rates in a message."""


class LiveContent:
    """Makes the messages of the kinds `topics` and `subscriptions`."""

    def __init__(self, parts: Parts, sample: NodeSample) -> None:
        self._parts = parts
        self._sample = sample
        self._busy = False
        self._counts: dict[str, int] = {}

    def open(self) -> None:
        """Let the live stream ask here."""
        self._parts.live.source("topics", self.topics)
        self._parts.live.source("subscriptions", self.subscriptions)

    def look(self) -> None:
        """Mark what is not as it was a second before; after traffic, the rates change once more, to none."""
        before, self._busy = self._busy, bool(self._parts.topic_rates.counts)
        if before or self._busy:
            self._parts.live.changed("topics")
        counts = self._sample.backlogs.result.counts()
        if counts != self._counts:
            self._counts = counts
            self._parts.live.changed("subscriptions")

    def topics(self) -> dict[str, Any]:
        """The revision and the number of the topics, and the busiest with their events a second."""
        parts = self._parts
        busiest = parts.topic_rates.busiest(BUSIEST)
        return {
            "revision": parts.topic_overviews.revision,
            "total": len(parts.tree),
            "busiest": [{"topic": str(topic), "rate": round(rate, 3)} for topic, rate in busiest],
        }

    def subscriptions(self) -> dict[str, Any]:
        """The number of subscriptions, and how many have each state."""
        return {
            "total": len(self._parts.subscriptions),
            "counts": self._sample.backlogs.result.counts(),
        }
