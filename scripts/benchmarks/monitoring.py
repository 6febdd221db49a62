"""Monitoring: CPU time of a node for a notification with ten readers of /live and a scrape a second.

    scripts/bench monitoring

One node takes Notify requests with one notification each, as fast as they are answered, and pushes each to a
consumer. In turns, it is watched, by ten connections to `/live` with all kinds and one GET of `/metrics` a
second, or alone. A sample is the CPU time of the node's process, divided by the notifications. Ratios are
taken within a round; the node starts anew every five rounds. The full run has at least 20 rounds of 4 s each,
which take about 5 minutes, and wants a machine without other work.
"""

import asyncio
import tempfile
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import cast

import uvloop

from benchmarks.frame import Check, Options, Row, Table, progress
from benchmarks.tools.checkouts import Checkout, Process, running
from benchmarks.tools.cores import on_load_core, pinning_notes
from benchmarks.tools.raw_load import (
    Load,
    LoadError,
    Receipts,
    add_consumers,
    exchange,
    measure,
    notify_requests,
    request,
)

HERE = Path(__file__).parents[2]
READERS = 10
SCRAPE_EVERY = 1.0
ROUNDS, SECONDS, RESTART = 20, 4.0, 5
WANTED = 2.0
"""Per cent that watching may add to the CPU time of a notification."""
ALONE, WATCHED = "alone", "watched"


class Watcher(asyncio.Protocol):
    """A reader of /live, which counts the messages of each second."""

    def __init__(self) -> None:
        self.statuses = 0
        self.began: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Ask for the stream."""
        self.transport = cast(asyncio.Transport, transport)
        self.transport.write(request("GET", "/live", "Accept: text/event-stream"))

    def data_received(self, data: bytes) -> None:
        """Count messages of kind status; the node writes each with one call."""
        self.statuses += data.count(b"event: status\n")
        if self.statuses and not self.began.done():
            self.began.set_result(None)


class Bench:
    """One running node, and what was measured of it and of those before."""

    def __init__(self, node: Process, receipts: Receipts) -> None:
        self.node = node
        self.receipts = receipts
        self.load = Load(notify_requests(1), 1)

    async def _cost(self, notifications: int) -> float:
        sample = await measure(self.node.pid, self.node.port, self.load, notifications, self.receipts)
        return 1e6 * sample.cpu / notifications

    async def alone_cost(self, notifications: int) -> float:
        """CPU microseconds of the node for a notification, after as long a pause as for a watched one."""
        for watcher in [await self._watch() for _ in range(READERS)]:
            watcher.transport.abort()
        return await self._cost(notifications)

    async def watched_cost(self, notifications: int) -> float:
        """The same with readers and scrapes."""
        watchers = [await self._watch() for _ in range(READERS)]
        scrapes = asyncio.create_task(self._scrape())
        try:
            before = [watcher.statuses for watcher in watchers]
            cost = await self._cost(notifications)
            got = {watcher.statuses - seen for watcher, seen in zip(watchers, before, strict=True)}
            if max(got) - min(got) > 1:
                raise LoadError(f"readers of /live got different numbers of messages: {sorted(got)}")
        finally:
            scrapes.cancel()
            await asyncio.wait([scrapes])
            for watcher in watchers:
                watcher.transport.abort()
        if not scrapes.cancelled():
            scrapes.result()
        return cost

    async def _watch(self) -> Watcher:
        loop = asyncio.get_running_loop()
        _, watcher = await loop.create_connection(Watcher, "127.0.0.1", self.node.port)
        async with asyncio.timeout(10):
            await watcher.began
        return watcher

    async def _scrape(self) -> None:
        while True:
            await exchange(self.node.port, request("GET", "/metrics", "Accept: text/plain"), b"200 ")
            await asyncio.sleep(SCRAPE_EVERY)

    async def notifications_in(self, seconds: float) -> int:
        """How many notifications the node takes in so many seconds."""
        notifications = 64
        while True:
            sample = await measure(self.node.pid, self.node.port, self.load, notifications, self.receipts)
            if sample.seconds >= min(seconds / 2, 1.0):
                return max(1, int(notifications / sample.seconds * seconds))
            notifications *= 2


@asynccontextmanager
async def _bench() -> AsyncIterator[Bench]:
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="hpwsn-bench-")))
        node = await stack.enter_async_context(running(Checkout("this", HERE), folder, "serve"))
        receipts = Receipts()
        for server in await add_consumers(node.port, 1, receipts):
            stack.callback(server.close)
        yield Bench(node, receipts)


async def _measure(rounds: int, seconds: float) -> dict[str, list[float]]:
    costs: dict[str, list[float]] = {ALONE: [], WATCHED: []}
    notifications = 0
    for first in range(0, rounds, RESTART):
        async with _bench() as bench:
            measured = await bench.notifications_in(seconds)
            notifications = notifications or measured
            for number in range(first, min(first + RESTART, rounds)):
                progress(f"{notifications:,} notifications each, round {number + 1} of {rounds}")
                turns = {ALONE: bench.alone_cost, WATCHED: bench.watched_cost}
                for name in sorted(turns, reverse=bool(number % 2)):
                    costs[name].append(await turns[name](notifications))
    return costs


def run(options: Options) -> Table:
    """The node is alone and watched in turns."""
    rounds = options.rounds if options.quick else max(options.rounds, ROUNDS)
    seconds = options.seconds if options.quick else max(options.seconds, SECONDS)
    with on_load_core(), asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        costs = runner.run(_measure(rounds, seconds))
    alone, watched = Row.of(ALONE, costs[ALONE]), Row.of(WATCHED, costs[WATCHED])
    more = tuple(100 * (one / other - 1) for one, other in zip(watched.samples, alone.samples, strict=True))
    what = f"more CPU time with {READERS} readers of /live and a scrape a second"
    return Table(
        "CPU time of a node for a notification, alone and watched",
        "CPU µs",
        ((alone, watched),),
        (Check(what, more, WANTED, "%", at_most=True),),
        (f"median of {rounds} rounds of about {seconds:g} s, ratios within a round", *pinning_notes()),
    )
