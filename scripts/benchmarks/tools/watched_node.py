"""CPU time of a node for a notification, in turns alone and while something watches it.

The node takes Notify requests with one notification each, as fast as they are answered, and pushes each to a
consumer. A sample is the CPU time of the node's process, divided by the notifications. Ratios are taken
within a round, whose two halves change places; the node starts anew every RESTART rounds.
"""

import asyncio
import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from pathlib import Path

import uvloop

from benchmarks.frame import Check, Options, Row, progress
from benchmarks.tools.checkouts import Checkout, Process, running
from benchmarks.tools.cores import on_load_core
from benchmarks.tools.raw_load import Load, Receipts, add_consumers, measure, notify_requests

HERE = Path(__file__).parents[3]
ROUNDS, SECONDS, RESTART = 20, 4.0, 5
WANTED = 2.0
"""Per cent that watching may add to the CPU time of a notification."""
ALONE = "alone"

Watching = Callable[[int], AbstractAsyncContextManager[None]]
"""Given the port of a node, watches it until the end of the context."""


class WatchedNode:
    """One running node under load."""

    def __init__(self, node: Process, receipts: Receipts) -> None:
        self._node = node
        self._receipts = receipts
        self._load = Load(notify_requests(1), 1)

    async def cost(self, notifications: int) -> float:
        """CPU microseconds of the node for a notification."""
        sample = await measure(self._node.pid, self._node.port, self._load, notifications, self._receipts)
        return 1e6 * sample.cpu / notifications

    async def alone_cost(self, notifications: int, watching: Watching) -> float:
        """The cost after as long a pause as for a watched node, since the watchers have come and gone."""
        async with watching(self._node.port):
            pass
        return await self.cost(notifications)

    async def watched_cost(self, notifications: int, watching: Watching) -> float:
        """The cost while the node is watched."""
        async with watching(self._node.port):
            return await self.cost(notifications)

    async def notifications_in(self, seconds: float) -> int:
        """How many notifications the node takes in so many seconds."""
        notifications = 64
        while True:
            sample = await measure(self._node.pid, self._node.port, self._load, notifications, self._receipts)
            if sample.seconds >= min(seconds / 2, 1.0):
                return max(1, int(notifications / sample.seconds * seconds))
            notifications *= 2


@asynccontextmanager
async def _running() -> AsyncIterator[WatchedNode]:
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="hpwsn-bench-")))
        node = await stack.enter_async_context(running(Checkout("this", HERE), folder, "serve"))
        receipts = Receipts()
        for server in await add_consumers(node.port, 1, receipts):
            stack.callback(server.close)
        yield WatchedNode(node, receipts)


async def _measure(rounds: int, seconds: float, watching: Watching) -> tuple[list[float], list[float]]:
    alone: list[float] = []
    watched: list[float] = []
    notifications = 0
    for first in range(0, rounds, RESTART):
        async with _running() as node:
            measured = await node.notifications_in(seconds)
            notifications = notifications or measured
            for number in range(first, min(first + RESTART, rounds)):
                progress(f"{notifications:,} notifications each, round {number + 1} of {rounds}")
                turns = [(alone, node.alone_cost), (watched, node.watched_cost)]
                for costs, cost in reversed(turns) if number % 2 else turns:
                    costs.append(await cost(notifications, watching))
    return alone, watched


def compare(options: Options, watched: str, what: str, watching: Watching) -> tuple[tuple[Row, Row], Check]:
    """The rows of a node alone and watched, and the check that watching costs at most WANTED per cent."""
    rounds = options.rounds if options.quick else max(options.rounds, ROUNDS)
    seconds = options.seconds if options.quick else max(options.seconds, SECONDS)
    with on_load_core(), asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        costs = runner.run(_measure(rounds, seconds, watching))
    rows = Row.of(ALONE, costs[0]), Row.of(watched, costs[1])
    more = tuple(100 * (one / other - 1) for other, one in zip(*costs, strict=True))
    return rows, Check(what, more, WANTED, "%", at_most=True)


def described(options: Options) -> str:
    """How the rows were measured, for the notes of a table."""
    rounds = options.rounds if options.quick else max(options.rounds, ROUNDS)
    seconds = options.seconds if options.quick else max(options.seconds, SECONDS)
    return f"median of {rounds} rounds of about {seconds:g} s, ratios within a round"
