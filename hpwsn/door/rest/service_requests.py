"""The requests of a stream service: subscriptions and open streams that get the events of its topic.

Owns the list of open streams (server-sent events and WebSockets), by topic. Subscriptions are those that the
topic tree finds for a notification on the topic, with all their content filters. Polls are not listed: they
are over as soon as they are answered.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from typing import Any

from aiohttp import web

from hpwsn.broker.broker import Broker
from hpwsn.broker.subscriptions.subscription import Subscriber, Subscription
from hpwsn.matching.content.content_group import ContentGroup
from hpwsn_client.wsn.topics.topic_expressions import Topic

MAX_LISTED = 100
"""Maximum requests of a service in one answer; their total is exact."""


@dataclass(frozen=True, slots=True, eq=False)
class OpenStream:
    """A client that follows topics; `kind` is `stream` or `socket`."""

    kind: str
    client: str
    topics: tuple[Topic, ...]
    filter: str

    def describe(self) -> dict[str, Any]:
        """The stream in the list of requests."""
        return {
            "kind": self.kind,
            "client": self.client,
            "topics": list(map(str, self.topics)),
            "filter": [self.filter] if self.filter else [],
        }


class OpenStreams:
    """The streams that are open now."""

    def __init__(self) -> None:
        self._on: dict[Topic, dict[OpenStream, None]] = {}

    @contextmanager
    def opened(self, request: web.Request, topics: Sequence[Topic], kind: str) -> Iterator[None]:
        """List the stream of a request while the block runs."""
        wanted = request.query.get("filter", "").strip()
        one = OpenStream(kind, request.remote or "", tuple(topics), wanted)
        for topic in one.topics:
            self._on.setdefault(topic, {})[one] = None
        try:
            yield
        finally:
            for topic in one.topics:
                del self._on[topic][one]
                if not self._on[topic]:
                    del self._on[topic]

    def on(self, topic: Topic, ancestors: Iterable[Topic]) -> list[OpenStream]:
        """The streams of a topic and of topics above it, each once."""
        found = (one for place in (topic, *ancestors) for one in self._on.get(place, ()))
        return list(dict.fromkeys(found))


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
        items += [_describe(one) for one in islice(_subscriptions(subscribers), room)]
        return {"total": total, "items": items}


def _subscriptions(subscribers: Iterable[Subscriber]) -> Iterator[Subscription]:
    for one in subscribers:
        if isinstance(one, ContentGroup):
            yield from one
        else:
            yield one


def _describe(subscription: Subscription) -> dict[str, Any]:
    return {
        "kind": "subscription",
        "id": subscription.id,
        "client": subscription.request.consumer.address,
        "topics": [expression.text for expression in subscription.topics],
        "filter": [content.expression for content in subscription.content],
    }
