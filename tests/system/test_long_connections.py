"""Long connections over real sockets: framing, TLS, and clients that take nothing."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import aiohttp
import pytest
from aiohttp.abc import AbstractStreamWriter

from hpwsn.broker.readers import live_delivery
from hpwsn.broker.readers.log_pages import LOOP_BYTES, Stretch
from hpwsn.broker.readers.log_readers import FOLLOW_BYTES, Query
from hpwsn.door.rest.events import long_connection
from hpwsn.door.rest.events.long_connection import UNTAKEN, Forms, LongConnection
from hpwsn_client.wsn.topics.topic_expressions import Topic
from tests.certificates import certificate
from tests.followers import Log, is_live, opened
from tests.harness import NodeProcess
from tests.patience import holds, patience

SIZES = (0, 100, 126, 40_000, 70_000, 200_000)
"""Sizes of events on both sides of the borders of a WebSocket's frame and of the live path."""


async def publish(url: str, events: Sequence[dict[str, Any]], context: ssl.SSLContext | None = None) -> None:
    async with (
        aiohttp.ClientSession() as session,
        session.post(url, json=events, ssl=context or True) as response,
    ):
        assert response.status == 202


def events_of(first: int, sizes: Sequence[int]) -> list[dict[str, Any]]:
    return [{"n": n, "blob": "x" * size} for n, size in enumerate(sizes, first)]


async def read_events(response: aiohttp.ClientResponse, count: int) -> list[Any]:
    found: list[Any] = []
    async with patience():
        while len(found) < count:
            line = await response.content.readuntil(b"\n")
            if line.startswith(b"data: "):
                found.append(json.loads(line[6:])["data"])
    return found


async def test_a_stream_over_tls_carries_events_of_all_sizes(tmp_path: Path) -> None:
    shown, key = certificate(tmp_path, "node")
    context = ssl.create_default_context(cafile=str(shown))
    settings = ("--set", f"server.tls_certificate={shown}", "--set", f"server.tls_key={key}")
    with NodeProcess(tmp_path / "data", *settings) as node:
        url = f"{node.base}/topics/a/events"
        accept = {"Accept": "text/event-stream"}
        async with (
            aiohttp.ClientSession(read_bufsize=2**20) as session,
            session.get(url, headers=accept, ssl=context) as response,
        ):
            sent = events_of(0, SIZES * 3)
            await publish(url, sent, context)
            for number in range(20):
                sent += events_of(len(sent), [number])
                await publish(url, sent[-1:], context)
            assert await read_events(response, len(sent)) == sent


async def test_a_client_that_reads_nothing_over_tls_delays_nobody_and_gets_everything(tmp_path: Path) -> None:
    shown, key = certificate(tmp_path, "node")
    context = ssl.create_default_context(cafile=str(shown))
    settings = ("--set", f"server.tls_certificate={shown}", "--set", f"server.tls_key={key}")
    with NodeProcess(tmp_path / "data", *settings) as node:
        url = f"{node.base}/topics/a/events"
        port = int(node.base.rpartition(":")[2])
        reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context, limit=2**14)
        writer.write(b"GET /topics/a/events HTTP/1.0\r\nHost: localhost\r\nAccept: text/event-stream\r\n\r\n")
        async with patience():
            await reader.readuntil(b": after 0\n\n")
            sent = events_of(0, [1000] * 10_000)
            for start in range(0, len(sent), 500):
                await publish(url, sent[start : start + 500], context)
            for event in sent:
                assert await reader.readline() == b"id: %d\n" % (event["n"] + 1)
                assert json.loads((await reader.readline())[6:])["data"] == event
                await reader.readline()
        writer.transport.abort()


async def test_a_client_of_http_1_0_gets_a_body_without_chunks_that_ends_with_the_connection(
    tmp_path: Path,
) -> None:
    with NodeProcess(tmp_path / "data") as node:
        host, port = node.base.removeprefix("http://").split(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(b"GET /topics/a/events HTTP/1.0\r\nHost: a\r\nAccept: text/event-stream\r\n\r\n")
        async with patience():
            head = await reader.readuntil(b"\r\n\r\n")
            assert b"Transfer-Encoding" not in head
            assert await reader.readuntil(b"\n\n") == b": after 0\n\n"
            await publish(f"{node.base}/topics/a/events", [{"n": 1}, {"n": 2}])
            for offset in (1, 2):
                assert (await reader.readuntil(b"\n")) == b"id: %d\n" % offset
                assert json.loads((await reader.readuntil(b"\n\n"))[6:])["data"] == {"n": offset}
        assert node.process is not None
        node.process.terminate()
        async with patience():
            assert await reader.read() == b""
        writer.close()
        await writer.wait_closed()


async def test_a_socket_gets_messages_of_every_length(node: NodeProcess) -> None:
    url = f"{node.base}/topics/a/events"
    async with (
        aiohttp.ClientSession() as session,
        session.ws_connect(url, max_msg_size=0) as socket,
        session.ws_connect(f"{url}?filter=n%20%3E%203", max_msg_size=0) as filtered,
        patience(),
    ):
        sent = events_of(0, [*range(0, 60), *SIZES, *range(65_300, 65_600, 40)])
        for start in range(0, len(sent), 20):
            await publish(url, sent[start : start + 20])
        assert [(await socket.receive_json())["data"] for _ in sent] == sent
        assert [(await filtered.receive_json())["data"] for _ in sent[4:]] == sent[4:]
        await socket.ping()
        await publish(url, [{"n": -1}])
        assert (await socket.receive_json())["data"] == {"n": -1}


class Wire:
    """A long connection over a real socket, and the client's end of it."""

    def __init__(self, client: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.client = client
        self.transport = writer.transport
        forms = Forms(_blobs)
        self.connection = LongConnection(cast(AbstractStreamWriter, writer), forms.plain_stream)


def _blobs(stretches: Sequence[Stretch]) -> list[bytes]:
    return [payload for each in stretches for payload in each.payloads]


@asynccontextmanager
async def wired() -> AsyncIterator[Wire]:
    accepted: asyncio.Future[asyncio.StreamWriter] = asyncio.get_running_loop().create_future()
    server = await asyncio.start_server(lambda _, writer: accepted.set_result(writer), "127.0.0.1", 0)
    client, writer = await asyncio.open_connection(*server.sockets[0].getsockname(), limit=2**12)
    try:
        async with patience():
            yield Wire(client, await accepted)
    finally:
        writer.transport.abort()
        (await accepted).transport.abort()
        server.close()


async def fill(log: Log, wire: Wire, total: int) -> int:
    """Publish more than the sockets between node and client hold; the most that the transport held."""
    most = number = 0
    blob = "x" * 1000
    while number < total:
        payloads = [f"<m><n>{number + n}</n><b>{blob}</b></m>".encode() for n in range(100)]
        await log.publish_run("A", *payloads)
        number += 100
        most = max(most, wire.transport.get_write_buffer_size())
    return most


async def test_a_client_that_reads_nothing_costs_one_page_and_then_gets_everything(tmp_path: Path) -> None:
    total = 30_000
    async with opened(tmp_path) as log, wired() as wire:
        follow = log.readers.follow(Query((Topic.parse("A"),)), 0, 60, wire.connection)
        following = asyncio.ensure_future(follow)
        await is_live(log)
        most = await fill(log, wire, total)
        await holds(lambda: not log.live)
        one_write = 2 * max(live_delivery.FLUSH_BYTES, FOLLOW_BYTES)
        assert UNTAKEN < most < UNTAKEN + one_write + LOOP_BYTES
        for offset in range(1, total + 1):
            assert await wire.client.readline() == b"id: %d\n" % offset
            assert (await wire.client.readline()).startswith(b"data: <m><n>%d<" % (offset - 1))
            await wire.client.readline()
        await is_live(log)
        log.readers.close()
        await following


async def test_a_client_that_reads_nothing_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(long_connection, "STALLED", 0.2)
    async with opened(tmp_path) as log, wired() as wire:
        follow = log.readers.follow(Query((Topic.parse("A"),)), 0, 60, wire.connection)
        following = asyncio.ensure_future(follow)
        await is_live(log)
        await fill(log, wire, 30_000)
        with pytest.raises(TimeoutError):
            await following
        assert not log.live
