"""What of a commit is matched together: neighbours on one topic, and nothing that is for a pull point."""

from collections.abc import AsyncIterator
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpwsn.broker.delivery.processor import _runs
from hpwsn.broker.subscriptions.subscription import Subscription
from hpwsn.node import Node
from hpwsn.notification import Notification
from hpwsn.settings import Config, DataSettings
from hpwsn_client.wsn.operations.filters import ContentFilter, Filter
from hpwsn_client.wsn.operations.messages import Subscribe
from hpwsn_client.wsn.soap.addressing import EndpointReference
from hpwsn_client.wsn.soap.envelope import SoapVersion
from hpwsn_client.wsn.soap.names import DIALECT_SIMPLE, DIALECT_XPATH
from hpwsn_client.wsn.topics.topic_expressions import Topic, parse_topic_expression

TOPICS = (None, Topic.parse("a"), Topic.parse("b"))


@given(st.lists(st.tuples(st.sampled_from(TOPICS), st.sampled_from((None, None, "p"))), min_size=1))
def test_runs_are_all_of_a_commit_in_order_each_on_one_topic(
    made: list[tuple[Topic | None, str | None]],
) -> None:
    notifications = [Notification(topic, b"", 0, 0, float(n), None, to) for n, (topic, to) in enumerate(made)]
    runs = list(_runs(notifications))
    assert [each for run in runs for each in run] == notifications
    for run in runs:
        assert len({each.topic for each in run}) == 1
        assert len(run) == 1 or all(each.target is None for each in run)
    for one, next_one in pairwise(runs):
        assert one[0].topic != next_one[0].topic or one[0].target or next_one[0].target


@pytest.fixture
async def node(tmp_path: Path) -> AsyncIterator[Node]:
    """All of a node but its port."""
    made = Node(Config(data=DataSettings(dir=str(tmp_path))))
    await made.journal.open()
    yield made
    await made.delivery.close()
    await made.journal.close()


async def subscribe(node: Node, *content: ContentFilter) -> Subscription:
    """A subscription to the topic `a` that is paused, so that what is for it waits."""
    topics = (parse_topic_expression("a", DIALECT_SIMPLE, {}),)
    request = Subscribe(EndpointReference("http://127.0.0.1/"), Filter(topics=topics, content=content))
    made = await node.broker.subscriptions.subscribe(request, SoapVersion.SOAP11)
    await node.broker.subscriptions.pause(made.id)
    return made


async def test_a_notification_that_cannot_be_matched_costs_none_of_its_run_a_subscriber(
    node: Node, caplog: pytest.LogCaptureFixture
) -> None:
    everyone = await subscribe(node)
    some = await subscribe(node, ContentFilter(DIALECT_XPATH, "boolean(/n[. > 0])"))
    contents = b"<n>0</n>", b"<n>1", b"<n>2</n>"
    run = [Notification(TOPICS[1], content, 0, len(content), 0.0) for content in contents]
    await node.journal.append(run)
    assert node.delivery.head == 3
    assert everyone.cursor.batch(5) == [1, 3]
    assert some.cursor.batch(5) == [3]
    assert "notification 2 could not be matched" in caplog.text
