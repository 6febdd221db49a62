"""Gateways that POST readings over a few kept-alive connections, in a process of their own.

    python -m benchmarks.field.http_gateways < JSON

The JSON line has the `port` of the node, how many `connections`, and the `schedule`. A connection has one
request at a time. A post leaves when it is due; if all connections wait for answers, it leaves late, and its
latency counts from the time at which it was due. Posts that are not sent GRACE seconds after the end are not
sent at all. The answer is a JSON line with what was sent and what became of it.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
import time
from contextlib import suppress
from dataclasses import asdict
from typing import cast

import uvloop

from benchmarks.field.latencies import Latencies
from benchmarks.field.schedule import Schedule, array_of
from benchmarks.tools.raw_load import Framer

GRACE = 2.0
ANSWERED = 60.0
"""Seconds after the end in which answers may still come."""
_ACCEPTED = re.compile(rb'"accepted": ?(\d+)').search


class Connection(asyncio.Protocol):
    """A connection to the node; `answered` is called with the status line and the body."""

    def __init__(self, gateways: Gateways) -> None:
        self._gateways = gateways
        self._framer = Framer()
        self.due = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See asyncio.Protocol."""
        self.transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        """An answer frees the connection."""
        for head, body in self._framer.feed(data):
            self._gateways.answered(self, head, body)

    def connection_lost(self, error: Exception | None) -> None:
        """See asyncio.Protocol."""
        self._gateways.failure = self._gateways.failure or f"the node closed a connection ({error})"


class Gateways:
    """All gateways, which share the connections."""

    def __init__(self, schedule: Schedule) -> None:
        self._schedule = schedule
        self.free: asyncio.Queue[Connection] = asyncio.Queue()
        self.accepted = self.answers = 0
        self.failure = ""
        self._samples: list[tuple[float, float]] = []

    def answered(self, connection: Connection, head: bytes, body: bytes) -> None:
        """Count an answer."""
        self._samples.append((connection.due, 1000 * (time.time() - connection.due)))
        self.answers += 1
        found = _ACCEPTED(body)
        if not head.startswith(b"HTTP/1.1 202 ") or found is None:
            self.failure = f"the node refused a post: {(head + b' ' + body)[:300]!r}"
        else:
            self.accepted += int(found[1])
        self.free.put_nowait(connection)

    async def run(self) -> dict[str, object]:
        """Send everything, and wait for all answers."""
        schedule, sent = self._schedule, 0
        array = array_of(schedule)
        end = schedule.due(schedule.posts) + GRACE
        for number in range(schedule.posts):
            due = schedule.due(number)
            if (pause := due - time.time()) > 0:
                await asyncio.sleep(pause)
            connection = await self.free.get()
            if self.failure or time.time() > end:
                break
            connection.due = due
            body = array(number)
            connection.transport.write(_HEAD % len(body) + body)
            sent += 1
        with suppress(TimeoutError):
            async with asyncio.timeout(max(0.0, end + ANSWERED - time.time())):
                while self.answers < sent and not self.failure:
                    await self.free.get()
        return {
            "sent": sent,
            "readings": sent * schedule.together,
            "accepted": self.accepted,
            "answered": True,
            "failure": self.failure,
            "latencies": asdict(Latencies.of(self._samples)),
        }


_HEAD = (
    b"POST /readings HTTP/1.1\r\nHost: 127.0.0.1\r\n"
    b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n"
)


async def _main() -> None:
    given = json.loads(sys.stdin.readline())
    gateways = Gateways(Schedule(**given["schedule"]))
    loop = asyncio.get_running_loop()
    for _ in range(given["connections"]):
        _, connection = await loop.create_connection(lambda: Connection(gateways), "127.0.0.1", given["port"])
        gateways.free.put_nowait(connection)
    print(json.dumps(await gateways.run()), flush=True)


if __name__ == "__main__":
    uvloop.run(_main())
