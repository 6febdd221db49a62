"""Consumers of long connections, all in one process that parses as little as possible.

    python -m benchmarks.services.consumer_process

Standard input has a JSON line of [port, path] for each connection; the answer is `ready` once all streams
have begun. Then each line is a question with an answer: `count` gives the deliveries up to now, `stats FIRST
LAST` a JSON line on the events that were sent between two times, in microseconds since 1970. The time of each
event is in its field `sent`. Ends with standard input.
"""

from __future__ import annotations

import asyncio
import gc
import json
import re
import sys
import time
from collections.abc import Sequence
from itertools import chain, repeat
from typing import Any, cast

import numpy as np
import uvloop

from benchmarks.services.stream_bytes import HEAD_END, OK, get_stream

SENT = re.compile(rb'"sent": ?(\d{16})')
OPENING = 64
"""Connections that are opened at the same time."""
TAIL = 32
"""Bytes kept of a read, so that a time that is cut in two is found with the next one."""


class Receipts:
    """When which events came."""

    def __init__(self) -> None:
        self.bytes = self.count = 0
        self._came: list[tuple[int, list[bytes]]] = []

    def take(self, size: int, found: list[bytes]) -> None:
        """Note the times of the events in one read."""
        self.bytes += size
        self.count += len(found)
        self._came.append((time.time_ns() // 1000, found))

    def stats(self, first: int, last: int) -> dict[str, Any]:
        """Latencies in milliseconds of the events that were sent in [first, last)."""
        sent = np.array(list(map(int, chain.from_iterable(found for _, found in self._came))), np.int64)
        came = np.array(
            list(chain.from_iterable(repeat(at, len(found)) for at, found in self._came)), np.int64
        )
        chosen = (sent >= first) & (sent < last)
        late, when = (came - sent)[chosen] / 1e3, sent[chosen]
        if not len(late):
            return {"deliveries": 0, "bytes": self.bytes}
        third = (last - first) / 3
        return {
            "deliveries": len(late),
            "bytes": self.bytes,
            "mean": float(late.mean()),
            "p99": float(np.percentile(late, 99)),
            "first": _mean(late[when < first + third]),
            "last": _mean(late[when >= last - third]),
        }

    def clear(self) -> None:
        """Forget all."""
        self._came.clear()
        self.bytes = self.count = 0


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values)) if len(values) else 0.0


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
        found = SENT.findall(joined)
        # A time is followed by the rest of its event, so only an unfinished one can be in the tail.
        self._tail = joined[-TAIL:] if not joined.endswith(b"\n\n\r\n") else b""
        if self._tail and SENT.search(self._tail):
            self._tail = b""
        self._receipts.take(len(data), found)

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


async def _open(port: int, path: str, receipts: Receipts, turn: asyncio.Semaphore) -> None:
    loop = asyncio.get_running_loop()
    async with turn:
        begun = loop.create_future()
        await loop.create_connection(lambda: Consumer(path, receipts, begun), "127.0.0.1", port)
        await begun


async def main() -> None:
    """Open all connections, then answer questions."""
    reader = asyncio.StreamReader(limit=1 << 26)
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    connections = json.loads(await reader.readline())
    receipts, turn = Receipts(), asyncio.Semaphore(OPENING)
    await asyncio.gather(*(_open(port, path, receipts, turn) for port, path in connections))
    gc.freeze()
    gc.disable()
    print("ready", flush=True)
    while line := (await reader.readline()).split():
        if line[0] == b"stats":
            print(json.dumps(receipts.stats(int(line[1]), int(line[2]))), flush=True)
        elif line[0] == b"clear":
            receipts.clear()
            print("cleared", flush=True)
        else:
            print(receipts.count, flush=True)


if __name__ == "__main__":
    uvloop.run(main())
