"""The load: publishers that pipeline prepared bytes, and consumers beside them, in one loop on one core.

A load that measures the way to consumers lets only so many notifications be under way, from the publisher's
write to the last consumer's receipt: what is measured is what can go on for ever, not how fast a queue grows.
"""

import asyncio
import itertools
import statistics
import time
from collections.abc import Callable, Coroutine, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self, TypeVar, cast
from urllib.parse import urlsplit

import uvloop

from benchmarks.frame import Options
from benchmarks.tools.cores import cpu_seconds, on_load_core, settle
from benchmarks.tools.mps import MpsMeter
from benchmarks.tools.sink import Sink, Tally

CONNECTIONS = 8
PIPELINE = 8
"""Requests on one connection that wait for their answers."""
UNDER_WAY = 1024
"""Notifications between the publishers and the slowest consumer."""
DRAIN = 20.0
QUIET = 0.8
"""The share of its core that the busier side has on a machine where nothing else runs."""

BUSY = "CPU each, server/load busy"
"""The title of a column of `Busy.note`."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Sample:
    """What one measurement gave: a rate, and how busy both sides were."""

    rate: float
    server: float
    load: float


class Publisher(asyncio.Protocol):
    """One kept-alive connection, with up to PIPELINE requests on it."""

    def __init__(self, flow: "Flow") -> None:
        self._flow = flow
        self._tail = b""
        self.free = PIPELINE

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See asyncio.Protocol."""
        self.transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        """Count the answers, and send as many anew."""
        data = self._tail + data
        # A status line may be cut in two, so only whole lines count.
        end = data.rfind(b"\n") + 1
        self._tail = data[end:]
        answers = data.count(b"HTTP/1.1 202 ", 0, end)
        if data.count(b"HTTP/1.1 ", 0, end) != answers:
            self.transport.abort()
            self._flow.failed(f"the server refused: {data[:300]!r}")
            return
        self.free += answers
        self._flow.answered(answers)

    def connection_lost(self, error: Exception | None) -> None:
        """See asyncio.Protocol."""
        if not self._flow.ended:
            self._flow.failed(f"the server closed a connection ({error})")


class Flow:
    """How much may be sent, and what has come back."""

    def __init__(
        self,
        requests: Iterable[bytes],
        messages: int,
        tallies: Sequence[Tally],
        meter: MpsMeter | None = None,
    ) -> None:
        self._requests = itertools.cycle(requests)
        self._messages = messages
        self._tallies = tallies
        self.meter = meter
        self._before = [tally.notifications for tally in tallies]
        self._sending = True
        self.publishers: list[Publisher] = []
        self.sent = self.accepted = 0
        self.failure = ""
        self.ended = False
        for tally in tallies:
            tally.on_change = self.pump

    @property
    def received(self) -> int:
        """Notifications that every consumer has; without consumers, those that were accepted."""
        if not self._tallies:
            return self.accepted
        pairs = zip(self._tallies, self._before, strict=True)
        return min(tally.notifications - before for tally, before in pairs)

    def failed(self, reason: str) -> None:
        """Remember why, for whoever waits."""
        self.failure = self.failure or reason

    def answered(self, count: int) -> None:
        """So many requests were accepted."""
        self.accepted += count * self._messages
        self.pump()

    def pump(self) -> None:
        """Send what may be sent."""
        if self.meter is not None:
            self.meter.note(self.received)
        if not self._sending:
            return
        limit = max(UNDER_WAY, 2 * self._messages)
        room = (limit - (self.sent - self.received)) // self._messages if self._tallies else 1 << 30
        for publisher in self.publishers:
            count = min(publisher.free, room)
            if count > 0:
                publisher.free -= count
                room -= count
                self.sent += count * self._messages
                publisher.transport.write(b"".join(itertools.islice(self._requests, count)))

    def hold(self) -> None:
        """Send nothing by itself from now on."""
        self._sending = False

    def finish(self) -> None:
        """Close the connections; what went wrong is raised."""
        self.ended = True
        for publisher in self.publishers:
            publisher.transport.abort()
        if self.failure:
            raise RuntimeError(self.failure)

    async def drain(self) -> None:
        """Send no more, and wait until all is answered and received."""
        self.hold()
        async with asyncio.timeout(DRAIN):
            while self.accepted < self.sent or self.received < self.sent:
                if self.failure:
                    return
                await asyncio.sleep(0.01)


class Load:
    """The event loop of publishers and consumers; consumers stay while the block runs."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        self._stack.enter_context(on_load_core())
        self._runner = self._stack.enter_context(asyncio.Runner(loop_factory=uvloop.new_event_loop))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._stack.close()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """The result of a coroutine in this loop."""
        return self._runner.run(work)

    def consumer(self, tally: Tally) -> str:
        """The URL of a new consumer, which is there whenever the loop runs."""
        return self.run(self.listen(tally))

    async def listen(self, tally: Tally) -> str:
        """The same, from within the loop."""
        loop = asyncio.get_running_loop()
        server = await loop.create_server(lambda: Sink(tally), "127.0.0.1", 0, backlog=1024)
        return f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"

    def saturate(
        self,
        url: str,
        pid: int,
        requests: Sequence[bytes],
        messages: int = 1,
        tallies: Sequence[Tally] = (),
        meter: MpsMeter | None = None,
    ) -> Sample:
        """As many notifications in a second as the server takes, or as all consumers get."""
        try:
            sample = self.run(self._saturate(url, pid, Flow(requests, messages, tallies, meter)))
        finally:
            for tally in tallies:
                tally.on_change = lambda: None
        settle(pid)
        return sample

    async def _saturate(self, url: str, pid: int, flow: Flow) -> Sample:
        await connect(url, flow)
        flow.pump()
        seconds = self._options.seconds
        await _sleep(flow, max(0.1, seconds / 5))
        count, began, server, load = flow.received, time.perf_counter(), cpu_seconds(pid), time.process_time()
        if flow.meter is not None:
            flow.meter.start(count)
        await _sleep(flow, seconds)
        # On a crowded machine a short time may bring nothing at all, which is no measurement.
        while flow.received == count and time.perf_counter() < began + DRAIN and not flow.failure:
            await _sleep(flow, seconds)
        taken = time.perf_counter() - began
        if flow.meter is not None:
            flow.meter.stop()
        sample = Sample(
            (flow.received - count) / taken,
            (cpu_seconds(pid) - server) / taken,
            (time.process_time() - load) / taken,
        )
        await flow.drain()
        flow.finish()
        if not sample.rate:
            raise RuntimeError(f"nothing came through {url} within {DRAIN:g} s")
        return sample


async def connect(url: str, flow: Flow, count: int = CONNECTIONS) -> None:
    """Open the publishers' connections."""
    parts = urlsplit(url)
    loop = asyncio.get_running_loop()
    for _ in range(count):
        _, publisher = await loop.create_connection(
            lambda: Publisher(flow), parts.hostname or "", parts.port or 80
        )
        flow.publishers.append(publisher)


async def _sleep(flow: Flow, seconds: float) -> None:
    end = time.perf_counter() + seconds
    while (left := end - time.perf_counter()) > 0 and not flow.failure:  # noqa: ASYNC110
        await asyncio.sleep(min(left, 0.2))


class Busy:
    """How busy the server and the load were in the rounds of each candidate."""

    def __init__(self) -> None:
        self._samples: dict[str, list[Sample]] = {}

    def rate(self, name: str, measure: Callable[[], Sample]) -> Callable[[], float]:
        """The measurement as one that gives its rate only."""

        def call() -> float:
            sample = measure()
            self._samples.setdefault(name, []).append(sample)
            return sample.rate

        return call

    def warning(self) -> str:
        """A note for a run in which other processes took time from the server and the load; else empty."""
        shares = [max(each.server, each.load) for samples in self._samples.values() for each in samples]
        if not shares or min(shares) >= QUIET:
            return ""
        return (
            f"busy machine: one server had only {min(shares):.0%} of its core; compare CPU times, not rates"
        )

    def note(self, name: str) -> str:
        """CPU time of the server per notification, and the share of its core that each side used."""
        samples = self._samples.get(name)
        if not samples:
            return ""
        server = statistics.mean(sample.server for sample in samples)
        load = statistics.mean(sample.load for sample in samples)
        each = statistics.median(sample.server / sample.rate for sample in samples) * 1e6
        return f"{each:,.1f} µs, {server:.0%}/{load:.0%}"
