"""A node with many requests for one stream, and the stream at a fixed rate: latency, and what it costs.

Every event is a position in a grid that has a cell for each request; one in ten is of a vehicle that moves,
which its request wants, so as many are delivered however many requests there are. A request says its cell by
topic, by predicates that the node indexes, or, for either, by XPath that the node has to evaluate by itself
for each event, which is what a service for each request does.
"""

import asyncio
import math
import random
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

import psutil

from benchmarks.frame import Options
from benchmarks.tools.cores import cpu_seconds, settle
from benchmarks.tools.load import CONNECTIONS, Flow, Load, connect
from benchmarks.tools.messages import request
from benchmarks.tools.nodes import start, stop
from benchmarks.tools.sink import Tally
from hpwsn_client import Client
from hpwsn_client.wsn.operations.notifications import NotificationMessage, encode_notify
from hpwsn_client.wsn.soap.envelope import SoapVersion, encode_envelope
from hpwsn_client.wsn.topics.topic_expressions import Topic, TopicExpression

ALONE = ", one service per request"
KINDS = {
    "content": "six predicates, on one topic",
    f"content{ALONE}": "six conditions, evaluated for every event",
    "topic": "its own topic",
    f"topic{ALONE}": "a topic name, compared for every event",
}
WANTED = 10
"""One event in so many satisfies a request."""
TOGETHER = 20
"""Events in one Notify."""
WEST, EAST, SOUTH, NORTH = 115.25, 117.30, 39.26, 41.03
WARM = 0.3
PATIENCE = 2.0
"""Seconds that are waited for what is late; what comes later still counts as having come then."""
WARM_RATE, WARM_EVENTS = 1000, 400
COMPILE = 60.0
"""Seconds that the kernel of the index may take to be compiled or loaded."""


@dataclass(frozen=True, slots=True)
class Measured:
    """Milliseconds from when an event was due to its receipt, and the node's part in it."""

    mean: float
    p99: float
    delivered: float
    cpu: float
    memory: float
    network: float


class Deliveries(Tally):
    """Notes when each event came, and how many bytes did."""

    def __init__(self) -> None:
        super().__init__()
        self.bytes = 0
        self.came: list[tuple[int, float]] = []

    def take(self, data: bytes, start: int, end: int) -> None:
        """Count one body."""
        super().take(data, start, end)
        now = time.perf_counter()
        self.bytes += end - start
        at = data.find(b"<n>", start, end)
        while at >= 0:
            self.came.append((int(data[at + 3 : data.find(b"<", at + 3)]), now))
            at = data.find(b"<n>", at + 3, end)


class RequestLoad:
    """A node with so many requests, while the block runs."""

    def __init__(self, kind: str, count: int, options: Options) -> None:
        self._kind, self._count, self._options = kind, count, options
        self._columns = max(1, round(math.sqrt(count)))
        self._stack = ExitStack()
        self._tally = Deliveries()

    def __enter__(self) -> Self:
        self._load = self._stack.enter_context(Load(self._options))
        folder = self._stack.enter_context(tempfile.TemporaryDirectory(prefix="hpwsn-bench-"))
        self._node, base = start(Path(folder) / "data", ["log.level=error"], pinned=True)
        self._stack.callback(stop, self._node, kill=True)
        self._url = f"{base}/wsn"
        consumer = self._load.consumer(self._tally)
        self._load.run(self._subscribe(consumer))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._stack.close()

    async def _subscribe(self, consumer: str) -> None:
        numbers = iter(range(self._count))

        async def some(client: Client) -> None:
            for number in numbers:
                topic = f"gps:c{number}" if self._kind == "topic" else "gps"
                content, predicate = self._filter(number)
                await client.subscribe(topic, f"{consumer}{number}", content=content, predicate=predicate)

        async with Client(self._url) as client:
            await asyncio.gather(*(some(client) for _ in range(16)))

    def _filter(self, number: int) -> tuple[str | None, str | None]:
        """The XPath or the predicates of a request."""
        west, east, south, north = self._cell(number)
        bounds = [("longitude", ">=", west), ("longitude", "<", east), ("latitude", ">=", south)]
        bounds += [("latitude", "<", north), ("speed", ">", 0.0), ("satelliteNum", ">=", 3.0)]
        if self._kind == "topic":
            return None, None
        if self._kind.startswith("topic"):
            return f"string(topic) = 'gps:c{number}'", None
        if self._kind == "content":
            return None, " and ".join(f"{name} {op} {value!r}" for name, op, value in bounds)
        return " and ".join(f"number({name}) {op} {value!r}" for name, op, value in bounds), None

    def _cell(self, number: int) -> tuple[float, float, float, float]:
        rows = math.ceil(self._count / self._columns)
        width, height = (EAST - WEST) / self._columns, (NORTH - SOUTH) / rows
        column, row = number % self._columns, number // self._columns
        west, south = WEST + column * width, SOUTH + row * height
        return west, west + width, south, south + height

    def at_rate(self, rate: int) -> Measured:
        """What the stream gives at so many events a second."""
        return self._load.run(self._at_rate(rate, max(self._options.seconds, 0.1) * 2))

    async def _at_rate(self, rate: int, seconds: float) -> Measured:
        flow = Flow([b""], 1, ())
        flow.hold()
        await connect(self._url, flow)
        await self._warm(flow)
        first = int(rate * WARM)
        count = (first + int(rate * seconds)) // TOGETHER * TOGETHER
        began = await self._send(flow, rate, count)
        end = time.perf_counter() + PATIENCE
        while len(self._tally.came) < count // WANTED and time.perf_counter() < end and not flow.failure:  # noqa: ASYNC110
            await asyncio.sleep(0.005)
        flow.finish()
        return self._measured(began, rate, first, count)

    def _measured(self, began: float, rate: int, first: int, count: int) -> Measured:
        late = time.perf_counter()
        came = dict(self._tally.came)
        due = [began + n // TOGETHER * TOGETHER / rate for n in range(count)]
        wanted = range(-(-first // WANTED) * WANTED, count, WANTED)
        times = sorted(1e3 * (came.get(n, late) - due[n]) for n in wanted)
        lasted = late - began
        node = psutil.Process(self._node.pid)
        return Measured(
            sum(times) / len(times),
            times[math.ceil(len(times) * 0.99) - 1],
            len(self._tally.came) / lasted,
            max(0.01, 100 * (cpu_seconds(self._node.pid) - self._cpu) * rate / count),
            node.memory_info().rss / 1e6,
            self._tally.bytes / lasted / 1e6,
        )

    async def _warm(self, flow: Flow) -> None:
        """Let the node make its kernel ready, on the core that it is measured on, and forget what came."""
        await asyncio.to_thread(settle, self._node.pid, COMPILE)
        await self._send(flow, WARM_RATE, WARM_EVENTS)
        end = time.perf_counter() + COMPILE
        while len(self._tally.came) < WARM_EVENTS // WANTED and time.perf_counter() < end:  # noqa: ASYNC110
            await asyncio.sleep(0.05)
        await asyncio.to_thread(settle, self._node.pid)
        self._tally.came.clear()
        self._tally.bytes = 0

    async def _send(self, flow: Flow, rate: int, count: int) -> float:
        """Send each Notify when it is due; when the first was."""
        bodies = self._notifies(count)
        prepared = [next(bodies) for _ in range(count // TOGETHER)]
        self._cpu = cpu_seconds(self._node.pid)
        began = time.perf_counter() + 0.01
        for number, data in enumerate(prepared):
            pause = began + number * TOGETHER / rate - time.perf_counter()
            if pause > 0:
                await asyncio.sleep(pause)
            elif number % 20 == 0:
                await asyncio.sleep(0)
            flow.publishers[number % CONNECTIONS].transport.write(data)
        return began

    def _notifies(self, count: int) -> Iterator[bytes]:
        """The stream as whole requests, each event with its number."""
        chance = random.Random(1)
        for first in range(0, count, TOGETHER):
            messages = [self._message(chance, n) for n in range(first, first + TOGETHER)]
            body = encode_envelope(SoapVersion.SOAP11, encode_notify(messages))
            yield request(self._url, body)

    def _message(self, chance: random.Random, number: int) -> NotificationMessage:
        cell = chance.randrange(self._count)
        west, east, south, north = self._cell(cell)
        x = west + (east - west) * chance.uniform(0.01, 0.99)
        y = south + (north - south) * chance.uniform(0.01, 0.99)
        wanted = "gps:still" if number % WANTED else f"gps:c{cell}"
        named = f"<topic>{wanted}</topic>" if self._kind == f"topic{ALONE}" else ""
        payload = (
            f"<event><n>{number}</n>{named}<vid>V{chance.randrange(500)}</vid><longitude>{x!r}</longitude>"
            f"<latitude>{y!r}</latitude><speed>{0 if number % WANTED else chance.randint(1, 120)}</speed>"
            f"<direction>{chance.randrange(360)}</direction>"
            f"<satelliteNum>{chance.randint(3, 12)}</satelliteNum></event>"
        ).encode()
        topic = wanted if self._kind == "topic" else "gps"
        return NotificationMessage(TopicExpression.of(Topic.parse(topic)), payload)
