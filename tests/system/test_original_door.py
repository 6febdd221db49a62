"""The original's door over real sockets: the flow of its clients, byte for byte as its author printed it."""

import asyncio
import re

import pytest
from lxml import etree

from tests.consumer import Consumer
from tests.harness import NodeProcess
from tests.original_messages import (
    CREATE,
    DELIVERY,
    NOTIFICATION,
    SUBSCRIBE,
    UNSUBSCRIBE_BY_BODY,
    UNSUBSCRIBE_BY_HEADER,
)
from tests.raw_soap import NAMES, SIMPLE, TYPES, Reply, call, envelope, notify, send, subscribe

ORG = "http://org.apache.servicemix.application"
RESPONSE = f"{{{ORG}}}WsnProcessResponse"


async def process(node: NodeProcess, request: str, **parts: str) -> Reply:
    return await send(f"{node.url}/process", request.format(**parts).encode())


def inside(reply: Reply) -> etree._Element:
    """The standard's answer in the wrapper of the original."""
    assert (reply.status, reply.content.tag) == (200, RESPONSE), reply.body
    (answer,) = reply.content
    return answer


def address(reply: Reply) -> str:
    return inside(reply).findtext(".//a:Address", namespaces=NAMES)


async def create(node: NodeProcess, name: str = "") -> str:
    return address(await process(node, CREATE, name=name))


async def subscribed(node: NodeProcess, receiver: str, topic: str) -> str:
    endpoint = await create(node)
    return address(await process(node, SUBSCRIBE, endpoint=endpoint, topic=topic, receiver=receiver))


async def publish(node: NodeProcess, topic: str, message: str) -> None:
    reply = await process(node, NOTIFICATION, topic=topic, fragment="0-0-1-0", message=message)
    assert (reply.status, reply.body) == (202, b"")


def without_id(body: bytes) -> str:
    return re.sub(r"urn:uuid:[0-9a-f-]{36}", "ID", body.decode())


async def count(node: NodeProcess) -> tuple[int, int]:
    """How many subscriptions and pull points the node holds."""
    text = (await send(f"{node.base}/metrics", b"", method="GET")).body.decode()
    values = dict(line.split() for line in text.splitlines() if line and not line.startswith("#"))
    return int(float(values["hpwsn_subscriptions"])), int(float(values["hpwsn_pull_points"]))


# The flow of the original's client


@pytest.mark.parametrize("unsubscribe", [UNSUBSCRIBE_BY_HEADER, UNSUBSCRIBE_BY_BODY], ids=["header", "body"])
async def test_a_client_creates_an_endpoint_subscribes_is_notified_and_unsubscribes(
    node: NodeProcess, unsubscribe: str
) -> None:
    async with Consumer() as receiver:
        subscription = await subscribed(node, receiver.url, "ALL")
        assert subscription.startswith(f"{node.url}/subscriptions/")
        await publish(node, "ALL", "\nnotification\n")
        await publish(node, "ALL:ALARM", "<reading>21.5</reading>")
        await receiver.wait(lambda r: len(r.requests) == 2)
        parts = {"receiver": receiver.url, "subscription": subscription}
        assert [without_id(body) for body in receiver.requests] == [
            DELIVERY.format(topic="ALL", message="\nnotification\n", **parts),
            DELIVERY.format(topic="ALL:ALARM", message="<reading>21.5</reading>", **parts),
        ]
        assert receiver.headers[0]["Content-Type"] == TYPES["1.1"]
        ended = await process(node, unsubscribe, subscription=subscription)
        assert etree.QName(inside(ended)).localname == "UnsubscribeResponse"
        assert await count(node) == (0, 0)
        again = await process(node, unsubscribe, subscription=subscription)
        assert (again.status, again.fault) == (500, "ResourceUnknownFault")


async def test_a_waiting_queue_is_delivered_one_message_to_a_notify(node: NodeProcess) -> None:
    async with Consumer(lambda number: 503 if number < 3 else 202) as receiver:
        await subscribed(node, receiver.url, "A")
        for number in range(5):
            await publish(node, "A", f"<n>{number}</n>")
        await receiver.wait(lambda r: r.payloads()[-1:] == ["4"])
        assert all(body.count(b"<wsnt:NotificationMessage") == 1 for body in receiver.requests)
        assert receiver.payloads()[2:] == ["0", "1", "2", "3", "4"]


async def test_a_subscription_and_its_form_survive_kill_9(node: NodeProcess) -> None:
    async with Consumer(lambda number: 202 if number > 1 else 503) as receiver:
        unused = await create(node, "later")
        subscription = await subscribed(node, receiver.url, "A")
        await publish(node, "A", "before")
        await receiver.wait(lambda r: len(r.requests) == 1)
        node.kill()
        node.start()
        await receiver.wait(lambda r: len(r.requests) == 2)
        await publish(node, "A:B", "after")
        await receiver.wait(lambda r: len(r.requests) == 3)
        texts = [message.findtext("w:Message", namespaces=NAMES) for message in receiver.messages()]
        assert texts == ["before", "before", "after"]
        assert await subscribed(node, receiver.url, "A") == subscription
        assert await create(node, "later") == unused
        reply = await process(node, SUBSCRIBE, endpoint=unused, topic="B", receiver=receiver.url)
        assert address(reply) != subscription
        await process(node, UNSUBSCRIBE_BY_BODY, subscription=subscription)
        assert await count(node) == (1, 0)


async def test_a_repeated_subscription_allocates_nothing_and_frees_its_endpoint(node: NodeProcess) -> None:
    async with Consumer() as receiver:
        first = await subscribed(node, receiver.url, "A:B")
        assert await count(node) == (1, 0)
        assert await subscribed(node, receiver.url, "A:B") == first
        assert await count(node) == (1, 0)
        await publish(node, "A:B", "once")
        await process(node, UNSUBSCRIBE_BY_HEADER, subscription=first)
        assert await subscribed(node, receiver.url, "A:B") != first
        await publish(node, "A:B", "again")
        await receiver.wait(lambda r: "again" in r.requests[-1].decode())
        assert len(receiver.requests) == 2


async def test_an_endpoint_is_used_up_by_one_subscription_which_may_be_asked_for_again(
    node: NodeProcess,
) -> None:
    endpoint = await create(node)
    parts = {"endpoint": endpoint, "receiver": "http://127.0.0.1:9/in"}
    first = await process(node, SUBSCRIBE, topic="A", **parts)
    assert address(await process(node, SUBSCRIBE, topic="A", **parts)) == address(first)
    other = await process(node, SUBSCRIBE, topic="B", **parts)
    assert (other.status, other.fault) == (500, "SubscribeCreationFailedFault")
    assert b"CreatePullPoint" in other.body
    assert await count(node) == (1, 0)


async def test_of_many_subscribes_at_once_one_gets_the_endpoint(node: NodeProcess) -> None:
    parts = {"endpoint": await create(node), "receiver": "http://127.0.0.1:9/in"}
    replies = await asyncio.gather(*(process(node, SUBSCRIBE, topic=f"A{n}", **parts) for n in range(20)))
    assert sorted(reply.status for reply in replies) == [200] + 19 * [500]
    assert await count(node) == (1, 0)


async def test_many_equal_subscribes_at_once_are_one_subscription(node: NodeProcess) -> None:
    endpoints = [await create(node) for _ in range(10)]
    asked = [SUBSCRIBE.format(endpoint=e, topic="A", receiver="http://127.0.0.1:9/in") for e in endpoints]
    replies = await asyncio.gather(*(process(node, request) for request in asked + asked))
    assert len({address(reply) for reply in replies}) == 1
    assert await count(node) == (1, 0)


async def test_an_endpoint_keeps_its_name_until_it_is_used(node: NodeProcess) -> None:
    endpoint = await create(node, "mine")
    assert await create(node, "mine") == endpoint
    assert await create(node) != endpoint
    await process(node, SUBSCRIBE, endpoint=endpoint, topic="A", receiver="http://127.0.0.1:9/in")
    assert await create(node, "mine") != endpoint


async def test_a_pull_point_of_the_standard_is_no_push_endpoint(node: NodeProcess) -> None:
    standard = (await call(node.url, "<w:CreatePullPoint/>")).text("w:PullPoint/a:Address")
    for endpoint in (standard, "http://127.0.0.1:1/elsewhere", "nonsense"):
        reply = await process(node, SUBSCRIBE, endpoint=endpoint, topic="A", receiver="http://127.0.0.1:9/in")
        assert reply.fault == "SubscribeCreationFailedFault"
    assert (await call(standard, "<w:GetMessages/>")).status == 200


async def test_a_subscribe_that_fails_leaves_the_endpoint_for_another(node: NodeProcess) -> None:
    endpoint = await create(node)
    for receiver in ("ftp://127.0.0.1/in", endpoint, node.url, f"{node.url}/process"):
        reply = await process(node, SUBSCRIBE, endpoint=endpoint, topic="A", receiver=receiver)
        assert reply.fault == "SubscribeCreationFailedFault", receiver
    parts = {"endpoint": endpoint, "receiver": "http://127.0.0.1:9/in"}
    assert (await process(node, SUBSCRIBE, topic="A/*", **parts)).fault == "InvalidTopicExpressionFault"
    assert address(await process(node, SUBSCRIBE, topic="A", **parts))


async def test_a_hundred_rounds_leave_nothing_behind(node: NodeProcess) -> None:
    for _ in range(100):
        subscription = await subscribed(node, "http://127.0.0.1:9/in", "A")
        inside(await process(node, UNSUBSCRIBE_BY_BODY, subscription=subscription))
    assert await count(node) == (0, 0)


# The other doors


async def test_subscribers_of_both_doors_get_what_is_published_at_either(node: NodeProcess) -> None:
    async with Consumer() as original, Consumer() as standard:
        await subscribed(node, original.url, "A")
        assert (await call(node.url, subscribe(standard.url, "A"), "1.2")).status == 200
        await publish(node, "A", "from the original")
        assert (await call(node.url, notify("A", "from the standard"))).status == 202
        await publish(node, "A:B", "<n>3</n>")
        await original.wait(lambda c: len(c.messages()) == 3)
        await standard.wait(lambda c: len(c.messages()) == 3)
        assert standard.payloads() == ["from the original", "from the standard", "3"]
        assert all(b'<hp:text xmlns:hp="urn:hpwsn:1">from' in body for body in standard.requests[:1])
        texts = [message.findtext("w:Message", namespaces=NAMES) for message in original.messages()]
        assert texts[:2] == ["from the original", "from the standard"]
        assert not any(b"hp:text" in body or b"Package" in body for body in original.requests)
        assert not any(b"Package" in body for body in standard.requests)


async def test_one_receiver_may_subscribe_at_both_doors(node: NodeProcess) -> None:
    async with Consumer() as receiver:
        original = await subscribed(node, receiver.url, "A")
        standard = await call(node.url, subscribe(receiver.url, "A//.|A", dialect=None))
        assert standard.text("w:SubscriptionReference/a:Address") != original
        await publish(node, "A", "text")
        await receiver.wait(lambda r: len(r.requests) == 2)
        assert sorted(b"hp:text" in body for body in receiver.requests) == [False, True]


async def test_a_subscription_of_the_original_can_be_managed_at_its_own_address(node: NodeProcess) -> None:
    subscription = await subscribed(node, "http://127.0.0.1:9/in", "A")
    assert (await call(subscription, "<w:PauseSubscription/>")).status == 200
    assert (await call(subscription, "<w:Unsubscribe/>")).status == 200


async def test_the_subtree_is_covered_whatever_simple_means_at_the_standards_door(node: NodeProcess) -> None:
    node.terminate()
    node.arguments = ("--set", "topics.simple_subtree=false")
    node.start()
    async with Consumer() as receiver:
        await subscribed(node, receiver.url, "ALL")
        await publish(node, "ALL:ALARM", "<n>1</n>")
        await publish(node, "ALL", "<n>2</n>")
        await publish(node, "OTHER", "<n>3</n>")
        await publish(node, "ALL:ALARM:ALARM1", "<n>4</n>")
        await receiver.wait(lambda r: len(r.requests) == 3)
        assert receiver.payloads() == ["1", "2", "4"]


# What is refused


async def test_pieces_of_a_split_message_are_put_together_in_any_order_and_delivered_once(
    shared_node: NodeProcess,
) -> None:
    current = f'<w:GetCurrentMessage><w:Topic Dialect="{SIMPLE}">P</w:Topic></w:GetCurrentMessage>'
    for fragment, text in (
        ("1-0-1-2", "d&lt;/n&gt;"),
        ("1-1-1-0", "&lt;n&gt;wor"),
        ("1-1-1-0", "&lt;n&gt;wor"),
    ):
        reply = await process(shared_node, NOTIFICATION, topic="P", fragment=fragment, message=text)
        assert reply.status == 202
        assert (await call(shared_node.url, current)).fault == "NoCurrentMessageOnTopicFault"
    for text in ("l", "l"):
        reply = await process(shared_node, NOTIFICATION, topic="P", fragment="1-1-1-1", message=text)
        assert reply.status == 202
    assert "<n>world</n>" in (await call(shared_node.url, current)).body.decode()


@pytest.mark.parametrize(
    ("body", "status", "words"),
    [
        ("<w:Unsubscribe/>", 500, "WsnProcess"),
        ("<w:Notify/>", 500, "WsnProcess"),
        ("", 500, "Body is empty"),
        (f'<o:WsnProcess xmlns:o="{ORG}"/>', 500, "0 requests"),
        (f'<o:WsnProcess xmlns:o="{ORG}"><w:Renew/></o:WsnProcess>', 500, "Renew"),
        (f'<o:WsnProcess xmlns:o="{ORG}"><w:Unsubscribe/></o:WsnProcess>', 500, "wsa:To"),
        (
            f'<o:WsnProcess xmlns:o="{ORG}"><w:Unsubscribe><a:To>x</a:To></w:Unsubscribe></o:WsnProcess>',
            500,
            "x",
        ),
        ("<not", 400, "not well-formed"),
    ],
)
async def test_what_is_no_request_is_a_fault_of_soap_11(
    shared_node: NodeProcess, body: str, status: int, words: str
) -> None:
    reply = await send(f"{shared_node.url}/process", envelope(body))
    assert (reply.status, reply.content.tag) == (status, "{http://schemas.xmlsoap.org/soap/envelope/}Fault")
    assert words in reply.content.findtext("faultstring")


async def test_soap_12_is_a_version_mismatch_in_soap_11(shared_node: NodeProcess) -> None:
    body = f'<o:WsnProcess xmlns:o="{ORG}"><w:CreatePullPoint/></o:WsnProcess>'
    reply = await send(f"{shared_node.url}/process", envelope(body, "1.2"), TYPES["1.2"])
    assert (reply.status, reply.headers["Content-Type"]) == (500, TYPES["1.1"])
    assert reply.content.findtext("faultcode").endswith(":VersionMismatch")


async def test_a_topic_outside_of_a_fixed_tree_is_the_standards_fault(node: NodeProcess) -> None:
    node.terminate()
    tree = node.data.parent / "topics.toml"
    tree.write_text("[topics.ALL]\n")
    node.arguments = ("--topics", str(tree))
    node.start()
    reply = await process(node, NOTIFICATION, topic="NONE", fragment="0-0-1-0", message="x")
    assert (reply.status, reply.fault) == (500, "TopicNotSupportedFault")
    endpoint = await create(node)
    reply = await process(node, SUBSCRIBE, endpoint=endpoint, topic="NONE", receiver="http://127.0.0.1:9/in")
    assert reply.fault == "TopicNotSupportedFault"
    assert address(
        await process(node, SUBSCRIBE, endpoint=endpoint, topic="ALL", receiver="http://127.0.0.1:9/in")
    )


# As the original's interface declares it, and with our own header


def escaped(request: str) -> str:
    """The request with the content of its WsnProcess as a string."""
    before, inner, after = re.split(r"(?<=<org:WsnProcess>)(.*)(?=</org:WsnProcess>)", request, flags=re.S)
    return before + inner.replace("<", "&lt;").replace(">", "&gt;") + after


def string_address(reply: Reply) -> str:
    """The address in an answer that is a string."""
    assert (reply.status, reply.content.tag, len(reply.content)) == (200, RESPONSE, 0), reply.body
    return etree.fromstring(reply.content.text or "").findtext(".//a:Address", namespaces=NAMES) or ""


async def test_a_string_as_the_originals_interface_declares_it_is_answered_by_a_string(
    node: NodeProcess,
) -> None:
    async with Consumer() as receiver:
        endpoint = string_address(await process(node, escaped(CREATE), name=""))
        parts = {"endpoint": endpoint, "topic": "A", "receiver": receiver.url}
        subscription = string_address(await process(node, escaped(SUBSCRIBE), **parts))
        payload = "&lt;n&gt;1&lt;/n&gt;"
        reply = await process(node, escaped(NOTIFICATION), topic="A", fragment="0-0-1-0", message=payload)
        assert (reply.status, reply.content.tag, reply.content.text) == (200, RESPONSE, None)
        await receiver.wait(lambda r: r.payloads() == ["1"])
        ended = await process(node, escaped(UNSUBSCRIBE_BY_BODY), subscription=subscription)
        assert etree.fromstring(ended.content.text or "").tag == f"{{{NAMES['w']}}}UnsubscribeResponse"
        assert await count(node) == (0, 0)


async def test_a_string_that_is_not_a_request_is_a_fault(shared_node: NodeProcess) -> None:
    for text, words in (("plain text", "not a request"), ("&lt;a/&gt;", "send CreatePullPoint")):
        reply = await send(
            f"{shared_node.url}/process", envelope(f'<o:WsnProcess xmlns:o="{ORG}">{text}</o:WsnProcess>')
        )
        assert reply.status == 500
        assert words in reply.content.findtext("faultstring")


async def test_a_repeated_message_id_is_accepted_and_not_published_again(node: NodeProcess) -> None:
    header = '<soapenv:Header><hp:MessageId xmlns:hp="urn:hpwsn:1">one</hp:MessageId></soapenv:Header>'
    once = NOTIFICATION.replace("<soapenv:Header/>", header)
    async with Consumer() as receiver:
        await subscribed(node, receiver.url, "A")
        for _ in range(2):
            assert (
                await process(node, once, topic="A", fragment="0-0-1-0", message="<n>1</n>")
            ).status == 202
        await publish(node, "A", "<n>2</n>")
        await receiver.wait(lambda r: len(r.requests) == 2)
        assert receiver.payloads() == ["1", "2"]


async def test_an_answer_refers_to_the_message_that_asked(node: NodeProcess) -> None:
    header = (
        '<soapenv:Header><a:MessageID xmlns:a="http://www.w3.org/2005/08/addressing">urn:q:1</a:MessageID>'
        "</soapenv:Header>"
    )
    reply = await process(node, CREATE.replace("<soapenv:Header/>", header), name="")
    assert reply.envelope.findtext(".//a:RelatesTo", namespaces=NAMES) == "urn:q:1"
    assert reply.envelope.findtext(".//a:Action", namespaces=NAMES) == f"{ORG}/IWsnProcess/WsnProcessResponse"
