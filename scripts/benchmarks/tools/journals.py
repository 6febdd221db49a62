"""Journals that are written without a node, for nodes that start with a lot."""

import asyncio
import time
from pathlib import Path

from hpwsn.journal.journal import Journal
from hpwsn.journal.store.records import SubscriptionRecord
from hpwsn.notification import Notification, Run
from hpwsn_client.wsn.operations.filters import ContentFilter, Filter
from hpwsn_client.wsn.operations.messages import Subscribe, SubscriptionPolicy, encode_message
from hpwsn_client.wsn.operations.notifications import NotificationMessage, encode_content
from hpwsn_client.wsn.soap.addressing import EndpointReference
from hpwsn_client.wsn.soap.names import DIALECT_PREDICATES
from hpwsn_client.wsn.topics.topic_expressions import Topic, TopicExpression

TOPICS = 1_000
BATCH = 5_000


def fill(data: Path, *, notifications: int = 0, subscriptions: int = 0, predicates: bool = False) -> None:
    """Write a data directory with so much in its journal, on a thousand topics below `other`.

    With predicates all subscriptions are on one of the topics, and each asks for other content.
    """
    data.mkdir(parents=True)
    asyncio.run(_fill(data / "journal.db", notifications, subscriptions, predicates))


async def _fill(path: Path, notifications: int, subscriptions: int, predicates: bool) -> None:
    journal = Journal(path)
    await journal.open()
    content, begin, end = encode_content(NotificationMessage(None, b"<reading><value>21.5</value></reading>"))
    topics = [Topic.parse(f"other:t{number}") for number in range(TOPICS)]
    now = time.time()
    for first in range(0, notifications, BATCH):
        await journal.append(
            [
                Run.of(Notification(topics[number % TOPICS], content, begin, end, now))
                for number in range(first, min(first + BATCH, notifications))
            ]
        )
    for number in range(subscriptions):
        # Each has delivered all but the last hundredth of what it matches.
        wanted = Filter(
            topics=(TopicExpression.of(topics[0 if predicates else number % TOPICS]),),
            content=(_content(number),) if predicates else (),
        )
        record = _subscription(number, wanted, now, notifications - notifications // 100)
        future = journal.put_subscription(record)
        if number % BATCH == BATCH - 1:
            await future
    if subscriptions:
        await future
    await journal.close()


def _content(number: int) -> ContentFilter:
    """Ranges that no other subscription has."""
    low, lane = number / 1_000, number % 7
    return ContentFilter(
        DIALECT_PREDICATES,
        f"speed between {low} and {low + 20} and lane = {lane} and weight > {number % 997}",
    )


def _subscription(number: int, wanted: Filter, now: float, cursor: int) -> SubscriptionRecord:
    request = Subscribe(
        consumer=EndpointReference(f"http://127.0.0.1:9/{number}"),
        filter=wanted,
        termination=None,
        policy=SubscriptionPolicy(),
        extensions=(),
    )
    return SubscriptionRecord(f"bench{number}", encode_message(request), "SOAP11", now, cursor=cursor)
