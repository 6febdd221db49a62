"""Consumers of long connections, all in one process that parses as little as possible.

    python -m benchmarks.services.consumer_process

The first line of standard input is a JSON array of [port, path], one for each connection; the answer is
`ready` once all streams have begun. See `receipts` for what follows.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import cast

import uvloop

from benchmarks.services.receipts import SENT, Receipts, answer_questions
from benchmarks.services.stream_bytes import HEAD_END, OK, get_stream

OPENING = 64
"""Connections that are opened at the same time."""
TAIL = 24
"""Bytes kept of a read: one less than those of a time with its name, which may be cut in two."""


class Consumer(asyncio.Protocol):
    """One long connection."""

    def __init__(self, path: str, receipts: Receipts, begun: asyncio.Future[None]) -> None:
        self._path, self._receipts, self._begun = path, receipts, begun
        self._tail = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Ask for the stream."""
        cast(asyncio.Transport, transport).write(get_stream(self._path))

    def data_received(self, data: bytes) -> None:
        """Find the times of the events."""
        joined = self._tail + data if self._tail else data
        if not self._begun.done() and not self._begins(joined):
            self._tail = joined
            return
        tail = joined[-TAIL:]
        self._tail = b"" if SENT.search(tail) else tail
        self._receipts.take(len(data), SENT.findall(joined))

    def _begins(self, data: bytes) -> bool:
        head, end, body = data.partition(HEAD_END)
        if end and not head.startswith(OK):
            self._begun.set_exception(ConnectionError(f"{self._path} was refused: {data[:500]!r}"))
        elif body.count(b"\n\n"):
            self._begun.set_result(None)
        return self._begun.done()

    def connection_lost(self, error: Exception | None) -> None:
        """See asyncio.Protocol."""
        if not self._begun.done():
            self._begun.set_exception(ConnectionError(f"{self._path} was closed ({error})"))


async def open_streams(connections: Sequence[tuple[int, str]], receipts: Receipts) -> str:
    """Open all connections, and wait until each stream has begun."""
    turn = asyncio.Semaphore(OPENING)
    await asyncio.gather(*(_open(port, path, receipts, turn) for port, path in connections))
    return "ready"


async def _open(port: int, path: str, receipts: Receipts, turn: asyncio.Semaphore) -> None:
    loop = asyncio.get_running_loop()
    async with turn:
        begun: asyncio.Future[None] = loop.create_future()
        await loop.create_connection(partial(Consumer, path, receipts, begun), "127.0.0.1", port)
        await begun


if __name__ == "__main__":
    uvloop.run(answer_questions(open_streams))
