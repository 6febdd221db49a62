"""Our client and our node against Apache CXF's broker, on its embedded ActiveMQ.

Also what CXF's broker cannot do, as docs/clients.md tells it: so that it is known when a later one can.
"""

from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime, timedelta
from itertools import count

import aiohttp
import pytest

from hpwsn_client import (
    BadReply,
    Client,
    DeliveryPolicy,
    Notification,
    PullPoint,
    Receiver,
    SoapFault,
    SoapVersion,
    Subscription,
    SyncClient,
)
from hpwsn_client.wsn.soap import faults
from tests.cxf import CxfProgram
from tests.harness import NodeProcess, hpwsn
from tests.patience import eventually
from tests.producer import Producer

_numbers = count(1)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """What the addresses of a CXF broker begin with."""
    with CxfProgram("broker", "interop.Broker", log=tmp_path_factory.mktemp("cxf") / "cxf.log") as running:
        yield running.hear("ready")


@pytest.fixture
def url(root: str) -> str:
    return f"{root}/NotificationBroker"


@pytest.fixture
async def client(url: str) -> AsyncIterator[Client]:
    async with Client(url) as made:
        yield made


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    async with Receiver() as made:
        yield made


@pytest.fixture
def topic() -> str:
    """A topic of this test alone."""
    return f"topic{next(_numbers)}"


@pytest.fixture
async def subscription(client: Client, receiver: Receiver, topic: str) -> AsyncIterator[Subscription]:
    """The receiver's subscription to the topic."""
    made = await client.subscribe(topic, receiver, expires=3600)
    yield made
    if not made.ended:
        await made.unsubscribe()


async def heard(receiver: Receiver) -> Notification:
    return await anext(aiter(receiver))


async def pulled(pull_point: PullPoint) -> list[Notification]:
    """What the pull point holds once it holds something."""
    found: list[Notification] = []

    async def arrived() -> bool:
        found.extend(await pull_point.get_messages(10))
        return bool(found)

    await eventually(arrived)
    return found


async def test_a_notification_is_published_and_received(
    client: Client, receiver: Receiver, subscription: Subscription, topic: str
) -> None:
    await client.notify(topic, '<r:reading xmlns:r="urn:r" unit="C">21.5</r:reading>')
    notification = await heard(receiver)
    assert (notification.topic, notification.element.tag) == (topic, "{urn:r}reading")
    assert (notification.element.text, notification.element.get("unit")) == ("21.5", "C")
    assert notification.subscription is not None
    assert notification.subscription.address == subscription.epr.address


@pytest.mark.usefixtures("subscription")
async def test_plain_text_is_received_as_text(client: Client, receiver: Receiver, topic: str) -> None:
    await client.notify(topic, "fire & smoke")
    assert (await heard(receiver)).text == "fire & smoke"


@pytest.mark.usefixtures("subscription")
async def test_many_notifications_of_one_request_arrive_in_order(
    client: Client, receiver: Receiver, topic: str
) -> None:
    assert await client.notify_many((topic, f"<n>{number}</n>") for number in range(20)) == 20
    assert [(await heard(receiver)).element.text for _ in range(20)] == [str(n) for n in range(20)]


@pytest.mark.usefixtures("subscription")
async def test_a_pipelined_publisher_is_understood(client: Client, receiver: Receiver, topic: str) -> None:
    async with client.publisher() as publisher:
        for number in range(20):
            await publisher.put(topic, f"<n>{number}</n>")
    assert {(await heard(receiver)).element.text for _ in range(20)} == {str(n) for n in range(20)}


@pytest.mark.usefixtures("subscription")
async def test_a_notification_keeps_its_producer(client: Client, receiver: Receiver, topic: str) -> None:
    await client.notify(topic, "<n/>", producer="http://127.0.0.1:9/producer")
    producer = (await heard(receiver)).producer
    assert producer is not None
    assert producer.address == "http://127.0.0.1:9/producer"


async def test_a_topic_in_a_namespace_is_published_and_received(client: Client, receiver: Receiver) -> None:
    subscription = await client.subscribe("{urn:example}Storm", receiver)
    await client.notify("{urn:example}Storm", "<n>1</n>")
    assert (await heard(receiver)).element.text == "1"
    await subscription.unsubscribe()


async def test_a_content_filter_in_xpath_selects(client: Client, receiver: Receiver, topic: str) -> None:
    subscription = await client.subscribe(topic, receiver, content="number(.) > 20")
    await client.notify_many([(topic, "<n>19</n>"), (topic, "<n>21</n>")])
    assert (await heard(receiver)).element.text == "21"
    await subscription.unsubscribe()


async def test_a_subscription_is_renewed(subscription: Subscription) -> None:
    end = await subscription.renew(timedelta(hours=2))
    assert end is not None
    assert timedelta(hours=1) < end - datetime.now(UTC) <= timedelta(hours=2)
    assert subscription.terminates == end


async def test_a_paused_subscription_is_resumed(
    client: Client, receiver: Receiver, subscription: Subscription, topic: str
) -> None:
    await subscription.pause()
    await subscription.resume()
    await client.notify(topic, "<n>after</n>")
    assert (await heard(receiver)).element.text == "after"


async def test_a_subscription_that_is_paused_twice_is_refused(subscription: Subscription) -> None:
    await subscription.pause()
    with pytest.raises(faults.PauseFailedFault, match="already paused"):
        await subscription.pause()


async def test_after_unsubscribe_nothing_answers_at_the_address(subscription: Subscription) -> None:
    await subscription.unsubscribe()
    with pytest.raises(BadReply) as caught:
        await subscription.renew(60)
    assert caught.value.status == 404


async def test_a_pull_point_is_made_filled_emptied_and_destroyed(
    root: str, client: Client, topic: str
) -> None:
    async with Client(f"{root}/CreatePullPoint") as pull_points:
        pull_point = await pull_points.create_pull_point()
        subscription = await client.subscribe(topic, pull_point)
        await client.notify(topic, "<n>1</n>")
        (notification,) = await pulled(pull_point)
        assert (notification.topic, notification.element.text) == (topic, "1")
        assert await pull_point.get_messages() == []
        await subscription.unsubscribe()
        await pull_point.destroy()
        with pytest.raises(BadReply) as caught:
            await pull_point.get_messages()
    assert caught.value.status == 404


async def test_a_pull_point_has_the_queue_that_is_named(root: str, client: Client, topic: str) -> None:
    async with Client(f"{root}/CreatePullPoint") as pull_points:
        pull_point = await pull_points.create_pull_point(f"queue{topic}")
        assert pull_point.epr.address == f"{root}/pullpoints/queue{topic}"
        subscription = await client.subscribe(topic, pull_point)
        await client.notify(topic, "<n>1</n>")
        assert [each.element.text for each in await pulled(pull_point)] == ["1"]
        await subscription.unsubscribe()
        await pull_point.destroy()


@pytest.mark.usefixtures("subscription")
async def test_a_registered_publisher_publishes_until_its_registration_is_destroyed(
    client: Client, receiver: Receiver, topic: str
) -> None:
    registration = await client.register_publisher(topic, publisher="http://127.0.0.1:9/publisher")
    await registration.notify(topic, "<n>1</n>")
    assert (await heard(receiver)).element.text == "1"
    await registration.destroy()
    with pytest.raises(BadReply) as caught:
        await registration.destroy()
    assert caught.value.status == 404


@pytest.mark.usefixtures("subscription")
async def test_a_publisher_registers_without_a_reference(
    client: Client, receiver: Receiver, topic: str
) -> None:
    registration = await client.register_publisher(topic)
    await registration.notify(topic, "<n>1</n>")
    assert (await heard(receiver)).element.text == "1"
    await registration.destroy()


SUBSCRIBE_FAULTS = {
    "without a topic": (faults.InvalidFilterFault, None, {}),
    "a topic of the dialect Concrete": (faults.InvalidTopicExpressionFault, "a/b", {}),
    "a topic of the dialect Full": (faults.InvalidTopicExpressionFault, "a//*", {}),
    "predicates": (faults.InvalidMessageContentExpressionFault, "a", {"predicate": "x > 1"}),
    "raw notifications": (faults.SubscribeCreationFailedFault, "a", {"use_raw": True}),
    "an end in the past": (
        faults.UnacceptableInitialTerminationTimeFault,
        "a",
        {"expires": datetime(2001, 1, 1, tzinfo=UTC)},
    ),
    "a policy of ours": (faults.UnrecognizedPolicyRequestFault, "a", {"policy": DeliveryPolicy(batch=3)}),
}


@pytest.mark.parametrize("asked", SUBSCRIBE_FAULTS)
async def test_a_refused_subscribe_is_the_standards_fault(
    client: Client, receiver: Receiver, asked: str
) -> None:
    kind, on, options = SUBSCRIBE_FAULTS[asked]
    with pytest.raises(kind):
        await client.subscribe(on, receiver, **options)


@pytest.mark.parametrize("expires", [None, datetime(2001, 1, 1, tzinfo=UTC)])
async def test_a_renew_for_ever_or_into_the_past_is_the_standards_fault(
    subscription: Subscription, expires: datetime | None
) -> None:
    with pytest.raises(faults.UnacceptableTerminationTimeFault):
        await subscription.renew(expires)


async def test_a_refused_registration_is_the_standards_fault(client: Client) -> None:
    with pytest.raises(faults.PublisherRegistrationFailedFault):
        await client.register_publisher("a", demand=True)
    with pytest.raises(faults.InvalidTopicExpressionFault):
        await client.register_publisher("a/b")


async def test_there_is_never_a_current_message(client: Client, topic: str) -> None:
    await client.notify(topic, "<n>1</n>")
    with pytest.raises(faults.NoCurrentMessageOnTopicFault):
        await client.get_current_message(topic)


async def test_there_are_no_resource_properties(client: Client) -> None:
    with pytest.raises(SoapFault, match="GetResourceProperty was not recognized"):
        await client.get_resource_property("wsnt:FixedTopicSet")


async def test_soap_1_2_is_refused(url: str, receiver: Receiver) -> None:
    async with Client(url, soap=SoapVersion.SOAP12) as client:
        with pytest.raises(SoapFault, match=r"SOAP 1\.1 only"):
            await client.subscribe("a", receiver)


@pytest.mark.usefixtures("subscription")
async def test_an_action_in_soapaction_is_refused_and_a_notify_with_it_is_dropped(
    client: Client, receiver: Receiver, topic: str
) -> None:
    """Why SOAPAction is empty unless somebody asks for more."""
    async with Client(client.url, soap_action="action") as other:
        with pytest.raises(SoapFault, match="SOAPAction"):
            await other.subscribe(topic, receiver)
        await other.notify(topic, "<n>dropped</n>")
    await client.notify(topic, "<n>kept</n>")
    assert (await heard(receiver)).element.text == "kept"


async def test_a_topic_of_several_names_is_accepted_and_dropped(client: Client, receiver: Receiver) -> None:
    several = await client.subscribe("several:names", receiver)
    single = await client.subscribe("single", receiver)
    await client.notify_many([("several:names", "<n>dropped</n>"), ("single", "<n>kept</n>")])
    assert (await heard(receiver)).element.text == "kept"
    await several.unsubscribe()
    await single.unsubscribe()


@pytest.mark.usefixtures("subscription")
async def test_a_publisher_on_demand_is_asked_for_a_queue_and_not_for_its_topic(
    client: Client, topic: str
) -> None:
    async with Producer() as publisher, Receiver() as late:
        registration = await client.register_publisher(topic, publisher=publisher.url, demand=True)
        subscription = await client.subscribe(topic, late)
        await publisher.wait(lambda p: "Subscribe" in p.operations)
        assert topic not in [asked for _, asked in publisher.calls]
        await subscription.unsubscribe()
        await registration.destroy()


@pytest.mark.usefixtures("subscription")
async def test_the_command_line_publishes(url: str, receiver: Receiver, topic: str) -> None:
    assert hpwsn("publish", topic, "<n>typed</n>", "--url", url).returncode == 0
    assert (await heard(receiver)).element.text == "typed"


@pytest.mark.usefixtures("subscription")
async def test_the_client_without_asyncio_publishes(url: str, receiver: Receiver, topic: str) -> None:
    with SyncClient(url) as client:
        client.notify(topic, "<n>blocking</n>")
    assert (await heard(receiver)).element.text == "blocking"


@pytest.mark.usefixtures("subscription")
async def test_what_a_node_pushes_to_the_broker_reaches_the_brokers_subscribers(
    shared_node: NodeProcess, url: str, receiver: Receiver, topic: str
) -> None:
    async with Client(shared_node.url) as node:
        subscription = await node.subscribe(topic, url)
        await node.notify(topic, "<n>pushed</n>")
        assert (await heard(receiver)).element.text == "pushed"
        events = f"{shared_node.base}/topics/{topic}/events"
        async with aiohttp.ClientSession() as session, session.post(events, json={"n": 7}) as response:
            assert response.status == 202
        assert (await heard(receiver)).element.findtext("n") == "7"
        await subscription.unsubscribe()


async def test_what_the_broker_pushes_to_a_node_reaches_the_nodes_subscribers(
    shared_node: NodeProcess, client: Client, receiver: Receiver, topic: str
) -> None:
    subscription = await client.subscribe(topic, shared_node.url)
    async with Client(shared_node.url) as node:
        await node.subscribe(topic, receiver)
        await client.notify(topic, "<n>from afar</n>")
        notification = await heard(receiver)
    assert (notification.topic, notification.element.text) == (topic, "from afar")
    await subscription.unsubscribe()


async def test_the_brokers_subscriber_is_a_pull_point_of_a_node(
    shared_node: NodeProcess, client: Client, topic: str
) -> None:
    async with Client(shared_node.url) as node:
        pull_point = await node.create_pull_point()
        subscription = await client.subscribe(topic, pull_point)
        await client.notify(topic, "<n>fetched</n>")
        assert [each.element.text for each in await pulled(pull_point)] == ["fetched"]
        await subscription.unsubscribe()
        await pull_point.destroy()
