"""Nodes with the fast lane and without it give the same bytes to the same bytes."""

from __future__ import annotations

import asyncio
import re
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from lxml import etree

from tests import raw_soap
from tests.consumer import Consumer
from tests.harness import NodeProcess
from tests.patience import PATIENCE, eventually
from tests.raw_soap import call, envelope, notify, subscribe
from tests.unit.client.wsn.notify_envelopes import CLIENTS, Envelopes

LAST = b"GET /no-such-place HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
"""Ends every connection, so that reading to the end is reading all."""
CHANGING = (
    (rb"\r\nDate: [^\r]*", b""),
    (rb"127\.0\.0\.1:\d+", b"HOST"),
    (rb"\d{4}-\d\d-\d\dT[\d:.]+Z", b"TIME"),
    (rb"urn:uuid:[0-9a-f-]{36}", b"UUID"),
    (rb"(subscriptions|pullpoints)/[0-9a-f]{8,}", rb"\1/ID"),
)

Lanes = tuple[NodeProcess, NodeProcess]


@pytest.fixture(scope="module")
def lanes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lanes]:
    """The node with the fast lane, and the one without."""
    folder = tmp_path_factory.mktemp("lanes")
    limits = ("--set", "server.body_limit=100000", "--set", "server.request_timeout=2")
    with (
        NodeProcess(folder / "fast", *limits) as fast,
        NodeProcess(folder / "full", *limits, "--set", "server.fast_lane=false") as full,
    ):
        yield fast, full


def exchange(node: NodeProcess, *pieces: bytes) -> bytes:
    """All that a node answers to pieces of a stream, without what must differ."""
    with socket.create_connection(("127.0.0.1", node.port), timeout=PATIENCE) as client:
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        answer = b""
        try:
            for piece in pieces:
                client.sendall(piece)
            while data := client.recv(65536):
                answer += data
        except ConnectionError:
            answer += b"<reset>"
    for pattern, put in CHANGING:
        answer = re.sub(pattern, put, answer)
    return re.sub(rb"Content-Length: [1-9]\d*", b"Content-Length: N", answer)


def assert_alike(lanes: Lanes, *pieces: bytes) -> bytes:
    with ThreadPoolExecutor(len(lanes)) as pool:
        fast, full = pool.map(lambda node: exchange(node, *pieces), lanes)
    assert fast == full, pieces
    return fast


def post(
    body: bytes, *headers: str, start: str = "POST /wsn HTTP/1.1", content_type: str = "text/xml"
) -> bytes:
    lines = [start, "Host: x", f"Content-Type: {content_type}", f"Content-Length: {len(body)}", *headers]
    return "\r\n".join([*lines, "", ""]).encode() + body


PUBLISH = envelope(notify("a:b", "<x>1</x>"))
ID = "<hp:MessageId xmlns:hp='urn:hpwsn:1'>1</hp:MessageId>"
UNKNOWN = "<q:x xmlns:q='urn:q' s:mustUnderstand='1'/>"
CHUNKED = (
    b"POST /wsn HTTP/1.1\r\nHost: x\r\nContent-Type: text/xml\r\nTransfer-Encoding: chunked\r\n\r\n"
    b"%x\r\n%b\r\n0\r\n\r\n"
)
REQUESTS = {
    "notify": post(PUBLISH),
    "notify of soap 1.2": post(
        envelope(notify("a", "<x/>", "<y/>"), "1.2"), content_type="application/soap+xml; charset=utf-8"
    ),
    "notify with an action": post(PUBLISH, 'SOAPAction: "urn:x"', "User-Agent: x/1", "Accept: */*"),
    "notify without a topic": post(envelope(notify(None, "<x/>"))),
    "text": post(envelope(notify("a", "text &amp; more"))),
    "keep-alive": post(PUBLISH, "Connection: keep-alive"),
    "latin-1": post(
        "<?xml version='1.0' encoding='iso-8859-1'?>".encode("latin-1")
        + envelope(notify("a", "<x>é</x>")).decode().encode("latin-1")
    ),
    "wrong topic": post(envelope(notify("a b", "<x/>"))),
    "wildcard topic": post(envelope(notify("a//*", "<x/>", dialect=raw_soap.FULL))),
    "no message": post(envelope("<w:Notify/>")),
    "two payloads": post(envelope(notify("a", "<x/><y/>"))),
    "message id": post(envelope(notify("a", "<x/>"), headers=ID)),
    "not understood": post(envelope(notify("a", "<x/>"), headers=UNKNOWN)),
    "create pull point": post(envelope("<w:CreatePullPoint/>")),
    "current message": post(envelope("<w:GetCurrentMessage><w:Topic>a:b</w:Topic></w:GetCurrentMessage>")),
    "unknown operation": post(envelope("<w:Nothing/>")),
    "not xml": post(b"rubbish"),
    "doctype": post(b"<!DOCTYPE x><x/>"),
    "empty": post(b""),
    "too large": post(envelope(notify("a", f"<x>{'y' * 100_000}</x>"))),
    "wrong type": post(PUBLISH, content_type="application/json"),
    "no such charset": post(PUBLISH, content_type="text/xml; charset=klingon"),
    "chunked": CHUNKED % (len(PUBLISH), PUBLISH),
    "expect": post(PUBLISH, "Expect: 100-continue"),
    "query": post(PUBLISH, start="POST /wsn?x=1 HTTP/1.1"),
    "elsewhere": post(PUBLISH, start="POST /elsewhere HTTP/1.1"),
    "health": b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n",
    "put": post(PUBLISH, start="PUT /wsn HTTP/1.1"),
}
"""What leaves a connection open."""
PIPELINED = REQUESTS["notify"] * 3
ENDINGS = {
    "close": post(PUBLISH, "Connection: close"),
    "close after a fault": post(b"rubbish", "connection: Close"),
    "http 1.0": post(PUBLISH, start="POST /wsn HTTP/1.0"),
    "the last": LAST,
}
"""What ends a connection with its answer."""
MALFORMED = {
    "no http": b"RUBBISH\r\n\r\n",
    "two lengths": post(PUBLISH, "Content-Length: 3"),
    "bad length": b"POST /wsn HTTP/1.1\r\nHost: x\r\nContent-Length: 1x\r\n\r\n",
    "bad header": post(PUBLISH, "Bad Header: x"),
    "bare line feeds": b"POST /wsn HTTP/1.1\nHost: x\nContent-Length: 0\n\n",
}


"""What cannot be read; not sent after other requests, as aiohttp forgets those of the same read."""


@pytest.mark.parametrize("name", REQUESTS)
def test_each_request_has_the_same_answer_in_both_lanes(lanes: Lanes, name: str) -> None:
    assert assert_alike(lanes, REQUESTS[name], LAST)


@pytest.mark.parametrize("name", ENDINGS)
def test_what_ends_a_connection_has_the_same_answer_in_both_lanes(lanes: Lanes, name: str) -> None:
    request = ENDINGS[name]
    answer = assert_alike(lanes, request)
    for at in range(1, len(request), 17):
        assert assert_alike(lanes, request[:at], request[at:]) == answer


@pytest.mark.parametrize("name", MALFORMED)
def test_what_cannot_be_read_is_refused_alike_in_both_lanes(lanes: Lanes, name: str) -> None:
    request = MALFORMED[name]
    assert assert_alike(lanes, request).startswith(b"HTTP/1.0 400 ")
    for at in range(1, len(request), 17):
        # How much of it the answer shows depends on how much of it was read at once.
        answers = {exchange(node, request[:at], request[at:]).splitlines()[0] for node in lanes}
        assert answers - {b"<reset>"} <= {b"HTTP/1.0 400 Bad Request"}


@pytest.mark.parametrize("client", CLIENTS)
def test_what_clients_send_has_the_same_answer_in_both_lanes(lanes: Lanes, client: str) -> None:
    answer = assert_alike(lanes, post(CLIENTS[client].encode()), LAST)
    assert answer.startswith(b"HTTP/1.1 202 ")


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(st.integers(0, 2**32))
def test_any_stream_has_the_same_answers_in_both_lanes(lanes: Lanes, seed: int) -> None:
    random, envelopes = Random(seed), Envelopes(seed)
    made = [post(envelopes.envelope()), post(envelopes.damaged()), *REQUESTS.values()]
    stream = b"".join(random.choices([made[0], made[1], PIPELINED, *made], k=random.randrange(1, 7)))
    stream += random.choice([*ENDINGS.values()])
    cuts = sorted(random.choices(range(len(stream)), k=random.randrange(0, 6)))
    pieces = [stream[a:b] for a, b in zip([0, *cuts], [*cuts, len(stream)], strict=True)]
    assert_alike(lanes, *pieces)


def test_requests_split_at_every_byte_are_all_answered(lanes: Lanes) -> None:
    request = REQUESTS["notify"]
    pieces = [piece for at in range(1, len(request)) for piece in (request[:at], request[at:])]
    answer = assert_alike(lanes, *pieces, LAST)
    assert answer.count(b"HTTP/1.1 202 Accepted") == len(request) - 1


def test_many_pipelined_requests_are_answered_in_order(lanes: Lanes) -> None:
    several = REQUESTS["notify"] * 400 + REQUESTS["unknown operation"] + REQUESTS["notify"] * 400
    answer = assert_alike(lanes, several, LAST)
    statuses = re.findall(rb"HTTP/1.1 (\d+)", answer)
    assert statuses == [b"202"] * 400 + [b"500"] + [b"202"] * 400 + [b"404"]


def test_a_request_that_follows_a_notification_finds_it_published(lanes: Lanes) -> None:
    publish = post(envelope(notify("newest", "<x>7</x>")))
    current = post(envelope("<w:GetCurrentMessage><w:Topic>newest</w:Topic></w:GetCurrentMessage>"))
    assert b"<x>7</x>" in assert_alike(lanes, publish + current + LAST)


def test_a_body_that_does_not_arrive_is_refused_in_both_lanes(lanes: Lanes) -> None:
    assert b" 408 " in assert_alike(lanes, post(PUBLISH)[:-10])


async def test_both_lanes_deliver_the_same(lanes: Lanes) -> None:
    delivered = []
    for node in lanes:
        async with Consumer() as consumer:
            await call(node.url, subscribe(consumer.url, "same", dialect=raw_soap.SIMPLE))
            exchange(node, post(envelope(notify("same", "<w:x a='b'>w:q</w:x>", "text"))), LAST)
            await consumer.wait(lambda c: len(c.messages()) == 2)
            parts = [message.find(f"{{{raw_soap.WSNT}}}Message") for message in consumer.messages()]
            delivered.append([etree.tostring(part, method="c14n", exclusive=True) for part in parts])

    assert delivered[0] == delivered[1]


@pytest.mark.parametrize("dialect", [raw_soap.SIMPLE, raw_soap.CONCRETE, None])
async def test_the_topic_of_a_notify_is_one_topic_in_every_dialect_and_lane(
    lanes: Lanes, dialect: str | None
) -> None:
    """Simple covers a subtree in a Subscribe only."""
    for node in lanes:
        async with Consumer() as exact, Consumer() as subtree, Consumer() as below:
            await call(node.url, subscribe(exact.url, "one", dialect=raw_soap.CONCRETE))
            await call(node.url, subscribe(subtree.url, "one", dialect=raw_soap.SIMPLE))
            await call(node.url, subscribe(below.url, "one/two", dialect=raw_soap.CONCRETE))
            exchange(node, post(envelope(notify("one", "<x>1</x>", dialect=dialect))), LAST)
            exchange(node, post(envelope(notify("one/two", "<x>2</x>", dialect=raw_soap.CONCRETE))), LAST)
            await subtree.wait(lambda c: len(c.messages()) == 2)
            await below.wait(lambda c: len(c.messages()) == 1)
            await exact.wait(lambda c: len(c.messages()) == 1)
            assert (exact.payloads(), subtree.payloads(), below.payloads()) == (["1"], ["1", "2"], ["2"])
            topic = f"<w:Topic Dialect='{dialect or raw_soap.SIMPLE}'>one</w:Topic>"
            current = await call(node.url, f"<w:GetCurrentMessage>{topic}</w:GetCurrentMessage>")
            assert "".join(current.content.itertext()) == "1"


async def test_a_repeated_id_is_accepted_and_published_once_in_both_lanes(lanes: Lanes) -> None:
    def published(id_: str, payload: str) -> bytes:
        return post(envelope(notify("once", payload), headers=ID.replace(">1<", f">{id_}<")))

    stream = (
        published("a", "<x/>") * 3 + published("b", "<y/>") + published("a", "<x/>") + published("c", "<z/>")
    )
    for node in lanes:
        async with Consumer() as consumer:
            await call(node.url, subscribe(consumer.url, "once", dialect=raw_soap.SIMPLE))
            assert exchange(node, stream, LAST).count(b" 202 ") == 6
            await consumer.wait(lambda c: len(c.messages()) >= 3)
            parts = [message.find(f"{{{raw_soap.WSNT}}}Message") for message in consumer.messages()]
            assert [part[0].tag for part in parts] == ["x", "y", "z"]


def test_a_client_that_sends_no_more_has_all_its_answers(lanes: Lanes) -> None:
    with socket.create_connection(("127.0.0.1", lanes[0].port), timeout=PATIENCE) as client:
        client.sendall(REQUESTS["notify"] * 300)
        client.shutdown(socket.SHUT_WR)
        answers = b"".join(iter(lambda: client.recv(65536), b""))
    assert answers.count(b"HTTP/1.1 202 ") == 300


async def test_connections_count_in_either_lane(tmp_path: Path) -> None:
    with NodeProcess(tmp_path / "data", "--set", "server.connections=2") as node:
        first = await asyncio.open_connection("127.0.0.1", node.port)
        second = await asyncio.open_connection("127.0.0.1", node.port)
        second[1].write(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
        await second[0].readuntil(b"\r\n\r\n")

        async def refused() -> bool:
            reader, writer = await asyncio.open_connection("127.0.0.1", node.port)
            answer = await reader.read()
            writer.close()
            return b" 503 " in answer

        await eventually(refused)
        for _, writer in (first, second):
            writer.close()


async def test_what_was_published_before_sigterm_is_answered(tmp_path: Path) -> None:
    with NodeProcess(tmp_path / "data") as node:
        reader, writer = await asyncio.open_connection("127.0.0.1", node.port)
        begun = post(PUBLISH)
        writer.write(begun + begun[:-5])
        await reader.readuntil(b"\r\n\r\n")
        ended = asyncio.create_task(asyncio.to_thread(node.terminate))

        async def stopping() -> bool:
            return "stopping" in node.log()

        await eventually(stopping)
        writer.write(begun[-5:])
        assert b" 202 " in await reader.read()
        assert await ended == 0
        writer.close()
