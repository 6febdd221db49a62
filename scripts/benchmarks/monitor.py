"""Monitor: CPU time of a node for a notification with ten open pages, on the overview or watching a topic.

    scripts/bench monitor

Each page is a client that asks what the page in a browser asks, in the same rhythm: on the overview it
follows `/live`; on a topic it follows the events of the loaded topic, at most 50 a second. In turns, the node
has ten pages or none (benchmarks/tools/watched_node.py); the CPU time of browsers does not count. The full
run has at least 20 rounds of 4 s for each kind of page, which take about 10 minutes, and wants a machine
without other work.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from urllib.parse import quote

from benchmarks.frame import Options, Table
from benchmarks.tools.cores import pinning_notes
from benchmarks.tools.raw_load import TOPIC, LoadError, request
from benchmarks.tools.watched_node import compare, described

PAGES = 10
_TOPIC = quote(TOPIC.replace("/", ":"))
_LIVE = "/live?kinds=status,topology,topics,subscriptions,alerts"
_EVENTS = f"/topics/{_TOPIC}/events?max_rate=50&cut=65536"
_ROW = f"/topics?topic={_TOPIC}"
_BUSIEST = "/topics?sort=-rate&limit=12"


@dataclass(frozen=True, slots=True)
class Kind:
    """What a page asks: the stream that it follows, and addresses with the seconds between two questions."""

    name: str
    stream: str
    asked: tuple[tuple[str, float], ...]


KINDS = (
    Kind("on the overview", _LIVE, (("/cluster", 5.0), (_BUSIEST, 4.0), ("/events-log", 15.0))),
    # The tree and the head of the page each ask for the row of the topic.
    Kind(
        "watching a topic",
        _EVENTS,
        (("/cluster", 2.0), ("/status", 4.0), ("/alerts", 4.0), (_ROW, 2.0), (_ROW, 4.0)),
    ),
)


async def _follow(port: int, path: str, began: asyncio.Event) -> None:
    """Read a stream, and set the event at its first bytes."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(request("GET", path, "Accept: text/event-stream"))
        head = await reader.readuntil(b"\r\n\r\n")
        if b" 200 " not in head.partition(b"\r\n")[0]:
            raise LoadError(f"the node refused {path}: {head[:300]!r}")
        while await reader.read(65536):
            began.set()
    finally:
        writer.transport.abort()


async def _ask(port: int, path: str, every: float, first: float) -> None:
    """GET an address again and again on one connection, as browsers do."""
    await asyncio.sleep(first)
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        while True:
            writer.write(request("GET", path, "Accept: application/json"))
            head = await reader.readuntil(b"\r\n\r\n")
            if b" 200 " not in head.partition(b"\r\n")[0]:
                raise LoadError(f"the node refused {path}: {head[:300]!r}")
            lines = head.lower().split(b"\r\n")
            length = next(
                int(line.partition(b":")[2]) for line in lines if line.startswith(b"content-length")
            )
            await reader.readexactly(length)
            await asyncio.sleep(every)
    finally:
        writer.transport.abort()


@asynccontextmanager
async def _watching(kind: Kind, port: int) -> AsyncIterator[None]:
    """Open PAGES pages of a kind, which ask at different moments."""
    async with AsyncExitStack() as stack:
        tasks: list[asyncio.Task[None]] = []
        stack.push_async_callback(_end, tasks)
        began = [asyncio.Event() for _ in range(PAGES)]
        for number, event in enumerate(began):
            tasks.append(asyncio.create_task(_follow(port, kind.stream, event)))
            for path, every in kind.asked:
                tasks.append(asyncio.create_task(_ask(port, path, every, every * number / PAGES)))
        async with asyncio.timeout(10):
            await asyncio.gather(*(event.wait() for event in began))
        yield
        for task in tasks:
            if task.done():
                task.result()
                raise LoadError("the node ended a stream of a page")


async def _end(tasks: Sequence[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def run(options: Options) -> Table:
    """The node has open pages or none, in turns, for each kind of page."""
    found = [
        compare(options, kind.name, f"more CPU time with {PAGES} pages {kind.name}", partial(_watching, kind))
        for kind in KINDS
    ]
    return Table(
        "CPU time of a node for a notification, without and with open pages",
        "CPU µs",
        tuple(rows for rows, _ in found),
        tuple(check for _, check in found),
        (described(options), *pinning_notes()),
    )
