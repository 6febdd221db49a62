"""Journals that are written without a node, for nodes that start with a lot."""

import asyncio
import time
from pathlib import Path

from hpwsn.journal.journal import Journal
from hpwsn.journal.records import SubscriptionRecord
from hpwsn.notification import Notification
from hpwsn_client.wsn.addressing import EndpointReference
from hpwsn_client.wsn.filters import Filter
from hpwsn_client.wsn.messages import Subscribe, SubscriptionPolicy, encode_message
from hpwsn_client.wsn.notifications import NotificationMessage, encode_content
from hpwsn_client.wsn.topics import Topic, TopicExpression

TOPICS = 1_000
BATCH = 5_000


def fill(data: Path, *, notifications: int = 0, subscriptions: int = 0) -> None:
    """Write a data directory with so much in its journal, on a thousand topics below `other`."""
    data.mkdir(parents=True)
    asyncio.run(_fill(data / "journal.db", notifications, subscriptions))


async def _fill(path: Path, notifications: int, subscriptions: int) -> None:
    journal = Journal(path)
    await journal.open()
    content, begin, end = encode_content(NotificationMessage(None, b"<reading><value>21.5</value></reading>"))
    topics = [Topic.parse(f"other:t{number}") for number in range(TOPICS)]
    now = time.time()
    for first in range(0, notifications, BATCH):
        await journal.append(
            [
                Notification(topics[number % TOPICS], content, begin, end, now)
                for number in range(first, min(first + BATCH, notifications))
            ]
        )
    for number in range(subscriptions):
        # Each has delivered all but the last hundredth of what it matches.
        record = _subscription(number, topics[number % TOPICS], now, notifications - notifications // 100)
        future = journal.put_subscription(record)
        if number % BATCH == BATCH - 1:
            await future
    if subscriptions:
        await future
    await journal.close()


def _subscription(number: int, topic: Topic, now: float, cursor: int) -> SubscriptionRecord:
    request = Subscribe(
        consumer=EndpointReference(f"http://127.0.0.1:9/{number}"),
        filter=Filter(topics=(TopicExpression.of(topic),)),
        termination=None,
        policy=SubscriptionPolicy(),
        extensions=(),
    )
    return SubscriptionRecord(f"bench{number}", encode_message(request), "SOAP11", now, cursor=cursor)
