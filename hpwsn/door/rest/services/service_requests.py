"""The requests of a stream service: subscriptions and open streams that get the events of its topic.

Subscriptions are those that the topic tree finds for a notification on the topic, with all their content
filters. Polls are not listed: they are over as soon as they are answered.
"""

from __future__ import annotations

from itertools import islice
from typing import Any

from hpwsn.broker.broker import Broker
from hpwsn.broker.subscriptions.subscription import Subscription, subscriptions_of
from hpwsn.door.rest.events.open_streams import OpenStreams
from hpwsn.matching.content.content_group import ContentGroup
from hpwsn_client.wsn.topics.topic_expressions import Topic

MAX_LISTED = 100
"""Maximum requests of a service in one answer; their total is exact."""


class ServiceRequests:
    """Lists the requests of services; `subtree` says whether a topic stands for all below it."""

    def __init__(self, broker: Broker, streams: OpenStreams, *, subtree: bool) -> None:
        self._broker = broker
        self._streams = streams
        self._subtree = subtree

    def describe(self, topic: Topic) -> dict[str, Any]:
        """The number of requests for a topic, and the first of them."""
        streams = self._streams.on(topic, topic.ancestors() if self._subtree else ())
        subscribers = self._broker.tree.match(topic, accepted=True)
        total = len(streams) + sum(len(one) if isinstance(one, ContentGroup) else 1 for one in subscribers)
        items = [one.describe() for one in islice(streams, MAX_LISTED)]
        room = MAX_LISTED - len(items)
        items += [_describe(one) for one in islice(subscriptions_of(subscribers), room)]
        return {"total": total, "items": items}


def _describe(subscription: Subscription) -> dict[str, Any]:
    return {
        "kind": "subscription",
        "id": subscription.id,
        "client": subscription.request.consumer.address,
        "topics": [expression.text for expression in subscription.topics],
        "filter": [content.expression for content in subscription.content],
    }
