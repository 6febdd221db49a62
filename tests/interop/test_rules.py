"""What clients in the field do, so what a node accepts: each rule of docs/standard.md with a test of its own.

Requests are written by hand, as clients that nobody here wrote have been seen to send them: with too little,
with too much, and in every form that the standard leaves open.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import aiohttp
import pytest
from lxml import etree

from tests import raw_soap
from tests.consumer import Consumer
from tests.harness import NodeProcess
from tests.patience import eventually
from tests.raw_soap import NAMES, Reply, call, envelope, notify, send, subscribe

ADDRESS = "w:SubscriptionReference/a:Address"
XSI = "http://www.w3.org/2001/XMLSchema-instance"
NIL = f'<w:{{}} x:nil="true" xmlns:x="{XSI}"/>'
BOTH = pytest.mark.parametrize("version", ["1.1", "1.2"])


def has(count: int) -> Callable[[Consumer], bool]:
    return lambda consumer: len(consumer.messages()) >= count


def headers_of(request: bytes) -> etree._Element:
    root = etree.fromstring(request)
    return root.find(f"{{{etree.QName(root).namespace}}}Header")


async def post(url: str, body: bytes, headers: dict[str, str]) -> Reply:
    """One request with exactly these headers of HTTP."""
    async with (
        aiohttp.ClientSession(skip_auto_headers=["Content-Type"]) as session,
        session.post(url, data=body, headers=headers) as response,
    ):
        return Reply(response.status, dict(response.headers), await response.read())


@BOTH
async def test_an_answer_a_fault_and_a_delivery_are_in_the_soap_version_of_the_client(
    shared_node: NodeProcess, version: str
) -> None:
    other = {"1.1": "1.2", "1.2": "1.1"}[version]
    env, media = raw_soap.ENV[version], raw_soap.TYPES[version].partition(";")[0]
    async with Consumer() as consumer:
        topic = f"soap{version[-1]}"
        made = await call(shared_node.url, subscribe(consumer.url, topic), version)
        refused = await call(shared_node.url, subscribe("ftp://x/", topic), version)
        for reply in (made, refused):
            assert reply.envelope.tag == f"{{{env}}}Envelope"
            assert reply.headers["Content-Type"].startswith(media)
        # A publisher of the other version changes nothing for this subscriber.
        assert (await call(shared_node.url, notify(topic, "<n/>"), other)).status == 202
        await consumer.wait(has(1))
        assert etree.fromstring(consumer.requests[0]).tag == f"{{{env}}}Envelope"
        assert consumer.headers[0]["Content-Type"].startswith(media)
        await call(made.text(ADDRESS), "<w:Unsubscribe/>", other)


@pytest.mark.parametrize(
    "headers",
    [
        {"Content-Type": "text/xml"},
        {"Content-Type": "text/xml", "SOAPAction": '""'},
        {"Content-Type": "text/xml", "SOAPAction": ""},
        {"Content-Type": "text/xml; charset=utf-8", "SOAPAction": '"urn:something:else"'},
        {"Content-Type": "text/xml", "SOAPAction": "http://docs.oasis-open.org/wsn/bw-2/Wrong/Renew"},
        {"Content-Type": "application/xml"},
        {},
        {"Content-Type": 'application/soap+xml; charset=utf-8; action="urn:something:else"'},
    ],
)
async def test_the_body_says_what_is_asked_for_whatever_the_action(
    shared_node: NodeProcess, headers: dict[str, str]
) -> None:
    version = "1.2" if "soap+xml" in headers.get("Content-Type", "") else "1.1"
    reply = await post(shared_node.url, envelope("<w:CreatePullPoint/>", version), headers)
    assert (reply.status, etree.QName(reply.content).localname) == (200, "CreatePullPointResponse")
    await call(reply.text("w:PullPoint/a:Address"), "<w:DestroyPullPoint/>")


TO = "<a:To>http://some.proxy.example/wsn</a:To>"
MESSAGE_ID = "<a:MessageID>urn:uuid:1</a:MessageID>"
ACTION = "<a:Action>http://docs.oasis-open.org/wsn/bw-2/CreatePullPoint/CreatePullPointRequest</a:Action>"
REPLY_TO = "<a:ReplyTo><a:Address>http://www.w3.org/2005/08/addressing/anonymous</a:Address></a:ReplyTo>"


@BOTH
@pytest.mark.parametrize(
    "headers",
    ["", TO, MESSAGE_ID, ACTION, REPLY_TO, TO + REPLY_TO, TO + MESSAGE_ID + ACTION + REPLY_TO],
    ids=["none", "to", "id", "action", "reply-to", "to-and-reply-to", "all"],
)
async def test_ws_addressing_may_be_absent_or_in_part_and_is_answered_in_kind(
    shared_node: NodeProcess, version: str, headers: str
) -> None:
    reply = await call(shared_node.url, "<w:CreatePullPoint/>", version, headers)
    assert reply.status == 200, reply.body
    related = reply.envelope.findtext(".//a:RelatesTo", namespaces=NAMES)
    action = reply.envelope.findtext(".//a:Action", namespaces=NAMES)
    assert related == ("urn:uuid:1" if MESSAGE_ID in headers else None)
    assert bool(action) is (MESSAGE_ID in headers or ACTION in headers)
    await call(reply.text("w:PullPoint/a:Address"), "<w:DestroyPullPoint/>", version)


@pytest.mark.parametrize(
    ("wanted", "published", "comes"),
    [
        ("plain1", "plain1", True),
        ("plain2", "plain2:below", True),
        ("colon1:B", "colon1:B:C", True),
        ("colon2:B", "colon2:C", False),
        ("slash1/B", "slash1:B", True),
        ("slash2:B", "slash2/B", True),
        ("slash3/B", "slash3/B/C", False),
        ("full1//.", "full1/B/C", True),
        ("full2/*", "full2:B", True),
    ],
)
async def test_a_topic_without_a_dialect_is_taken_for_what_it_looks_like(
    shared_node: NodeProcess, wanted: str, published: str, comes: bool
) -> None:
    async with Consumer() as consumer, Consumer() as witness:
        references = [
            (await call(shared_node.url, request)).text(ADDRESS)
            for request in (subscribe(consumer.url, wanted, dialect=None), subscribe(witness.url))
        ]
        assert (await call(shared_node.url, notify(published, "<n>1</n>", dialect=None))).status == 202
        await witness.wait(has(1))
        if comes:
            await consumer.wait(has(1))
        assert bool(consumer.requests) is comes
        current = f"<w:GetCurrentMessage><w:Topic>{published}</w:Topic></w:GetCurrentMessage>"
        assert "".join((await call(shared_node.url, current)).content.itertext()) == "1"
        for reference in references:
            await call(reference, "<w:Unsubscribe/>")


@BOTH
async def test_an_endpoint_may_have_metadata_and_its_reference_parameters_come_back(
    shared_node: NodeProcess, version: str
) -> None:
    async with Consumer() as consumer:
        reference = (
            f"<a:Address>{consumer.url}</a:Address><a:ReferenceParameters>"
            '<x:Key xmlns:x="urn:x" kind="a">one &amp; only</x:Key><Plain xmlns="">2</Plain>'
            "</a:ReferenceParameters><a:Metadata><m:ServiceName xmlns:m='urn:m' EndpointName='p'>"
            "m:Consumer</m:ServiceName></a:Metadata><e:Extra xmlns:e='urn:e'/>"
        )
        body = subscribe(consumer.url, "epr").replace(f"<a:Address>{consumer.url}</a:Address>", reference)
        made = await call(shared_node.url, body, version)
        assert made.status == 200, made.body
        await call(shared_node.url, notify("epr", "<n/>"))
        await consumer.wait(has(1))
        headers = headers_of(consumer.requests[0])
        key, plain = headers.find("{urn:x}Key"), headers.find("Plain")
        assert (key.text, key.get("kind"), plain.text) == ("one & only", "a", "2")
        for header in (key, plain):
            assert header.get(f"{{{raw_soap.WSA}}}IsReferenceParameter") in ("true", "1")
        assert headers.find("{urn:m}ServiceName") is None
        await call(made.text(ADDRESS), "<w:Unsubscribe/>")


async def test_an_endpoint_may_be_nothing_but_an_address_and_so_are_ours(shared_node: NodeProcess) -> None:
    async with Consumer() as consumer:
        made = await call(shared_node.url, subscribe(consumer.url, "bare"))
        point = await call(shared_node.url, "<w:CreatePullPoint/>")
        for reply, name in ((made, "w:SubscriptionReference"), (point, "w:PullPoint")):
            reference = reply.content.find(name, NAMES)
            assert [etree.QName(child).localname for child in reference] == ["Address"]
        # All that a client keeps is the address, and it is enough for every operation.
        subscription, place = made.text(ADDRESS), point.text("w:PullPoint/a:Address")
        for url, body in (
            (subscription, "<w:PauseSubscription/>"),
            (subscription, "<w:ResumeSubscription/>"),
            (subscription, "<w:Renew><w:TerminationTime>PT1H</w:TerminationTime></w:Renew>"),
            (subscription, "<w:Unsubscribe/>"),
            (place, "<w:GetMessages/>"),
            (place, "<w:DestroyPullPoint/>"),
        ):
            assert (await call(url, body)).status == 200, body


TIMES = [
    ("2999-01-01T00:00:00Z", "2999-01-01T00:00:00Z"),
    ("2999-01-01T02:30:00+02:30", "2999-01-01T00:00:00Z"),
    ("2998-12-31T19:00:00-05:00", "2999-01-01T00:00:00Z"),
    ("2999-01-01T00:00:00", "2999-01-01T00:00:00Z"),
    ("2999-01-01T00:00:00.250Z", "2999-01-01T00:00:00.250Z"),
    ("PT1H", timedelta(hours=1)),
    ("P1DT0.5S", timedelta(days=1)),
    ("P1Y", timedelta(days=365)),
    (None, ""),
    ("nil", ""),
]


@pytest.mark.parametrize(("asked", "expected"), TIMES, ids=[str(asked) for asked, _ in TIMES])
async def test_every_form_of_time_is_understood_and_answered_in_utc(
    shared_node: NodeProcess, asked: str | None, expected: str | timedelta
) -> None:
    def element(name: str) -> str:
        if asked == "nil":
            return NIL.format(name)
        return "" if asked is None else f"<w:{name}>{asked}</w:{name}>"

    made = await call(
        shared_node.url, subscribe("http://127.0.0.1:9/", "times", more=element("InitialTerminationTime"))
    )
    answers = [made]
    if asked is not None:
        answers.append(await call(made.text(ADDRESS), f"<w:Renew>{element('TerminationTime')}</w:Renew>"))
    for reply in answers:
        assert reply.status == 200, reply.body
        assert reply.text("w:CurrentTime").endswith("Z")
        ends = reply.text("w:TerminationTime")
        if isinstance(expected, str):
            assert ends == expected
        else:
            assert ends.endswith("Z")
            # A year may have a day more, and a slow machine a few minutes.
            off = datetime.fromisoformat(ends) - datetime.now(UTC) - expected
            assert abs(off) < timedelta(days=expected.days // 365, minutes=5)
        if expected == "":
            nil = reply.content.find("w:TerminationTime", NAMES)
            assert nil is None or nil.get(f"{{{XSI}}}nil") == "true"
    await call(made.text(ADDRESS), "<w:Unsubscribe/>")


RENEW = "<w:Renew><w:TerminationTime>PT1H</w:TerminationTime></w:Renew>"
BRIEF = "<w:InitialTerminationTime>PT0.2S</w:InitialTerminationTime>"


async def state(node: NodeProcess, reference: str) -> str:
    """What the node says of a subscription; nothing once it is gone."""
    address = f"{node.base}/subscriptions/{reference.rsplit('/', 1)[1]}"
    described: dict[str, str] = json.loads((await send(address, b"", method="GET")).body)
    return described.get("state", "")


async def test_a_renew_within_the_grace_revives_a_subscription_that_delivered_nothing_meanwhile(
    shared_node: NodeProcess,
) -> None:
    async with Consumer() as consumer, Consumer() as witness:
        reference = (await call(shared_node.url, subscribe(consumer.url, "grace", more=BRIEF))).text(ADDRESS)
        other = (await call(shared_node.url, subscribe(witness.url, "grace"))).text(ADDRESS)

        async def expired() -> bool:
            return await state(shared_node, reference) == "expired"

        await eventually(expired)
        await call(shared_node.url, notify("grace", "<n>1</n>"))
        await witness.wait(has(1))
        assert not consumer.requests
        assert (await call(reference, "<w:PauseSubscription/>")).fault == "ResourceUnknownFault"
        assert (await call(reference, RENEW)).status == 200
        await call(shared_node.url, notify("grace", "<n>2</n>"))
        await consumer.wait(has(2))
        assert consumer.payloads() == ["1", "2"]
        for each in (reference, other):
            await call(each, "<w:Unsubscribe/>")


async def test_a_renew_after_the_grace_finds_nobody(tmp_path: Path) -> None:
    with NodeProcess(tmp_path / "data", "--set", "subscriptions.grace=0.1") as node:
        reference = (await call(node.url, subscribe("http://127.0.0.1:9/", "A", more=BRIEF))).text(ADDRESS)

        async def gone() -> bool:
            return await state(node, reference) == ""

        await eventually(gone)
        assert (await call(reference, RENEW)).fault == "ResourceUnknownFault"


async def test_a_pull_point_asked_for_by_name_is_the_same_for_the_same_name(
    shared_node: NodeProcess,
) -> None:
    async def create(name: str | None) -> str:
        given = "" if name is None else f' w:pullPointQueueName="{name}"'
        reply = await call(shared_node.url, f"<w:CreatePullPoint{given}/>")
        return reply.text("w:PullPoint/a:Address")

    first, again, other, unnamed = [await create(n) for n in ("queue one", "queue one", "two", None)]
    assert first == again
    assert len({first, other, unnamed, await create(None)}) == 4
    await call(first, notify(None, "<n>kept</n>"))
    assert "kept" in "".join((await call(again, "<w:GetMessages/>")).content.itertext())
    await call(first, "<w:DestroyPullPoint/>")
    assert await create("queue one") != first
    for each in (await create("queue one"), other):
        await call(each, "<w:DestroyPullPoint/>")


async def test_a_pause_retains_up_to_the_queues_limit_and_the_resume_delivers_in_order(
    shared_node: NodeProcess,
) -> None:
    limit = (
        '<w:SubscriptionPolicy><hp:Delivery xmlns:hp="urn:hpwsn:1" maxQueue="20" overflow="drop-oldest"/>'
        "</w:SubscriptionPolicy>"
    )
    async with Consumer() as bounded, Consumer() as whole, Consumer() as witness:
        references = [
            (await call(shared_node.url, subscribe(consumer.url, "pause", more=more))).text(ADDRESS)
            for consumer, more in ((bounded, limit), (whole, ""), (witness, ""))
        ]
        for reference in references[:2]:
            await call(reference, "<w:PauseSubscription/>")
        for number in range(50):
            await call(shared_node.url, notify("pause", f"<n>{number}</n>"))
        await witness.wait(has(50))
        assert not bounded.requests + whole.requests
        for reference in references[:2]:
            assert (await call(reference, "<w:ResumeSubscription/>")).status == 200
        await whole.wait(has(50))
        await bounded.wait(lambda c: "49" in c.payloads())
        assert whole.payloads() == [str(number) for number in range(50)]
        assert bounded.payloads() == [str(number) for number in range(30, 50)]
        for reference in references:
            await call(reference, "<w:Unsubscribe/>")


@BOTH
async def test_a_delivery_has_its_subscription_the_real_topic_and_the_producer_unchanged(
    shared_node: NodeProcess, version: str
) -> None:
    producer = (
        "<w:ProducerReference><a:Address>http://sensor.example/1</a:Address><a:ReferenceParameters>"
        '<s:Id xmlns:s="urn:s">7</s:Id></a:ReferenceParameters></w:ProducerReference>'
    )
    message = (
        f'<w:NotificationMessage><w:Topic Dialect="{raw_soap.CONCRETE}" xmlns:t="urn:t">t:real/B/C</w:Topic>'
        f"{producer}<w:Message><n>1</n></w:Message></w:NotificationMessage>"
    )
    expression = f'<w:TopicExpression Dialect="{raw_soap.FULL}" xmlns:q="urn:t">q:real//*</w:TopicExpression>'
    async with Consumer() as consumer:
        made = await call(shared_node.url, subscribe(consumer.url, filters=expression), version)
        assert (await call(shared_node.url, f"<w:Notify>{message}</w:Notify>")).status == 202
        await consumer.wait(has(1))
        (delivered,) = consumer.messages()
        assert delivered.findtext(ADDRESS, namespaces=NAMES) == made.text(ADDRESS)
        topic = delivered.find("w:Topic", NAMES)
        prefix, _, path = topic.text.partition(":")
        assert (topic.nsmap[prefix], path) == ("urn:t", "real/B/C")
        assert topic.get("Dialect") == raw_soap.CONCRETE
        sent = etree.fromstring(envelope(producer)).find(".//w:ProducerReference", NAMES)
        got = delivered.find("w:ProducerReference", NAMES)
        assert _plain(got) == _plain(sent)
        await call(made.text(ADDRESS), "<w:Unsubscribe/>")


def _plain(element: etree._Element) -> list[tuple[str, str, dict[str, str]]]:
    return [(e.tag, (e.text or "").strip(), dict(e.attrib)) for e in element.iter()]
