"""What of a commit is matched together: neighbours on one topic, and nothing that is for a pull point."""

from collections.abc import AsyncIterator
from itertools import groupby, pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpwsn.broker.delivery.processor import _topic_of
from hpwsn.broker.subscriptions.subscription import Subscription
from hpwsn.node import Node
from hpwsn.settings import Config, DataSettings
from hpwsn_client.wsn.operations.filters import ContentFilter, Filter
from hpwsn_client.wsn.operations.messages import Subscribe
from hpwsn_client.wsn.soap.addressing import EndpointReference
from hpwsn_client.wsn.soap.envelope import SoapVersion
from hpwsn_client.wsn.soap.names import DIALECT_SIMPLE, DIALECT_XPATH
from hpwsn_client.wsn.topics.topic_expressions import Topic, parse_topic_expression
from tests.runs import run_of

TOPICS = (None, Topic.parse("a"), Topic.parse("b"))


@given(st.lists(st.tuples(st.sampled_from(TOPICS), st.sampled_from((None, None, "p"))), min_size=1))
def test_neighbours_on_one_topic_are_taken_together_and_posted_ones_by_themselves(
    made: list[tuple[Topic | None, str | None]],
) -> None:
    runs = [run_of(topic, b"", time=float(n), target=to) for n, (topic, to) in enumerate(made)]
    groups = [list(group) for _, group in groupby(runs, _topic_of)]
    assert [run for group in groups for run in group] == runs
    for group in groups:
        assert len({run.topic for run in group if run.target is None}) <= 1
        assert len({run.target is None for run in group}) == 1
    for one, next_one in pairwise(groups):
        assert one[0].topic != next_one[0].topic or one[0].target or next_one[0].target


@pytest.fixture
async def node(tmp_path: Path) -> AsyncIterator[Node]:
    """All of a node but its port."""
    made = Node(Config(data=DataSettings(dir=str(tmp_path))))
    await made.parts.journal.open()
    yield made
    await made.parts.delivery.close()
    await made.parts.journal.close()


async def subscribe(node: Node, *content: ContentFilter) -> Subscription:
    """A subscription to the topic `a` that is paused, so that what is for it waits."""
    topics = (parse_topic_expression("a", DIALECT_SIMPLE, {}),)
    request = Subscribe(EndpointReference("http://127.0.0.1/"), Filter(topics=topics, content=content))
    made = await node.parts.broker.subscriptions.subscribe(request, SoapVersion.SOAP11)
    await node.parts.broker.subscriptions.pause(made.id)
    return made


async def test_a_notification_that_cannot_be_matched_costs_none_of_its_run_a_subscriber(
    node: Node, caplog: pytest.LogCaptureFixture
) -> None:
    everyone = await subscribe(node)
    some = await subscribe(node, ContentFilter(DIALECT_XPATH, "boolean(/n[. > 0])"))
    contents = b"<n>0</n>", b"<n>1", b"<n>2</n>"
    await node.parts.journal.append([run_of(TOPICS[1], *contents)])
    assert node.parts.delivery.head == 3
    assert everyone.cursor.batch(5) == [1, 3]
    assert some.cursor.batch(5) == [3]
    assert "notification 2 could not be matched" in caplog.text
