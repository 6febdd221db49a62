"""Conditions on the properties of the broker: worked out when asked for, and again once the topics change."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from hpwsn.broker.subscriptions.cursor import Cursor
from hpwsn.broker.subscriptions.producer_conditions import Conditions
from hpwsn.broker.subscriptions.subscription import Subscription
from hpwsn.door.soap.property_documents import broker_properties
from hpwsn.topics.tree.tree import TopicTree
from hpwsn_client.wsn.operations.filters import ContentFilter, Filter
from hpwsn_client.wsn.operations.messages import Subscribe
from hpwsn_client.wsn.soap.addressing import EndpointReference
from hpwsn_client.wsn.soap.envelope import SoapVersion
from hpwsn_client.wsn.soap.faults import InvalidProducerPropertiesExpressionFault
from hpwsn_client.wsn.soap.names import DIALECT_XPATH, WSNT, WSTOP
from hpwsn_client.wsn.topics.topic_expressions import Topic
from tests.patience import eventually

SCOPE = (("t", "urn:hpwsn:topics"), ("w", WSNT), ("wstop", WSTOP))


def subscription(*expressions: str) -> Subscription:
    conditions = tuple(ContentFilter(DIALECT_XPATH, text, SCOPE) for text in expressions)
    request = Subscribe(EndpointReference("http://x/"), Filter(producer_properties=conditions))
    cursor = Cursor(0, window=10, head=0)
    return Subscription("id", request, SoapVersion.SOAP11, 0.0, None, cursor, "http://b/")


@pytest.fixture
def tree() -> TopicTree[Subscription]:
    return TopicTree()


@pytest.fixture
async def conditions(tree: TopicTree[Subscription]) -> AsyncIterator[Conditions]:
    made = Conditions(lambda: broker_properties(tree), lambda: tree.revision, asyncio.to_thread)
    yield made
    await made.close()


@pytest.mark.parametrize(
    ("expressions", "holds"),
    [
        (["w:FixedTopicSet = 'false'"], True),
        (["/*/w:FixedTopicSet = 'true'"], False),
        (["w:FixedTopicSet = 'false'", "count(w:TopicExpressionDialect) > 2"], True),
        (["w:FixedTopicSet = 'false'", "wstop:TopicSet/t:B"], False),
        (["wstop:TopicSet/t:A"], True),
        (["w:Nothing"], False),
    ],
)
async def test_all_conditions_must_hold(
    tree: TopicTree[Subscription], conditions: Conditions, expressions: list[str], holds: bool
) -> None:
    tree.retain(Topic.parse("A"), 1)
    wanting = subscription(*expressions)
    conditions.watch(wanting)
    assert not wanting.producer_holds
    await conditions.look()
    assert wanting.producer_holds is holds


async def test_a_subscription_without_conditions_is_not_watched(conditions: Conditions) -> None:
    plain = subscription()
    conditions.watch(plain)
    await conditions.look()
    assert plain.producer_holds


async def test_the_answer_follows_the_topics(tree: TopicTree[Subscription], conditions: Conditions) -> None:
    wanting, ended = subscription("//t:A[@wstop:topic]"), subscription("//t:A[@wstop:topic]")
    for each in (wanting, ended):
        conditions.watch(each)
    await conditions.look()
    conditions.start()
    conditions.forget(ended)
    tree.retain(Topic.parse("A:B"), 1)
    await conditions.look()
    assert not wanting.producer_holds

    async def holds() -> bool:
        return wanting.producer_holds

    tree.retain(Topic.parse("A"), 2)
    await eventually(holds)
    tree.release(Topic.parse("A"))

    async def holds_no_more() -> bool:
        return not wanting.producer_holds

    await eventually(holds_no_more)
    assert not ended.producer_holds


@pytest.mark.parametrize(
    "bad",
    [
        ContentFilter("urn:other", "a"),
        ContentFilter(DIALECT_XPATH, "a b"),
        ContentFilter(DIALECT_XPATH, "p:a"),
        ContentFilter(DIALECT_XPATH, "//a[//b[//c[//d[//e]]]]"),
        ContentFilter(DIALECT_XPATH, "a" * 4097),
    ],
)
async def test_a_bad_expression_is_the_standards_fault_and_nothing_is_watched(
    conditions: Conditions, bad: ContentFilter
) -> None:
    request = Subscribe(EndpointReference("http://x/"), Filter(producer_properties=(bad,)))
    cursor = Cursor(0, window=10, head=0)
    wanting = Subscription("id", request, SoapVersion.SOAP11, 0.0, None, cursor, "http://b/")
    with pytest.raises(InvalidProducerPropertiesExpressionFault):
        conditions.watch(wanting)
    await conditions.look()
