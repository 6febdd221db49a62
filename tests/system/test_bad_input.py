"""Bad input: the right status, a fault that says what was wrong, nothing stored, and the node goes on."""

import asyncio
import json
from collections.abc import AsyncIterator

import pytest

from tests import raw_soap
from tests.consumer import Consumer
from tests.harness import NodeProcess
from tests.patience import PATIENCE
from tests.raw_soap import TYPES, call, envelope, notify, send, subscribe

DTD = b'<?xml version="1.0"?><!DOCTYPE x [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]><x>&b;</x>'
WRONG_ROOT = b"<order><item/></order>"
DEEP = b"<a>" * 10_000 + b"</a>" * 10_000


@pytest.fixture
async def alive(shared_node: NodeProcess) -> AsyncIterator[NodeProcess]:
    """A node that must still deliver when the test is over."""
    node = shared_node
    yield node
    async with Consumer() as consumer:
        assert (await call(node.url, subscribe(consumer.url, "still"))).status == 200
        assert (await call(node.url, notify("still", "<alive/>"))).status == 202
        await consumer.wait(lambda c: bool(c.requests))
    assert "Traceback" not in node.log()


@pytest.mark.parametrize("version", ["1.1", "1.2"])
@pytest.mark.parametrize(
    ("data", "status", "words"),
    [
        (b"this is not XML", 400, "XML"),
        (b"", 400, "empty"),
        (b"\x00\xff\xfe garbage \x80", 400, ""),
        (DTD, 400, "document type"),
        (DEEP, 400, "256"),
        (envelope("<w:Notify/>")[:-20], 400, ""),
        (b'<a xmlns:x="u" x:p="1" p="2">&nbsp;</a>', 400, ""),
    ],
)
async def test_what_is_not_xml_is_a_400_with_a_fault(
    alive: NodeProcess, version: str, data: bytes, status: int, words: str
) -> None:
    reply = await send(alive.url, data, TYPES[version])
    assert reply.status == status
    assert reply.content.tag == f"{{{raw_soap.ENV[version]}}}Fault"
    assert words.lower() in "".join(reply.content.itertext()).lower()


async def test_a_wrong_root_element_is_a_fault(alive: NodeProcess) -> None:
    reply = await send(alive.url, WRONG_ROOT)
    assert reply.status == 500
    assert "order" in "".join(reply.content.itertext())


async def test_an_envelope_of_an_unknown_version_is_a_version_mismatch(alive: NodeProcess) -> None:
    reply = await send(alive.url, b'<e:Envelope xmlns:e="urn:soap3"><e:Body/></e:Envelope>')
    assert reply.status == 500
    assert "VersionMismatch" in reply.content.findtext("faultcode", "")


@pytest.mark.parametrize(("version", "status"), [("1.1", 500), ("1.2", 400)])
async def test_an_unknown_operation_is_action_not_supported(
    alive: NodeProcess, version: str, status: int
) -> None:
    reply = await call(alive.url, '<x:Explode xmlns:x="urn:x"/>', version)
    text = "".join(reply.content.itertext())
    assert reply.status == status
    assert "ActionNotSupported" in text
    assert "Explode" in text


@pytest.mark.parametrize("path", ["/wsn/subscriptions/none", "/wsn/pullpoints/none"])
async def test_an_operation_at_the_wrong_address_is_not_supported(alive: NodeProcess, path: str) -> None:
    reply = await call(alive.base + path, "<w:CreatePullPoint/>")
    assert "ActionNotSupported" in "".join(reply.content.itertext())


async def test_20_megabytes_are_too_large(alive: NodeProcess) -> None:
    data = envelope(notify("A", f"<n>{'x' * 20_000_000}</n>"))
    reply = await send(alive.url, data)
    assert reply.status == 413
    assert "16777216" in "".join(reply.content.itertext())


async def test_a_chunked_request_is_bounded_too(alive: NodeProcess) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", alive.port)
    writer.write(
        b"POST /wsn HTTP/1.1\r\nHost: x\r\nContent-Type: text/xml\r\nTransfer-Encoding: chunked\r\n\r\n"
    )
    for _ in range(17):
        writer.write(b"100000\r\n" + b"x" * 0x100000 + b"\r\n")
    writer.write(b"0\r\n\r\n")
    status = await asyncio.wait_for(reader.readline(), PATIENCE)
    writer.close()
    assert b"413" in status


async def test_the_largest_body_that_is_allowed_is_taken(alive: NodeProcess) -> None:
    frame = len(envelope(notify("A", "<n></n>")))
    fits = envelope(notify("A", f"<n>{'x' * (16 * 2**20 - frame)}</n>"))
    assert len(fits) == 16 * 2**20
    assert (await send(alive.url, fits)).status == 202
    over = fits.replace(b"<n>x", b"<n>xx", 1)
    assert (await send(alive.url, over)).status == 413


async def test_10000_messages_are_taken_and_one_more_is_not(alive: NodeProcess) -> None:
    assert (await call(alive.url, notify("A", *["<n/>"] * 10_000))).status == 202
    reply = await call(alive.url, notify("A", *["<n/>"] * 10_001))
    assert reply.status == 500
    assert "10000" in "".join(reply.content.itertext()).replace(",", "")


@pytest.mark.parametrize(
    "body",
    [
        "<w:Notify/>",
        "<w:Notify><w:NotificationMessage/></w:Notify>",
        "<w:Notify><w:NotificationMessage><w:Message/></w:NotificationMessage></w:Notify>",
        "<w:Notify><w:NotificationMessage><w:Message><a/><b/></w:Message></w:NotificationMessage></w:Notify>",
        "<w:Subscribe/>",
        "<w:Subscribe><w:ConsumerReference/></w:Subscribe>",
        "<w:Subscribe><w:ConsumerReference><a:Address/></w:ConsumerReference></w:Subscribe>",
        "<w:GetCurrentMessage/>",
        "",
        "<w:Notify/><w:Notify/>",
    ],
)
@pytest.mark.parametrize(("version", "status", "code"), [("1.1", 500, "Client"), ("1.2", 400, "Sender")])
async def test_what_breaks_the_schema_is_the_senders_fault(
    alive: NodeProcess, body: str, version: str, status: int, code: str
) -> None:
    reply = await call(alive.url, body, version)
    assert reply.status == status
    assert code in "".join(reply.content.itertext())


@pytest.mark.parametrize(
    ("request_body", "fault"),
    [
        (subscribe("http://x/", "A/", dialect=raw_soap.CONCRETE), "InvalidTopicExpressionFault"),
        (subscribe("http://x/", "p:A/B", dialect=raw_soap.CONCRETE), "InvalidTopicExpressionFault"),
        (subscribe("http://x/", "A", dialect="urn:other"), "TopicExpressionDialectUnknownFault"),
        (subscribe("http://x/", filters='<z:Z xmlns:z="urn:z"/>'), "InvalidFilterFault"),
        (
            subscribe(
                "http://x/", filters=f'<w:MessageContent Dialect="{raw_soap.XPATH}">][</w:MessageContent>'
            ),
            "InvalidMessageContentExpressionFault",
        ),
        (
            subscribe("http://x/", filters='<w:MessageContent Dialect="urn:other">a</w:MessageContent>'),
            "InvalidMessageContentExpressionFault",
        ),
        (
            subscribe(
                "http://x/", more="<w:SubscriptionPolicy><x:P xmlns:x='urn:x'/></w:SubscriptionPolicy>"
            ),
            "UnrecognizedPolicyRequestFault",
        ),
        (subscribe("mailto:somebody@example.org"), "SubscribeCreationFailedFault"),
        (subscribe("http://www.w3.org:99999/"), "SubscribeCreationFailedFault"),
        (notify("A|B", "<n/>", dialect=raw_soap.FULL), "InvalidTopicExpressionFault"),
    ],
)
async def test_each_refusal_is_the_standards_own_fault(
    alive: NodeProcess, request_body: str, fault: str
) -> None:
    reply = await call(alive.url, request_body)
    assert (reply.status, reply.fault) == (500, fault)
    assert reply.detail.findtext("b:Timestamp", namespaces=raw_soap.NAMES)
    assert reply.detail.findtext("b:Description", namespaces=raw_soap.NAMES)


async def test_a_header_that_must_be_understood_and_is_not_is_refused(alive: NodeProcess) -> None:
    header = '<x:Pay xmlns:x="urn:x" s:mustUnderstand="1"/>'
    reply = await call(alive.url, notify("A", "<n/>"), headers=header)
    assert reply.status == 500
    assert "MustUnderstand" in reply.content.findtext("faultcode", "")


async def test_a_get_says_where_the_contract_is(alive: NodeProcess) -> None:
    reply = await send(alive.url, b"", method="GET")
    assert (reply.status, reply.headers["Allow"]) == (405, "POST")
    assert b"?wsdl" in reply.body


@pytest.mark.parametrize("encoding", ["iso-8859-1", "utf-16"])
async def test_other_encodings_are_read_and_delivered_in_utf_8(alive: NodeProcess, encoding: str) -> None:
    text = envelope(notify("A", "<n>Zürich</n>")).decode()
    declared = f'<?xml version="1.0" encoding="{encoding}"?>{text}'.encode(encoding)
    async with Consumer() as consumer:
        await call(alive.url, subscribe(consumer.url, "A"))
        assert (await send(alive.url, declared, f"text/xml; charset={encoding}")).status == 202
        await consumer.wait(lambda c: bool(c.requests))
        assert "Zürich".encode() in consumer.requests[0]


@pytest.mark.parametrize(
    "request_",
    [
        b"BR\xcbW /status HTTP/1.1\r\nHost: a\r\n\r\n",
        b"BREW /status HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET /status HTTP/1.1\r\nHost: a\r\nX: " + b"x" * 9000 + b"\r\n\r\n",
        b"GET /status HTTP/9\r\n\r\n",
    ],
    ids=["garbage", "method", "long header", "version"],
)
async def test_a_request_that_is_not_http_is_told_so_in_json(alive: NodeProcess, request_: bytes) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", alive.port)
    writer.write(request_)
    async with asyncio.timeout(PATIENCE):
        head, _, body = (await reader.read()).partition(b"\r\n\r\n")
    writer.close()
    assert b" 400 Bad Request" in head, head
    assert b"application/json" in head
    assert json.loads(body)["error"].startswith("the request is not valid HTTP: ")
    assert len(body) < 500
