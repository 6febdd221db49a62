"""Large contents at a running node: what it says when files are gone, and what slow readers cost."""

from __future__ import annotations

import asyncio
import io
import json
import shutil
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import aiohttp

from tests.harness import NodeProcess
from tests.patience import patience

SIZE = 24_000_000
READERS = 20
TAKEN = 100_000

STREAM = "Accept: text/event-stream\r\n"
SOCKET = (
    "Connection: Upgrade\r\nUpgrade: websocket\r\n"
    "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
)


async def publish(session: aiohttp.ClientSession, node: NodeProcess, size: int) -> None:
    body = io.BytesIO(json.dumps({"text": "x" * size}).encode())
    kind = {"Content-Type": "application/json"}
    async with session.post(f"{node.base}/topics/big/events", data=body, headers=kind) as reply:
        assert reply.status == 202, await reply.text()


async def fetched(session: aiohttp.ClientSession, url: str) -> tuple[int, Any]:
    async with session.get(url) as reply:
        return reply.status, await reply.json()


async def test_a_restore_of_the_database_alone_is_a_problem_that_the_node_names(tmp_path: Path) -> None:
    data = tmp_path / "data"
    async with aiohttp.ClientSession() as session:
        with NodeProcess(data) as node:
            await publish(session, node, 2_000_000)
            await publish(session, node, 10)
            assert (await fetched(session, f"{node.base}/readyz"))[0] == 200
        shutil.rmtree(data / "large")
        with NodeProcess(data) as node:
            # One lost content is for an operator to see, and no reason to take the node out of use.
            assert (await fetched(session, f"{node.base}/readyz"))[0] == 200
            _, status = await fetched(session, f"{node.base}/status")
            (problem,) = status["problems"]
            assert "1 large notifications have no content" in problem
            assert status["journal"]["missing"] == 1
            _, events = await fetched(session, f"{node.base}/topics/big/events")
            assert [event["offset"] for event in events] == [2]
            assert "1 large notifications have no content" in node.log()


async def stalled(stack: AsyncExitStack, node: NodeProcess, headers: str) -> asyncio.StreamReader:
    """A long connection whose client reads only what the test reads."""
    place = urlsplit(node.base)
    reader, writer = await asyncio.open_connection(place.hostname, place.port)
    stack.callback(writer.close)
    writer.write(f"GET /topics/big/events?after=0 HTTP/1.1\r\nHost: {place.netloc}\r\n{headers}\r\n".encode())
    head = await reader.readuntil(b"\r\n\r\n")
    assert head.startswith((b"HTTP/1.1 200 ", b"HTTP/1.1 101 ")), head
    return reader


async def test_stalled_readers_share_the_bytes_of_a_large_event(tmp_path: Path) -> None:
    with NodeProcess(tmp_path / "data", "--set", f"server.body_limit={2 * SIZE}") as node:
        async with aiohttp.ClientSession() as session, AsyncExitStack() as stack, patience():
            readers = [
                await stalled(stack, node, headers) for headers in (STREAM, SOCKET) for _ in range(READERS)
            ]
            _, before = await fetched(session, f"{node.base}/status")
            await publish(session, node, SIZE)
            late = [await stalled(stack, node, headers) for headers in (STREAM, SOCKET)]
            for reader in readers + late:
                assert len(await reader.readexactly(TAKEN)) == TAKEN
            _, after = await fetched(session, f"{node.base}/status")
            grown = after["process"]["memory_bytes"] - before["process"]["memory_bytes"]
            assert grown < READERS * SIZE, f"{grown} bytes: less than half a copy for each reader"
