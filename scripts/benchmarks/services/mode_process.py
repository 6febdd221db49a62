"""Consumers that poll a topic, follow it, or wait for pushes, all in one process.

    python -m benchmarks.services.mode_process

The first line of standard input is a JSON object with `mode` (one of MODES), the `port` of the node, `topic`,
`consumers` and `interval`, in seconds between polls. Consumers subscribe by themselves, and the answer is
`ready`. See `receipts` for what follows.
"""

from __future__ import annotations

import asyncio
from typing import Any

import aiohttp
import uvloop

from benchmarks.services.consumer_process import open_streams
from benchmarks.services.receipts import SENT, Receipts, answer_questions
from benchmarks.tools.sink import Sink, Tally
from hpwsn_client import Client

POLL, LONG, PUSH, OPENED = "polling", "long connection", "push, kept connection", "push, new connection"
MODES = (POLL, LONG, PUSH, OPENED)
PAGE = 1000
"""Events in the answer to a poll, the most that the JSON door gives."""


class Pushed(Tally):
    """Notes the times of what is pushed."""

    def __init__(self, receipts: Receipts) -> None:
        super().__init__()
        self._receipts = receipts

    def take(self, data: bytes, start: int, end: int) -> None:
        """Count one body."""
        self._receipts.take(end - start, SENT.findall(data, start, end))


async def begin(given: dict[str, Any], receipts: Receipts) -> str:
    """Start the consumers."""
    mode, port, topic = given["mode"], given["port"], given["topic"]
    base, path = f"http://127.0.0.1:{port}", f"/topics/{topic}/events"
    if mode == LONG:
        return await open_streams([(port, path)] * given["consumers"], receipts)
    if mode == POLL:
        polls = [_Poll(base + path, receipts, given["interval"]) for _ in range(given["consumers"])]
        for number, poll in enumerate(polls):
            await poll.start(given["interval"] * number / len(polls))
        return "ready"
    loop = asyncio.get_running_loop()
    async with Client(f"{base}/wsn") as client:
        for _ in range(given["consumers"]):
            server = await loop.create_server(
                lambda: Sink(Pushed(receipts), closes=mode == OPENED), "127.0.0.1", 0, backlog=1024
            )
            await client.subscribe(topic, f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/")
    return "ready"


class _Poll:
    """A consumer that asks at fixed intervals for what is new, over a connection that it keeps."""

    def __init__(self, url: str, receipts: Receipts, interval: float) -> None:
        self._url, self._receipts, self._interval = url, receipts, interval

    async def start(self, delay: float) -> None:
        """Find the end of the log, and poll from now on; consumers do not all poll at the same moment."""
        self._session = aiohttp.ClientSession()
        async with self._session.head(self._url) as answer:
            self._after = answer.headers["Hpwsn-After"]
        self._task = asyncio.create_task(self._poll(delay))

    async def _poll(self, delay: float) -> None:
        loop = asyncio.get_running_loop()
        due = loop.time() + delay
        while True:
            await asyncio.sleep(max(0.0, due - loop.time()))
            due += self._interval
            while await self._ask() == PAGE:
                pass

    async def _ask(self) -> int:
        query = {"after": self._after, "max": str(PAGE)}
        async with self._session.get(self._url, params=query) as answer:
            body = await answer.read()
            self._after = answer.headers["Hpwsn-After"]
        found = SENT.findall(body)
        self._receipts.take(len(body), found)
        return len(found)


if __name__ == "__main__":
    uvloop.run(answer_questions(begin))
