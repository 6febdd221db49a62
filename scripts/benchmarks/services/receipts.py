"""What consumers in a process of their own note down, and the questions that this process answers.

Each line of standard input after the first is a question: `count` gives the deliveries up to now, `clear`
forgets them, `stats FIRST LAST` gives a JSON line on the events that were sent between two times, in
microseconds since 1970. An event has this time in its field `sent`.
"""

from __future__ import annotations

import asyncio
import gc
import json
import re
import sys
import time
from collections.abc import Awaitable, Callable
from itertools import chain, repeat
from typing import Any

import numpy as np
from numpy.typing import NDArray

SENT = re.compile(rb'sent(?:": ?|>)(\d{16})')
"""The time in an event, as JSON or as XML."""


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
        """Latencies in milliseconds of the events that were sent in [first, last), and all bytes."""
        sent = np.array(list(map(int, chain.from_iterable(found for _, found in self._came))), np.int64)
        times = chain.from_iterable(repeat(at, len(found)) for at, found in self._came)
        came = np.array(list(times), np.int64)
        chosen = (sent >= first) & (sent < last)
        late, when = (came - sent)[chosen] / 1e3, sent[chosen]
        third = (last - first) / 3
        return {
            "deliveries": len(late),
            "bytes": self.bytes,
            "mean": _mean(late),
            "p99": float(np.percentile(late, 99)) if len(late) else 0.0,
            "first": _mean(late[when < first + third]),
            "last": _mean(late[when >= last - third]),
        }

    def clear(self) -> None:
        """Forget all."""
        self._came.clear()
        self.bytes = self.count = 0


def _mean(values: NDArray[np.float64]) -> float:
    return float(np.mean(values)) if len(values) else 0.0


async def answer_questions(begin: Callable[[Any, Receipts], Awaitable[str]]) -> None:
    """Begin with what the first line says, tell that this is done, and answer until standard input ends."""
    reader = asyncio.StreamReader(limit=1 << 26)
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    receipts = Receipts()
    ready = await begin(json.loads(await reader.readline()), receipts)
    gc.freeze()
    gc.disable()
    print(ready, flush=True)
    while line := (await reader.readline()).split():
        if line[0] == b"stats":
            print(json.dumps(receipts.stats(int(line[1]), int(line[2]))), flush=True)
        elif line[0] == b"clear":
            receipts.clear()
            print("cleared", flush=True)
        else:
            print(receipts.count, flush=True)
