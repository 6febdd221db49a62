"""A publisher's W3C trace context reaches every consumer, from every door, and survives kill -9."""

from __future__ import annotations

import asyncio
import io
import json
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import pytest
from lxml import etree

from hpwsn_client import Client, Receiver
from tests import original_messages
from tests.cluster import AdminProcess, Member
from tests.consumer import Consumer
from tests.harness import NodeProcess
from tests.patience import PATIENCE, holds, patience
from tests.raw_soap import NAMES, TYPES, call, envelope, notify, subscribe
from tests.webhooks import create, events_of

TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
SECOND = "00-11111111111111111111111111111111-2222222222222222-01"
HP = "urn:hpwsn:1"
SOAP_HEADER = f'<hp:Traceparent xmlns:hp="{HP}">{{}}</hp:Traceparent>'
ONVIF = "http://www.onvif.org/ver10/events/wsdl"


@pytest.fixture(scope="module", params=["fast lane", "full lane"])
def node(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[NodeProcess]:
    settings = () if request.param == "fast lane" else ("--set", "server.fast_lane=false")
    with NodeProcess(tmp_path_factory.mktemp("traced") / "data", *settings) as running:
        yield running


async def post(url: str, data: bytes, kind: str = TYPES["1.1"], **headers: str) -> None:
    sent = {"Content-Type": kind, **headers}
    async with aiohttp.ClientSession() as session, _post(session, url, data, sent) as response:
        assert response.status in (200, 202), await response.text()


def _post(session: aiohttp.ClientSession, url: str, data: bytes, headers: dict[str, str]) -> Any:
    return session.post(url, data=io.BytesIO(data), headers=headers)


def traces_of(body: bytes) -> list[str]:
    """What the SOAP header of a request or answer says."""
    found = etree.fromstring(body).findtext(f"*/{{{HP}}}Traceparent")
    return [] if found is None else found.split()


async def events(node: NodeProcess, topic: str) -> list[dict[str, object]]:
    url = f"{node.base}/topics/{topic}/events"
    async with aiohttp.ClientSession() as session, session.get(url) as response:
        found: list[dict[str, object]] = await response.json()
        return found


def original(topic: str) -> bytes:
    return original_messages.NOTIFICATION.format(topic=topic, fragment="0-0-1-0", message="hello").encode()


DOORS = {
    "SOAP, by HTTP header": ("/wsn", TYPES["1.1"], lambda t: envelope(notify(t, "<a/>")), True),
    "SOAP 1.2, by HTTP header": ("/wsn", TYPES["1.2"], lambda t: envelope(notify(t, "<a/>"), "1.2"), True),
    "SOAP, by SOAP header": (
        "/wsn",
        TYPES["1.1"],
        lambda t: envelope(notify(t, "<a/>"), headers=SOAP_HEADER.format(TRACE)),
        False,
    ),
    "SOAP, a large message": (
        "/wsn",
        TYPES["1.1"],
        lambda t: envelope(notify(t, f"<a>{'x' * (1 << 20)}</a>")),
        True,
    ),
    "JSON": ("/topics/{}/events", "application/json", lambda t: b'{"speed": 1}', True),
    "the original's": ("/wsn/process", TYPES["1.1"], original, True),
    "ONVIF": ("/onvif/events", TYPES["1.2"], lambda t: envelope(notify(t, "<a/>"), "1.2"), True),
}


@pytest.mark.parametrize("door", DOORS)
async def test_a_traceparent_goes_from_every_door_to_push_pull_point_and_reader(
    node: NodeProcess, door: str
) -> None:
    path, kind, body, by_http = DOORS[door]
    topic = f"DOOR:D{list(DOORS).index(door)}"
    headers = {"traceparent": TRACE, "tracestate": "congo=t61rcWkgMzE"} if by_http else {}
    async with Consumer() as consumer, Consumer() as webhook, Client(node.url) as client:
        point = await client.create_pull_point()
        await client.subscribe(topic, point)
        await create(node, webhook, topic=topic)
        await call(node.url, subscribe(consumer.url, topic))
        await post(node.base + path.format(topic), body(topic), kind, **headers)
        await consumer.wait(lambda c: len(c.requests) == 1)
        assert consumer.headers[0]["traceparent"] == TRACE
        assert consumer.headers[0].get("tracestate") == headers.get("tracestate")
        assert traces_of(consumer.requests[0]) == [TRACE]
        await webhook.wait(lambda c: len(c.requests) == 1)
        assert webhook.headers[0]["traceparent"] == TRACE
        assert webhook.headers[0].get("tracestate") == headers.get("tracestate")
        async with patience():
            while not (pulled := await point.get_messages()):  # noqa: ASYNC110
                await asyncio.sleep(0.01)
    assert [each.traceparent for each in pulled] == [TRACE]
    (event,) = await events(node, topic)
    assert events_of(webhook) == [event]
    assert event["traceparent"] == TRACE
    assert list(event) == ["offset", "topic", "time", "id", "traceparent", "data"]


async def test_without_a_valid_traceparent_nothing_is_added(node: NodeProcess) -> None:
    async with Consumer() as consumer:
        await call(node.url, subscribe(consumer.url, "PLAIN"))
        for given in ({}, {"traceparent": "00-nonsense"}, {"tracestate": "a=1"}):
            await post(node.url, envelope(notify("PLAIN", "<a/>")), **given)
        malformed = SOAP_HEADER.format("x" * 1000)
        await post(node.url, envelope(notify("PLAIN", "<a/>"), headers=malformed))
        await consumer.wait(lambda c: len(c.payloads()) == 4)
    assert not any("trace" in name.lower() for each in consumer.headers for name in each)
    assert not any(b"race" in body for body in consumer.requests)
    assert [list(each) for each in await events(node, "PLAIN")] == [
        ["offset", "topic", "time", "id", "data"]
    ] * 4


async def test_a_soap_header_goes_before_the_http_header(node: NodeProcess) -> None:
    async with Consumer() as consumer:
        await call(node.url, subscribe(consumer.url, "BOTH"))
        both = envelope(notify("BOTH", "<a/>"), headers=SOAP_HEADER.format(TRACE))
        await post(node.url, both, traceparent=SECOND)
        await consumer.wait(lambda c: len(c.requests) == 1)
        assert consumer.headers[0]["traceparent"] == TRACE
        malformed = envelope(notify("BOTH", "<a/>"), headers=SOAP_HEADER.format("malformed"))
        await post(node.url, malformed, traceparent=SECOND)
        await consumer.wait(lambda c: len(c.requests) == 2)
        assert consumer.headers[1]["traceparent"] == SECOND


async def test_each_notification_of_a_push_has_its_own_trace(node: NodeProcess) -> None:
    async with Consumer() as consumer:
        await call(node.url, subscribe(consumer.url, "BATCH"))
        listed = SOAP_HEADER.format(f"- {TRACE} {SECOND}")
        await post(node.url, envelope(notify("BATCH", "<a/>", "<b/>", "<c/>"), headers=listed))
        await consumer.wait(lambda c: len(c.payloads()) == 3)
    assert len(consumer.requests) == 1
    assert traces_of(consumer.requests[0]) == ["-", TRACE, SECOND]
    assert consumer.headers[0]["traceparent"] == TRACE
    assert [each.get("traceparent") for each in await events(node, "BATCH")] == [None, TRACE, SECOND]


async def test_pipelined_requests_keep_their_traces(node: NodeProcess) -> None:
    """Requests of one read are one batch in the fast lane; each has another trace, and some have none."""
    given = [TRACE, SECOND, None, TRACE, None, SECOND] * 10
    await post(node.url, envelope(notify("PIPE", "<a>0</a>")))
    requests = b""
    for number, trace in enumerate(given):
        body = envelope(notify("PIPE", f"<a>{number}</a>"))
        lines = f"Content-Length: {len(body)}\r\n" + (f"traceparent: {trace}\r\n" if trace else "")
        head = f"POST /wsn HTTP/1.1\r\nHost: {urlsplit(node.url).netloc}\r\nContent-Type: {TYPES['1.1']}\r\n"
        requests += f"{head}{lines}\r\n".encode() + body
    host, port = urlsplit(node.url).hostname, urlsplit(node.url).port
    assert host is not None
    assert port is not None
    answers = await asyncio.to_thread(_exchange, host, port, requests, len(given))
    assert answers.count(b"HTTP/1.1 202") == len(given)
    stored = (await events(node, "PIPE"))[1:]
    assert [each.get("traceparent") for each in stored] == given
    assert [each["data"] for each in stored] == [{"a": number} for number in range(len(given))]


def _exchange(host: str, port: int, requests: bytes, count: int) -> bytes:
    with socket.create_connection((host, port), PATIENCE) as connection:
        connection.sendall(requests)
        answers = b""
        while answers.count(b"HTTP/1.1 ") < count:
            answers += connection.recv(1 << 16)
    return answers


async def test_our_client_sends_a_traceparent_and_its_receiver_shows_it(node: NodeProcess) -> None:
    async with Receiver() as receiver, Client(node.url) as client, Client(node.url, linger=0.05) as lingering:
        await client.subscribe("OURS", receiver)
        await client.notify("OURS", "one", traceparent=TRACE)
        await asyncio.gather(
            lingering.notify("OURS", "two", traceparent=SECOND), lingering.notify("OURS", "three")
        )
        got = {n.text: n.traceparent for n in [await receiver.get(PATIENCE) for _ in range(3)]}
        with pytest.raises(ValueError, match="00-TRACE-PARENT-FLAGS"):
            await client.notify("OURS", "four", traceparent="nonsense")
    assert got == {"one": TRACE, "two": SECOND, "three": None}


async def test_a_follower_gets_the_trace_of_each_event(node: NodeProcess) -> None:
    url = f"{node.base}/topics/FOLLOW/events"
    async with (
        aiohttp.ClientSession() as session,
        session.get(url, headers={"Accept": "text/event-stream"}) as response,
    ):
        await post(url, b'{"speed": 1}', "application/json", traceparent=TRACE)
        async with patience():
            while not (line := await response.content.readline()).startswith(b"data:"):
                pass
    assert json.loads(line.removeprefix(b"data:"))["traceparent"] == TRACE


async def test_a_consumer_that_was_away_gets_the_trace_after_kill_9(tmp_path: Path) -> None:
    quick = ("--set", "delivery.retry_first=0.01", "--set", "delivery.retry_max=0.05")
    with NodeProcess(tmp_path / "data", *quick) as node:
        async with Consumer(lambda number: 503) as consumer, Client(node.url) as client:
            point = await client.create_pull_point()
            await client.subscribe("KILL", point)
            await call(node.url, subscribe(consumer.url, "KILL"))
            await post(node.url, envelope(notify("KILL", "<a/>")), traceparent=TRACE)
            await post(node.url, envelope(notify("KILL", f"<a>{'x' * (1 << 20)}</a>")), traceparent=SECOND)
            await consumer.wait(lambda c: len(c.requests) >= 1)
            node.kill()
            node.port = urlsplit(node.url).port or 0
            before = len(consumer.requests)
            consumer.answer = lambda number: 202
            node.start()
            await consumer.wait(lambda c: len(etree_messages(c, before)) >= 2)
            assert [trace for body in consumer.requests[before:] for trace in traces_of(body)] == [
                TRACE,
                SECOND,
            ]
            async with patience():
                pulled = await point.get_messages()
                while len(pulled) < 2:
                    pulled += await point.get_messages()
            assert [each.traceparent for each in pulled] == [TRACE, SECOND]
        assert [each["traceparent"] for each in await events(node, "KILL")] == [TRACE, SECOND]


def etree_messages(consumer: Consumer, start: int) -> list[etree._Element]:
    return [
        message
        for body in consumer.requests[start:]
        for message in etree.fromstring(body).iterfind(".//w:NotificationMessage", NAMES)
    ]


async def test_a_trace_goes_to_another_node(tmp_path: Path) -> None:
    with (
        AdminProcess(tmp_path / "admin") as admin,
        Member(tmp_path / "a", "a", "one", admin.base) as first,
        Member(tmp_path / "b", "b", "one", admin.base) as second,
    ):
        async with Consumer() as consumer, Client(first.url) as client:
            await call(second.url, subscribe(consumer.url, "FAR"))
            await holds(lambda: first.status()["routing"]["patterns"] > 0)
            await client.notify("FAR", "one", traceparent=TRACE, reliable=True)
            await consumer.wait(lambda c: len(c.requests) == 1)
            await client.notify("FAR", "two", traceparent=SECOND)
            await consumer.wait(lambda c: len(c.requests) == 2)
        assert [each["traceparent"] for each in consumer.headers] == [TRACE, SECOND]
        assert [each["traceparent"] for each in await events(second, "FAR")] == [TRACE, SECOND]
