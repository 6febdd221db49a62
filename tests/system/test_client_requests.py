"""The client's requests over real sockets, against a broker that answers as told."""

import asyncio
import socket
from datetime import UTC, datetime, timedelta

import pytest
from aiohttp import web

from hpwsn_client import (
    BadReply,
    Client,
    Closed,
    ConnectionFailed,
    DeliveryPolicy,
    EndpointReference,
    NotificationMessage,
    PullPoint,
    Receiver,
    SoapFault,
    SoapVersion,
    Subscription,
    TimedOut,
)
from hpwsn_client.arguments import notification_message
from hpwsn_client.wsn.operations.filters import ContentFilter
from hpwsn_client.wsn.operations.messages import (
    CreatePullPoint,
    CreatePullPointResponse,
    DestroyPullPoint,
    DestroyPullPointResponse,
    GetCurrentMessage,
    GetCurrentMessageResponse,
    GetMessages,
    GetMessagesResponse,
    PauseSubscription,
    PauseSubscriptionResponse,
    Renew,
    RenewResponse,
    ResumeSubscription,
    ResumeSubscriptionResponse,
    Subscribe,
    SubscribeResponse,
    Unsubscribe,
    UnsubscribeResponse,
)
from hpwsn_client.wsn.soap.faults import Busy, ResourceUnknownFault, TooLarge, TopicNotSupportedFault
from hpwsn_client.wsn.soap.names import (
    ACTION_NOTIFY,
    DIALECT_CONCRETE,
    DIALECT_SIMPLE,
    DIALECT_XPATH,
    WSN_BW,
    hp,
)
from hpwsn_client.wsn.soap.times import Duration
from hpwsn_client.wsn.soap.xml import Limits
from tests.patience import holds
from tests.system.scripted_broker import ScriptedBroker

NOW = datetime(2030, 1, 1, tzinfo=UTC)
LATER = NOW + timedelta(hours=1)
PARAMETER = b'<k:key xmlns:k="urn:k">7</k:key>'


@pytest.fixture
async def broker():
    async with ScriptedBroker() as scripted:
        subscription = EndpointReference(f"{scripted.base}/wsn/subscriptions/1", (PARAMETER,))
        scripted.script = {
            Subscribe: SubscribeResponse(subscription, NOW, LATER),
            Renew: RenewResponse(None, NOW),
            Unsubscribe: UnsubscribeResponse(),
            PauseSubscription: PauseSubscriptionResponse(),
            ResumeSubscription: ResumeSubscriptionResponse(),
            CreatePullPoint: CreatePullPointResponse(EndpointReference(f"{scripted.base}/wsn/pullpoints/1")),
            GetMessages: GetMessagesResponse(
                (notification_message("A:B", "one"), notification_message(None, "<b/>"))
            ),
            DestroyPullPoint: DestroyPullPointResponse(),
            GetCurrentMessage: GetCurrentMessageResponse(b"<c/>"),
        }
        yield scripted


@pytest.fixture
async def client(broker):
    async with Client(broker.url) as made:
        yield made


@pytest.mark.parametrize("soap", SoapVersion)
async def test_notify_sends_one_addressed_notification(broker, soap):
    async with Client(broker.url, soap=soap) as client:
        await client.notify("ALL:ALARM", "fire", message_id="a<1", producer="http://me/")
    (asked,) = broker.asked
    (message,) = asked.message
    assert (asked.path, asked.envelope.version) == ("/wsn", soap)
    assert (str(message.topic.topic), message.text, message.producer.address) == (
        "ALL:ALARM",
        "fire",
        "http://me/",
    )
    assert asked.envelope.addressing.action == ACTION_NOTIFY
    assert asked.envelope.addressing.to == broker.url
    assert asked.envelope.addressing.message_id.startswith("urn:uuid:")
    assert asked.envelope.header(hp("MessageId")).text == "a<1"


@pytest.mark.parametrize(("asked_for", "said"), [("empty", ""), ("action", ACTION_NOTIFY)])
async def test_soapaction_is_empty_unless_the_action_is_asked_for(broker, asked_for, said):
    async with Client(broker.url, soap_action=asked_for) as client:
        await client.notify("A", "x")
        async with client.publisher() as publisher:
            await publisher.put("A", "y")
    assert [asked.headers["SOAPAction"] for asked in broker.asked] == [f'"{said}"'] * 2


async def test_in_soap_1_2_the_action_is_a_parameter_of_the_content_type(broker):
    async with Client(broker.url, soap=SoapVersion.SOAP12) as client:
        await client.notify("A", "x")
    (headers,) = (asked.headers for asked in broker.asked)
    assert headers["Content-Type"] == f'application/soap+xml; charset=utf-8; action="{ACTION_NOTIFY}"'
    assert "SOAPAction" not in headers


def test_another_soapaction_is_refused_with_what_to_give():
    with pytest.raises(ValueError, match="soap_action is 'urn:x'; give 'empty', or 'action'"):
        Client(soap_action="urn:x")


@pytest.mark.parametrize(
    ("topic", "dialect", "text"),
    [("A", DIALECT_SIMPLE, "A"), ("{urn:x}A", DIALECT_SIMPLE, "t:A"), ("A:B", DIALECT_CONCRETE, "A/B")],
)
async def test_a_topic_of_one_name_is_published_and_asked_for_in_simple_any_other_in_concrete(
    broker, topic, dialect, text
):
    broker.script[GetCurrentMessage] = GetCurrentMessageResponse(b"<x/>")
    async with Client(broker.url) as client:
        await client.notify(topic, "x")
        await client.get_current_message(topic)
    notified, current = broker.asked
    for expression in (notified.message[0].topic, current.message.topic):
        assert (expression.dialect, expression.text) == (dialect, text)


async def test_notify_many_sends_lots_in_order_over_one_connection(broker):
    items = [("A", str(n)) for n in range(5)]
    async with Client(broker.url, batch=2) as client:
        assert await client.notify_many(iter([*items, notification_message("B", "5")])) == 6
        assert await client.notify_many([]) == 0
    assert broker.notified() == [["0", "1"], ["2", "3"], ["4", "5"]]
    assert len({asked.connection for asked in broker.asked}) == 1


async def test_a_failure_among_many_says_how_many_were_accepted(broker):
    fault = TopicNotSupportedFault("no such topic")
    broker.script[tuple] = lambda messages: fault if messages[0].text == "2" else None
    async with Client(broker.url, batch=2) as client:
        with pytest.raises(TopicNotSupportedFault) as caught:
            await client.notify_many(("A", str(n)) for n in range(5))
    assert caught.value.__notes__ == [f"{broker.url} accepted 2 notifications before this error"]


async def test_concurrent_notifications_with_a_linger_travel_together(broker):
    async with Client(broker.url, linger=0.02, batch=10) as client:
        await asyncio.gather(*(client.notify("A", str(n)) for n in range(25)))
    assert broker.notified() == [[str(n) for n in range(s, min(s + 10, 25))] for s in (0, 10, 20)]


async def test_closing_the_client_sends_what_lingers(broker):
    client = Client(broker.url, linger=3600)
    waiting = asyncio.create_task(client.notify("A", "last"))
    await asyncio.sleep(0)
    await client.close()
    await waiting
    assert broker.notified() == [["last"]]


async def test_a_fault_reaches_every_caller_of_a_lingering_request(broker):
    broker.script[tuple] = TopicNotSupportedFault("no such topic")
    async with Client(broker.url, linger=0.02) as client:
        results = await asyncio.gather(*(client.notify("A", "x") for _ in range(3)), return_exceptions=True)
    assert [type(result) for result in results] == [TopicNotSupportedFault] * 3
    assert len(broker.asked) == 1


async def test_subscribe_asks_for_all_that_it_was_given(broker, client):
    subscription = await client.subscribe(
        "f:A/*",
        EndpointReference("http://me/", (PARAMETER,)),
        content="f:level > 2",
        namespaces={"f": "urn:far"},
        expires=timedelta(minutes=1),
        use_raw=True,
        policy=DeliveryPolicy(max_queue=5, overflow="reject", batch=1, expires=None, discipline=None),
    )
    asked = broker.asked[0].message
    assert asked.consumer == EndpointReference("http://me/", (PARAMETER,))
    assert [t.text for t in asked.filter.topics] == ["f:A/*"]
    assert asked.filter.content == (ContentFilter(DIALECT_XPATH, "f:level > 2", (("f", "urn:far"),)),)
    assert (asked.termination, asked.policy.use_raw, asked.policy.delivery.max_queue) == (
        Duration(0, 60),
        True,
        5,
    )
    assert isinstance(subscription, Subscription)
    assert subscription.terminates == LATER


async def test_subscribe_without_a_topic_asks_for_everything_for_ever(broker, client):
    await client.subscribe(consumer="http://me/")
    asked = broker.asked[0].message
    assert (asked.filter.topics, asked.filter.content, asked.termination) == ((), (), None)


async def test_subscribe_needs_a_consumer(client):
    with pytest.raises(ValueError, match="consumer is None"):
        await client.subscribe("A")


async def test_a_subscription_is_managed_at_its_own_endpoint_with_its_parameters(broker, client):
    subscription = await client.subscribe("A", "http://me/")
    await subscription.pause()
    await subscription.resume()
    assert await subscription.renew(60) is None
    assert subscription.terminates is None
    await subscription.unsubscribe()
    assert {asked.path for asked in broker.asked[1:]} == {"/wsn/subscriptions/1"}
    assert all(asked.envelope.header("{urn:k}key").text == "7" for asked in broker.asked[1:])
    actions = [asked.envelope.addressing.action.removeprefix(f"{WSN_BW}/") for asked in broker.asked]
    assert actions == [
        "NotificationProducer/SubscribeRequest",
        "PausableSubscriptionManager/PauseSubscriptionRequest",
        "PausableSubscriptionManager/ResumeSubscriptionRequest",
        "SubscriptionManager/RenewRequest",
        "SubscriptionManager/UnsubscribeRequest",
    ]


async def test_one_client_manages_subscriptions_by_handle_reference_or_url(broker, client):
    subscription = await client.subscribe("A", "http://me/")
    await client.pause(subscription)
    await client.resume(subscription.epr)
    await client.renew(subscription.epr.address, LATER)
    await client.unsubscribe(subscription)
    assert [type(a.message) for a in broker.asked[1:]] == [
        PauseSubscription,
        ResumeSubscription,
        Renew,
        Unsubscribe,
    ]
    assert broker.asked[3].message == Renew(LATER)


async def test_a_pull_point_is_made_subscribed_with_read_and_destroyed(broker, client):
    point = await client.create_pull_point("mine")
    assert isinstance(point, PullPoint)
    await client.subscribe("A", point)
    first, second = await point.get_messages(2)
    await point.destroy()
    assert (first.topic, first.text, first.is_text) == ("A:B", "one", True)
    assert (second.topic, second.text, second.element.tag) == (None, "<b/>", "b")
    made, subscribed, got, destroyed = (asked.message for asked in broker.asked)
    assert (made, subscribed.consumer, got) == (CreatePullPoint("mine"), point.epr, GetMessages(2, ""))
    assert isinstance(destroyed, DestroyPullPoint)
    assert [asked.path for asked in broker.asked[2:]] == ["/wsn/pullpoints/1"] * 2


async def test_the_current_message_of_a_topic_is_a_notification(broker, client):
    current = await client.get_current_message("A:B")
    assert (current.topic, current.payload) == ("A:B", b"<c/>")
    assert str(broker.asked[0].message.topic.topic) == "A:B"


@pytest.mark.parametrize("soap", SoapVersion)
async def test_a_fault_is_raised_under_the_name_of_the_standard(broker, soap):
    broker.script[Renew] = ResourceUnknownFault("gone since Tuesday")
    async with Client(broker.url, soap=soap) as client:
        with pytest.raises(ResourceUnknownFault) as caught:
            await client.renew(broker.url, 60)
    assert caught.value.description == "gone since Tuesday"


@pytest.mark.parametrize("fault", [TooLarge("too much"), Busy("full")])
async def test_a_fault_that_only_the_status_tells_has_its_class(broker, client, fault):
    broker.script[tuple] = fault
    with pytest.raises(type(fault), match=str(fault)):
        await client.notify("A", "x")


async def test_a_busy_broker_says_when_to_come_again():
    async with Receiver(max_waiting=1) as receiver, Client(receiver.url) as client:
        await client.notify("A", "1")
        held = asyncio.create_task(client.notify("A", "2"))
        await holds(receiver._mailbox._put_lock.locked)
        await receiver.close()
        with pytest.raises(Busy) as caught:
            await held
    assert caught.value.retry_after == 1


async def test_nobody_listening_is_a_failed_connection_with_url_and_remedy():
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{bound.getsockname()[1]}/wsn"
        async with Client(url) as client:
            with pytest.raises(ConnectionFailed, match="start the broker") as caught:
                await client.notify("A", "x")
    assert caught.value.url == url
    assert isinstance(caught.value, ConnectionError)


async def test_a_host_name_that_cannot_be_is_one_failed_connection():
    async with Client("http://a..b/wsn") as client:
        with pytest.raises(ConnectionFailed, match="the host name is not valid") as caught:
            await client.notify("A", "x")
    assert caught.value.__suppress_context__


async def test_a_connection_that_breaks_is_a_failed_connection():
    async def hang_up(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        writer.transport.abort()

    server = await asyncio.start_server(hang_up, "127.0.0.1", 0)
    async with server, Client(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/") as client:
        with pytest.raises(ConnectionFailed, match="may have processed"):
            await client.notify("A", "x")


async def test_a_server_without_http_is_told_in_one_line():
    async def greet(reader, writer):
        writer.write(b"220 mail.example.org ESMTP\r\n")
        await reader.read()
        writer.close()

    server = await asyncio.start_server(greet, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/wsn"
    async with server, Client(url) as client:
        with pytest.raises(BadReply) as caught:
            await client.notify("A", "x")
    assert str(caught.value) == f"the server at {url} does not use HTTP; give the broker's URL"


async def test_no_answer_in_time_is_timed_out(broker):
    release = asyncio.Event()
    broker.before_answer = release.wait
    async with Client(broker.url, timeout=0.05) as client:
        with pytest.raises(TimedOut, match=r"within 0\.05 s") as caught:
            await client.notify("A", "x")
    release.set()
    assert caught.value.url == broker.url


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (web.Response(status=404), "HTTP 404 without content; check that a WS-N"),
        (
            web.Response(status=404, text="404: no"),
            "and no SOAP message: '404: no'; check that a WS-N",
        ),
        (web.Response(status=302, headers={"Location": "/there"}), "redirects are not followed"),
        (web.Response(text="<html><body>hello</body></html>"), "and no SOAP message"),
        (web.Response(text="just words"), "just words"),
        (web.Response(status=200), "'nothing'; expected RenewResponse"),
        (UnsubscribeResponse(), "UnsubscribeResponse.*; expected RenewResponse"),
    ],
)
async def test_an_answer_that_was_not_due_is_a_bad_reply(broker, client, answer, words):
    broker.script[Renew] = answer
    with pytest.raises(BadReply, match=words) as caught:
        await client.renew(broker.url)
    assert caught.value.url == broker.url


async def test_another_address_of_the_broker_is_told_its_usual_one(broker):
    broker.script[tuple] = web.Response(status=404)
    async with Client(f"{broker.base}/ws") as client:
        with pytest.raises(BadReply, match=f"check that the URL is the broker's, such as {broker.url}"):
            await client.notify("A", "x")


async def test_an_answer_larger_than_the_limit_is_a_bad_reply(broker):
    broker.script[GetMessages] = GetMessagesResponse((notification_message("A", "x" * 5000),))
    async with Client(broker.url, limits=Limits(body=4000)) as client:
        with pytest.raises(BadReply, match="larger than 4000 bytes"):
            await client.get_messages(broker.url)


async def test_an_answer_in_latin_1_is_understood(broker, client):
    text = '<s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/"><s:Body><s:Fault>'
    text += "<faultcode>s:Client</faultcode><faultstring>zu spät</faultstring>"
    text += "</s:Fault></s:Body></s:Envelope>"
    answer = web.Response(
        status=500, body=text.encode("latin-1"), content_type="text/xml", charset="iso-8859-1"
    )
    broker.script[Renew] = answer
    with pytest.raises(SoapFault, match="zu spät"):
        await client.renew(broker.url)


async def test_a_closed_client_says_so(broker):
    client = Client(broker.url)
    await client.notify("A", "x")
    await client.close()
    await client.close()
    with pytest.raises(Closed, match="create a new one"):
        await client.notify("A", "x")


@pytest.mark.parametrize(
    "options",
    [{"batch": 0}, {"batch": 10_001}, {"connections": 0}, {"timeout": 0}, {"linger": -1}, {"url": "here"}],
)
def test_options_out_of_range_are_refused(options):
    with pytest.raises(ValueError, match=str(next(iter(options.values())))):
        Client(**options)


async def test_a_mistake_in_one_notification_sends_nothing(broker, client):
    with pytest.raises(ValueError, match="cannot be sent as XML"):
        await client.notify("A", "<a>")
    with pytest.raises(TypeError):
        await client.notify("A", {"a": 1})
    assert broker.asked == []
    assert isinstance(notification_message("A", "x"), NotificationMessage)
