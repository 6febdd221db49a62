"""A publisher's registration as the broker holds it: what was asked for, and where it lives.

State only; `registrations` changes it for its owner, `demand` follows the interest in its topics.
"""

from __future__ import annotations

from dataclasses import dataclass

from hpwsn_client.wsn.registrations import RegisterPublisher
from hpwsn_client.wsn.soap import SoapVersion
from hpwsn_client.wsn.topics import Topic, TopicExpression


@dataclass(slots=True, eq=False)
class Registration:
    """One publisher's standing announcement; compared by identity."""

    id: str
    request: RegisterPublisher
    version: SoapVersion
    created: float
    terminates: float | None
    address: str
    """Where it is managed, and where its publisher sends its notifications."""

    @property
    def topics(self) -> tuple[TopicExpression, ...]:
        """What it publishes on; none for anything."""
        return self.request.topics

    @property
    def demand(self) -> bool:
        """Whether it wants to be subscribed to only while somebody is interested."""
        return self.request.demand

    def covers(self, topic: Topic | None, simple_subtree: bool) -> bool:
        """Whether the topic is among those it named, or it named none."""
        if not self.topics:
            return True
        return topic is not None and any(each.matches(topic, simple_subtree) for each in self.topics)
