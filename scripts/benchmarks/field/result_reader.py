"""Reads the results of all virtual sensors by one SSE stream, in a process of its own, and judges them.

    python -m benchmarks.field.result_reader

The first line of standard input is the port of the node; the answer is `ready` once the stream has begun.
Then `count` gives the results up to now, and `judge JSON` compares the results of a schedule with what they
must be, and forgets them; the JSON has the `schedule` and how many posts were `sent`. While results come,
they are only kept with the time, so that this process takes little of the machine.
"""

from __future__ import annotations

import asyncio
import json
import math
import sys
import time
from dataclasses import asdict
from typing import Any, cast

import uvloop

from benchmarks.field.latencies import Latencies
from benchmarks.field.schedule import LATENESS, Schedule, milliseconds
from benchmarks.services.stream_bytes import EventLines, get_stream

PATH = "/topics/virtual/events"


class Results(asyncio.Protocol):
    """The stream of all results."""

    def __init__(self) -> None:
        self._lines = EventLines()
        self._came: list[tuple[float, list[bytes]]] = []
        self.count = 0
        self.begun: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Ask for the stream."""
        cast(asyncio.Transport, transport).write(get_stream(PATH))

    def data_received(self, data: bytes) -> None:
        """Keep the results of one read."""
        found = self._lines.feed(data)
        if found:
            self._came.append((time.time(), found))
            self.count += len(found)
        if self._lines.has_begun and not self.begun.done():
            self.begun.set_result(None)

    def connection_lost(self, error: Exception | None) -> None:
        """See asyncio.Protocol."""
        if not self.begun.done():
            self.begun.set_exception(ConnectionError(f"the node closed the stream ({error})"))

    def judge(self, schedule: Schedule, sent: int) -> dict[str, Any]:
        """How many results are right, and how late they came after the due closing of their windows.

        The results are forgotten then.
        """
        expected = schedule.expected(sent)
        right, wrong, repeated, foreign = 0, list[str](), 0, 0
        seen: set[tuple[str, int]] = set()
        samples: list[tuple[float, float]] = []
        readings = 0
        for came, lines in self._came:
            for line in lines:
                event = json.loads(line)["data"]
                key = event["sensor"], milliseconds(event["time"])
                if key in seen:
                    repeated += 1
                    continue
                seen.add(key)
                due = (key[1] + LATENESS) / 1000
                wanted = expected.get(key)
                if wanted is None:
                    foreign += 1
                    continue
                samples.append((due, 1000 * (came - due)))
                readings += event["count"]
                is_right = (event["count"], event["sensors"]) == wanted[:2]
                if is_right and math.isclose(event["value"], wanted.value, rel_tol=1e-12, abs_tol=1e-12):
                    right += 1
                else:
                    wrong.append(f"{event} instead of {wanted}")
        self._came.clear()
        self.count = 0
        return {
            "expected": len(expected),
            "delivered": len(samples),
            "right": right,
            "readings": readings,
            "repeated": repeated,
            "foreign": foreign,
            "wrong": wrong[:3],
            "lag": asdict(Latencies.of(samples)),
        }


async def _main() -> None:
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=1 << 20)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    port = int(await reader.readline())
    _, results = await loop.create_connection(Results, "127.0.0.1", port)
    await results.begun
    print("ready", flush=True)
    while line := await reader.readline():
        asked, _, rest = line.decode().partition(" ")
        if asked.strip() == "judge":
            given = json.loads(rest)
            print(json.dumps(results.judge(Schedule(**given["schedule"]), given["sent"])), flush=True)
        else:
            print(results.count, flush=True)


if __name__ == "__main__":
    uvloop.run(_main())
