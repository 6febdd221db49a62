"""The client reads properties and sets lifetimes of a real node's resources, in both versions of SOAP."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

import pytest

from hpwsn_client import Client, SoapVersion, SyncClient
from hpwsn_client.wsn.soap.faults import (
    InvalidQueryExpressionFault,
    InvalidResourcePropertyQNameFault,
    ResourceUnknownFault,
    TerminationTimeChangeRejectedFault,
)
from hpwsn_client.wsn.soap.names import WSNT
from tests.harness import NodeProcess

CONSUMER = "http://127.0.0.1:9/"


@pytest.fixture(params=list(SoapVersion))
async def client(request: pytest.FixtureRequest, shared_node: NodeProcess) -> AsyncIterator[Client]:
    async with Client(shared_node.url, soap=request.param) as one:
        yield one


async def test_the_broker_tells_its_properties_by_prefix_or_full_name(client: Client) -> None:
    for name in ("wsnt:FixedTopicSet", f"{{{WSNT}}}FixedTopicSet", "x:FixedTopicSet"):
        (value,) = await client.get_resource_property(name, namespaces={"x": WSNT})
        assert (value.tag, value.text) == (f"{{{WSNT}}}FixedTopicSet", "false")
    several = await client.get_resource_properties(["wsnt:TopicExpressionDialect", "wstop:TopicSet"])
    assert len(several) == 5
    (found,) = await client.query_resource_properties("//wsnt:FixedTopicSet")
    assert found.text == "false"


async def test_the_topics_of_the_broker_are_told_by_name(client: Client) -> None:
    await client.notify("told:hall", "1")
    await client.notify("{urn:example}told:roof", "2")
    topics = {str(topic) for topic in await client.get_topics()}
    assert {"told:hall", "{urn:example}told:roof"} <= topics
    assert "told" not in topics, "which is only the way to another"


async def test_a_subscription_tells_what_it_is(client: Client) -> None:
    subscription = await client.subscribe("props:A", CONSUMER)
    (consumer,) = await subscription.get_property("wsnt:ConsumerReference")
    assert consumer.findtext("{*}Address") == CONSUMER
    (end,) = await client.query_resource_properties("//wsnt:CreationTime", subscription)
    assert datetime.fromisoformat(end.text or "") <= datetime.now(UTC)
    await subscription.unsubscribe()


async def test_a_lifetime_is_set_and_ended_as_that_of_any_resource(client: Client) -> None:
    subscription = await client.subscribe("props:B", CONSUMER)
    assert subscription.terminates is None
    end = await subscription.set_termination_time(timedelta(hours=1))
    assert end is not None
    assert subscription.terminates == end
    late = datetime(2999, 1, 1, tzinfo=UTC)
    assert await client.set_termination_time(subscription.epr, late) == late
    assert await client.set_termination_time(subscription) is None
    assert subscription.terminates is None
    with pytest.raises(TerminationTimeChangeRejectedFault):
        await subscription.set_termination_time(-1)
    await client.destroy(subscription)
    with pytest.raises(ResourceUnknownFault):
        await client.destroy(subscription)


async def test_what_cannot_be_asked_is_refused_with_the_value(client: Client) -> None:
    with pytest.raises(InvalidResourcePropertyQNameFault, match="Nothing"):
        await client.get_resource_property("wsnt:Nothing")
    with pytest.raises(InvalidQueryExpressionFault):
        await client.query_resource_properties("//wsnt:[")
    for name in ("FixedTopicSet", "nobody:FixedTopicSet"):
        with pytest.raises(ValueError, match=name):
            await client.get_resource_property(name)
    with pytest.raises(ValueError, match="not a list"):
        await client.get_resource_properties("wsnt:FixedTopicSet")


def test_the_sync_client_does_the_same(shared_node: NodeProcess) -> None:
    with SyncClient(shared_node.url) as client:
        subscription = client.subscribe("props:C", CONSUMER)
        assert client.get_resource_property("wsnt:FixedTopicSet")[0].text == "false"
        assert subscription.get_property("wsnt:CreationTime")
        assert client.set_termination_time(subscription, 60) == subscription.terminates is not None
        client.destroy(subscription)
        assert isinstance(client.get_topics(), list)
