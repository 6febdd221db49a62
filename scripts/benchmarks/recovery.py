"""Recovery: time from start to ready with many notifications in the journal and many subscriptions."""

import asyncio
import tempfile
import time
from pathlib import Path

from benchmarks.frame import Options, Row, Table, progress
from benchmarks.tools.nodes import start, stop
from hpwsn.journal.journal import Journal
from hpwsn.journal.records import SubscriptionRecord
from hpwsn.notification import Notification
from hpwsn_client.wsn.addressing import EndpointReference
from hpwsn_client.wsn.filters import Filter
from hpwsn_client.wsn.messages import Subscribe, SubscriptionPolicy, encode_message
from hpwsn_client.wsn.notifications import NotificationMessage, encode_content
from hpwsn_client.wsn.topics import Topic, TopicExpression

CASES = ((0, 0), (100_000, 1_000), (1_000_000, 10_000))
TOPICS = 1_000
BATCH = 5_000


def run(options: Options) -> Table:
    """Writes each journal, then starts a node on it, killed before that and stopped cleanly before that."""
    return Table("recovery", "s to ready", tuple(_measure(*case) for case in CASES))


def _measure(notifications: int, subscriptions: int) -> tuple[Row, ...]:
    with tempfile.TemporaryDirectory(prefix="hpwsn-bench-") as folder:
        data = Path(folder) / "data"
        data.mkdir()
        progress(f"writing {notifications} notifications and {subscriptions} subscriptions")
        asyncio.run(_fill(data / "journal.db", notifications, subscriptions))
        first, second = (_time_start(data, clean) for clean in (False, True))
    name = f"{notifications:,} and {subscriptions:,}"
    return Row(f"{name}, first start", first), Row(f"{name}, after a kill -9", second)


def _time_start(data: Path, clean: bool) -> float:
    progress("starting a node" + (" again after kill -9" if clean else ""))
    began = time.perf_counter()
    process, _ = start(data, ["log.level=error"])
    taken = time.perf_counter() - began
    stop(process, kill=not clean)
    return taken


async def _fill(path: Path, notifications: int, subscriptions: int) -> None:
    journal = Journal(path)
    await journal.open()
    content, begin, end = encode_content(NotificationMessage(None, b"<reading><value>21.5</value></reading>"))
    topics = [Topic.parse(f"bench:t{number}") for number in range(TOPICS)]
    now = time.time()
    for first in range(0, notifications, BATCH):
        await journal.append(
            [
                Notification(topics[number % TOPICS], content, begin, end, now)
                for number in range(first, first + BATCH)
            ]
        )
    for number in range(subscriptions):
        # Each has delivered all but the last hundredth of what it matches.
        record = _subscription(number, topics[number % TOPICS], now, notifications - notifications // 100)
        future = journal.put_subscription(record)
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
