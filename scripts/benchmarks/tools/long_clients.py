"""Many long connections held cheaply, and events published to them over raw sockets.

Every event holds MARK once, so that a receiver counts events without a parser, however its reads are cut.
Samples keep their bytes: these are parsed afterwards, and compared with what the filter selects.
"""

import asyncio
import json
import math
import random
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, cast
from urllib.parse import quote

from benchmarks.tools.raw_load import LoadError
from hpwsn.matching.engine.default_engine import DefaultEngine
from hpwsn.matching.language.predicate_parser import parse_predicates

MARK = b"~"
TOGETHER = 20
"""Events in one POST."""
PUBLISHERS = 16
SAMPLES = 8
"""Connections whose events are compared one by one."""
LATE = 60.0
"""Seconds without a delivery after which a measurement fails."""
WIDTH = {"speed": 120, "direction": 360, "satellites": 12, "longitude": 2.05, "latitude": 1.77, "height": 90}
_EVENT = re.compile(rb"id: (\d+)\ndata: (.*)\n\n")
_CHUNK = re.compile(rb"([0-9a-f]+)\r\n")


def filters_of(count: int, share: float, seed: int = 18) -> list[str]:
    """Different filters of six predicates, which select about this share of the events each."""
    chance = random.Random(seed)
    most = min(1.0, 2 * share ** (1 / len(WIDTH)))
    least = 2 * share ** (1 / len(WIDTH)) - most
    found = []
    for _ in range(count):
        parts = []
        for name, width in WIDTH.items():
            part = chance.uniform(least, most) * width
            parts.append(f"{name} < {part!r}" if chance.random() < 0.5 else f"{name} > {width - part!r}")
        found.append(" and ".join(parts))
    return found


def events_of(count: int) -> list[dict[str, Any]]:
    """Records of vehicles."""
    chance = random.Random(17)
    return [
        {"n": n, "mark": MARK.decode(), **{name: chance.random() * width for name, width in WIDTH.items()}}
        for n in range(count)
    ]


@dataclass(slots=True)
class Workload:
    """Connections, each with a filter or None, the events, and how many of them each connection wants."""

    filters: Sequence[str | None]
    events: Sequence[dict[str, Any]]
    wanted: list[list[int]] = field(init=False)

    def __post_init__(self) -> None:
        everything = list(range(len(self.events)))
        if None in self.filters:
            self.wanted = [everything for _ in self.filters]
            return
        engine = DefaultEngine()
        for number, text in enumerate(self.filters):
            engine.add(number, parse_predicates(cast(str, text)))
        self.wanted = [[] for _ in self.filters]
        for n, found in enumerate(engine.match_batch(self.events)):
            for number in found:
                self.wanted[number].append(n)

    @property
    def deliveries(self) -> int:
        """Deliveries of all events together."""
        return sum(map(len, self.wanted))

    def posts(self) -> list[bytes]:
        """The events as whole requests."""
        bodies = [
            b"".join(json.dumps(event).encode() + b"\n" for event in self.events[start : start + TOGETHER])
            for start in range(0, len(self.events), TOGETHER)
        ]
        head = "POST /topics/gps/events HTTP/1.1\r\nHost: bench\r\nContent-Type: application/x-ndjson\r\n"
        return [f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body for body in bodies]


class Receiver(asyncio.Protocol):
    """Counts the events of one long connection; a sample keeps what comes, with its time."""

    def __init__(self, path: str, sample: bool) -> None:
        self.request = f"GET {path} HTTP/1.1\r\nHost: bench\r\nAccept: text/event-stream\r\n\r\n".encode()
        self.events = self.bytes = 0
        self.open = asyncio.get_running_loop().create_future()
        self.lost = False
        self.reads: list[tuple[float, bytes]] | None = [] if sample else None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Ask for the events."""
        self.transport = cast(asyncio.Transport, transport)
        self.transport.write(self.request)

    def data_received(self, data: bytes) -> None:
        """Count, and open with the first comment."""
        self.events += data.count(MARK)
        self.bytes += len(data)
        if self.reads is not None:
            self.reads.append((time.perf_counter(), data))
        if not self.open.done() and b": after " in data:
            self.open.set_result(None)

    def connection_lost(self, error: Exception | None) -> None:
        """Remember it: a long connection has no end."""
        self.lost = True

    def taken(self) -> list[tuple[float, int, int]]:
        """When each event of a sample came, its offset, and its number; forgets them."""
        reads, self.reads = self.reads or [], []
        found, rest = [], b""
        for when, data in reads:
            text, rest = _unchunked(rest + data)
            found += [(when, int(at), json.loads(each)["data"]["n"]) for at, each in _EVENT.findall(text)]
        return found


def _unchunked(data: bytes) -> tuple[bytes, bytes]:
    """The contents of all whole chunks, and the rest; a response's head is passed over."""
    if data.startswith(b"HTTP/"):
        data = data.partition(b"\r\n\r\n")[2]
    found, start = [], 0
    while match := _CHUNK.match(data, start):
        end = match.end() + int(match[1], 16)
        if len(data) < end + 2:
            break
        found.append(data[match.end() : end])
        start = end + 2
    return b"".join(found), data[start:]


class Publisher(asyncio.Protocol):
    """Sends requests one after another, or as they are due."""

    def __init__(self) -> None:
        self._answered: asyncio.Queue[int] = asyncio.Queue()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Ready."""
        self.transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        """One answer comes in one piece."""
        self._answered.put_nowait(data.count(b"HTTP/1.1 202"))

    async def publish(self, post: bytes) -> None:
        """Send one request and wait for its answer."""
        self.transport.write(post)
        async with asyncio.timeout(LATE):
            if not await self._answered.get():
                raise LoadError("a POST of events was refused")


class LongConnections:
    """Open connections to nodes, to be closed at the end."""

    def __init__(self, ports: Sequence[int], source: int) -> None:
        self._ports = ports
        self._source = source
        self.receivers: list[Receiver] = []
        self._publishers: list[Publisher] = []

    async def open(self, workload: Workload) -> None:
        """Spread the workload's connections over the ports."""
        self._workload, self._posts = workload, workload.posts()
        loop = asyncio.get_running_loop()
        for _ in range(PUBLISHERS):
            _, publisher = await loop.create_connection(Publisher, "127.0.0.1", self._source)
            self._publishers.append(publisher)
        every = max(1, len(workload.filters) // SAMPLES)
        for number, text in enumerate(workload.filters):
            path = "/topics/gps/events" + ("" if text is None else f"?filter={quote(text)}")
            receiver = Receiver(path, number % every == 0)
            port = self._ports[number % len(self._ports)]
            await loop.create_connection(lambda made=receiver: made, "127.0.0.1", port)  # type: ignore[misc]
            async with asyncio.timeout(LATE):
                await receiver.open
            self.receivers.append(receiver)

    def close(self) -> None:
        """Close all."""
        for receiver in self.receivers:
            receiver.transport.abort()
        for publisher in self._publishers:
            publisher.transport.abort()

    async def publish(self, rate: float = 0.0) -> float:
        """Publish all events, as fast as they are answered or at a rate, and wait for the last delivery.

        Returns when the first was due.
        """
        before = self.delivered
        posts = iter(enumerate(self._posts))
        began = time.perf_counter() + 0.01

        async def some(publisher: Publisher) -> None:
            for number, post in posts:
                pause = began + number * TOGETHER / rate - time.perf_counter() if rate else 0.0
                if pause > 0:
                    await asyncio.sleep(pause)
                await publisher.publish(post)

        await asyncio.gather(*map(some, self._publishers))
        await self._all_delivered(before + self._workload.deliveries)
        return began

    @property
    def delivered(self) -> int:
        """Events received so far."""
        return sum([receiver.events for receiver in self.receivers])

    async def _all_delivered(self, wanted: int) -> None:
        last, since = -1, time.perf_counter()
        while (now := self.delivered) < wanted:
            if now != last:
                last, since = now, time.perf_counter()
            if time.perf_counter() - since > LATE or any(one.lost for one in self.receivers):
                raise LoadError(f"{now:,} of {wanted:,} deliveries came, and no more")
            await asyncio.sleep(0.002)
        if now > wanted:
            raise LoadError(f"{now:,} deliveries came; {wanted:,} were wanted")

    def check_samples(self, began: float = 0.0, rate: float = 0.0) -> list[float]:
        """Raise LoadError unless each sample got what it wants, in order; latencies in ms at a rate."""
        latencies = []
        for receiver, wanted in zip(self.receivers, self._workload.wanted, strict=True):
            if receiver.reads is None:
                continue
            taken = receiver.taken()
            offsets = [offset for _, offset, _ in taken]
            if sorted(n for _, _, n in taken) != wanted or offsets != sorted(offsets):
                raise LoadError(f"a sample got {len(taken)} events, not the {len(wanted)} it wants in order")
            if rate:
                due = [began + n // TOGETHER * TOGETHER / rate for _, _, n in taken]
                latencies += [1e3 * (when - at) for (when, _, _), at in zip(taken, due, strict=True)]
        return sorted(latencies)


def percentile(values: Sequence[float], share: float) -> float:
    """A percentile of sorted values."""
    return values[math.ceil(len(values) * share) - 1]
