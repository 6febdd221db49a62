"""The four ways to serve many requests (the paper, 5.3 and 5.4.1), each measured on one node.

- this: filters on the topics of the derived services.
- one service per request: a process for each request, which reads the sources and serves one consumer.
- by topic: consumers get everything on the topics of their sources, and would filter it themselves.
- by content: filters on the topics of the sources; a request for GPS is made at each of the three sources.

Publishers post to the derived topics for `this`, and to the sources for the others.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import uvloop

from benchmarks.services.feed import Feed
from benchmarks.services.load_processes import (
    Connection,
    Consumers,
    Part,
    ServiceProcesses,
    stream_path,
    waiting_seconds,
)
from benchmarks.services.outcomes import Outcome, problem_of
from benchmarks.services.random_requests import Request, mixed_requests
from benchmarks.tools.cores import on_load_core, settle
from benchmarks.tools.nodes import start, stop

THIS, ALONE, TOPIC, CONTENT = "this", "one service per request", "by topic", "by content"
METHODS = (THIS, ALONE, TOPIC, CONTENT)
SEED = 18
GRACE = 1.0
"""Seconds after the load in which a sustained one has delivered everything."""
WARM = 0.5
COMPILE = 60.0
"""Seconds that the kernel of the index may take to be compiled or loaded."""


@dataclass(slots=True)
class Setting:
    """A node with consumers, and perhaps processes between them."""

    base: str
    node: int
    consumers: Consumers
    services: ServiceProcesses | None = None
    spark: Part | None = None

    def parts(self) -> dict[str, Part]:
        """What is measured apart."""
        found = {"node": Part.of([self.node]), "consumers": Part.of([self.consumers.pid])}
        if self.services:
            found["services"] = Part.of(self.services.pids())
        return found | ({"Spark": self.spark} if self.spark else {})

    def received(self) -> int:
        """Bytes that services have read up to now."""
        return self.services.received() if self.services else 0


def connections(method: str, port: int, requests: Sequence[Request]) -> list[Connection]:
    """The long connections to a node that a method needs."""
    if method == THIS:
        return [(port, stream_path([one.service.topic], one.text)) for one in requests]
    if method == TOPIC:
        return [(port, stream_path(one.service.sources)) for one in requests]
    return [(port, stream_path([topic], one.text)) for one in requests for topic in one.service.sources]


@contextmanager
def setting(method: str, requests: Sequence[Request]) -> Iterator[Setting]:
    """A node that serves the requests by a method."""
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="hpwsn-bench-"))
        node, base = start(Path(folder) / "data", ["log.level=error"], pinned=True)
        stack.callback(stop, node, kill=True)
        stack.enter_context(on_load_core())
        port = urlsplit(base).port or 0
        services = None
        if method == ALONE:
            sources = [one.service.sources for one in requests]
            services = stack.enter_context(ServiceProcesses(port, requests, sources))
            wanted = services.connections
        else:
            wanted = connections(method, port, requests)
        consumers = stack.enter_context(Consumers(wanted))
        settle(node.pid, COMPILE)
        yield Setting(base, node.pid, consumers, services)


def measure(method: str, count: int, rate: float, seconds: float) -> Outcome:
    """One method with so many requests, at so many events a second."""
    requests = mixed_requests(count, SEED)
    with setting(method, requests) as found:
        feed = Feed(found.base, rate, requests, raw=method != THIS)
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            _warm(runner, found)
            return observe(runner, found, feed, count, seconds, everything=method == TOPIC)


def _warm(runner: asyncio.Runner, found: Setting) -> None:
    """Let the node load its kernel before it is measured."""
    for raw in (False, True):
        runner.run(Feed(found.base, 1000, [], raw=raw).send(WARM))
    settle(found.node, COMPILE)
    found.consumers.clear()


def observe(
    runner: asyncio.Runner,
    found: Setting,
    feed: Feed,
    count: int,
    seconds: float,
    *,
    everything: bool = False,
    grace: float = GRACE,
) -> Outcome:
    """Run the load, and say what came of it; `everything` where each consumer gets all of its service."""
    parts, began, received = found.parts(), time.perf_counter(), found.received()
    before = {name: part.cpu() for name, part in parts.items()}
    waiting = waiting_seconds(found.node)
    sent = runner.run(feed.send(seconds))
    wanted = sent.events * count // 2 if everything else sent.deliveries
    found.consumers.wait_for(wanted, sent.last / 1e6 + grace)
    lasted = time.perf_counter() - began
    waited = (waiting_seconds(found.node) - waiting) / lasted
    stats = found.consumers.stats(sent.first, sent.last)
    return Outcome(
        count,
        feed.rate,
        wanted / seconds,
        stats["deliveries"] / max(seconds, lasted - grace),
        stats["mean"],
        stats["p99"],
        {name: 100 * (part.cpu() - before[name]) / lasted for name, part in parts.items()},
        {name: part.memory() for name, part in parts.items()},
        (stats["bytes"] + found.received() - received) / lasted / 1e6,
        problem_of(stats, wanted=wanted, sent=sent.events, accepted=feed.accepted, waited=waited),
        waited,
    )
