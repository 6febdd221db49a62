"""Ways to post to a consumer, each in a process of its own that keeps so many posts under way.

`python -m benchmarks.tools.pushers KIND URL CONNECTIONS MESSAGES SECONDS` prints how many posts a second were
answered, and how busy the process was. `raw` is a Protocol that writes prepared bytes again at each answer;
`hpwsn` is the push lane of the broker, one subscription for each connection, its envelopes joined for each
post; `aiohttp` is aiohttp's client.
"""

import asyncio
import os
import sys
import time
from collections.abc import Callable
from typing import cast
from urllib.parse import urlsplit

import aiohttp
import uvloop

from benchmarks.tools.messages import READING, TOPIC, envelope, request, varied
from hpwsn.broker.delivery.senders import PushSender
from hpwsn.broker.push.pool import Outcome, OutcomeKind, Pusher
from hpwsn.broker.subscriptions.cursor import Cursor
from hpwsn.broker.subscriptions.subscription import Subscription
from hpwsn.notification import Notification
from hpwsn_client.wsn.operations.filters import Filter
from hpwsn_client.wsn.operations.messages import Subscribe, SubscriptionPolicy
from hpwsn_client.wsn.operations.notifications import NotificationMessage, encode_content
from hpwsn_client.wsn.soap.addressing import EndpointReference
from hpwsn_client.wsn.soap.envelope import SoapVersion
from hpwsn_client.wsn.topics.topic_expressions import Topic, TopicExpression


class Raw(asyncio.Protocol):
    """The raw callback client: the same bytes again as soon as the last are answered."""

    posts = 0

    def __init__(self, data: bytes) -> None:
        self._data = data

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Send the first."""
        self._transport = cast(asyncio.Transport, transport)
        self._transport.write(self._data)

    def data_received(self, data: bytes) -> None:
        """Send the next."""
        if data.startswith(b"HTTP/1.1 202") and data.endswith(b"\r\n\r\n"):
            Raw.posts += 1
            self._transport.write(self._data)


async def raw(url: str, connections: int, messages: int) -> Callable[[], int]:
    """Start the raw callback client; the result tells how many posts were answered."""
    parts = urlsplit(url)
    data = request(url, envelope(messages=messages))
    for _ in range(connections):
        await asyncio.get_running_loop().create_connection(
            lambda: Raw(data), parts.hostname or "", parts.port or 80
        )
    return lambda: Raw.posts


async def hpwsn(url: str, connections: int, messages: int) -> Callable[[], int]:
    """Start the broker's push lane."""
    sender = PushSender(Pusher(connections_per_host=connections), messages)
    topic = Topic.parse(TOPIC)
    expression = TopicExpression.of(topic)
    encoded = [
        encode_content(NotificationMessage(expression, varied(READING, each))) for each in range(messages)
    ]
    notifications = [Notification(topic, *each, 0.0) for each in encoded]
    posts = 0

    def keep_sending(number: int) -> None:
        subscription = _subscription(url, number)

        def done(outcome: Outcome) -> None:
            nonlocal posts
            if outcome.kind is OutcomeKind.DELIVERED:
                posts += 1
                sender.send(subscription, [], notifications.copy(), done)

        # A list of its own each time: what goes to many consumers together is joined but once.
        sender.send(subscription, [], notifications.copy(), done)

    for number in range(connections):
        keep_sending(number)
    return lambda: posts


def _subscription(url: str, number: int) -> Subscription:
    request_ = Subscribe(EndpointReference(url), Filter(), None, SubscriptionPolicy(), ())
    cursor = Cursor(0, window=1, head=0)
    base = "http://127.0.0.1:8080"
    return Subscription(f"{number:032x}", request_, SoapVersion.SOAP11, 0.0, None, cursor, base)


async def with_aiohttp(url: str, connections: int, messages: int) -> Callable[[], int]:
    """Start aiohttp's client, a task for each connection."""
    session = aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=connections))
    body = envelope(messages=messages)
    headers = {"Content-Type": "text/xml; charset=utf-8"}
    posts = 0

    async def post() -> None:
        nonlocal posts
        while True:
            async with session.post(url, data=body, headers=headers) as answer:
                await answer.read()
            posts += 1

    tasks = [asyncio.create_task(post()) for _ in range(connections)]
    return lambda: posts if tasks else 0


LONGEST = 20.0
"""Seconds after which a pusher without any answer has failed."""
KINDS = {"raw": raw, "hpwsn": hpwsn, "aiohttp": with_aiohttp}


async def measure(
    kind: str, url: str, connections: int, messages: int, seconds: float
) -> tuple[float, float]:
    """Posts answered in a second, and how busy this process was."""
    answered = await KINDS[kind](url, connections, messages)
    await asyncio.sleep(max(0.1, seconds / 5))
    count, began, cpu = answered(), time.perf_counter(), time.process_time()
    await asyncio.sleep(seconds)
    while answered() == count and time.perf_counter() < began + LONGEST:  # noqa: ASYNC110
        await asyncio.sleep(seconds)
    taken = time.perf_counter() - began
    return (answered() - count) / taken, (time.process_time() - cpu) / taken


async def main(kind: str, url: str, connections: str, messages: str, seconds: str) -> None:
    """Measure, say so, and leave without ceremony."""
    print(*await measure(kind, url, int(connections), int(messages), float(seconds)), flush=True)
    # Tasks that post for ever would complain about their end.
    os._exit(0)


if __name__ == "__main__":
    uvloop.run(main(*sys.argv[1:]))
