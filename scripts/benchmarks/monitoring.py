"""Monitoring: CPU time of a node for a notification with ten readers of /live and a scrape a second.

    scripts/bench monitoring

In turns, the node is watched, by ten connections to `/live` with all kinds and one GET of `/metrics` a
second, or alone (benchmarks/tools/watched_node.py). The full run has at least 20 rounds of 4 s each, which
take about 5 minutes, and wants a machine without other work.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import cast

from benchmarks.frame import Options, Table
from benchmarks.tools.cores import pinning_notes
from benchmarks.tools.raw_load import LoadError, exchange, request
from benchmarks.tools.watched_node import compare, described

READERS = 10
SCRAPE_EVERY = 1.0


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


@asynccontextmanager
async def _watching(port: int) -> AsyncIterator[None]:
    """Follow /live with READERS connections, and scrape."""
    watchers = [await _watch(port) for _ in range(READERS)]
    scrapes = asyncio.create_task(_scrape(port))
    try:
        before = [watcher.statuses for watcher in watchers]
        yield
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


async def _watch(port: int) -> Watcher:
    _, watcher = await asyncio.get_running_loop().create_connection(Watcher, "127.0.0.1", port)
    async with asyncio.timeout(10):
        await watcher.began
    return watcher


async def _scrape(port: int) -> None:
    while True:
        await exchange(port, request("GET", "/metrics", "Accept: text/plain"), b"200 ")
        await asyncio.sleep(SCRAPE_EVERY)


def run(options: Options) -> Table:
    """The node is alone and watched in turns."""
    what = f"more CPU time with {READERS} readers of /live and a scrape a second"
    rows, check = compare(options, "watched", what, _watching)
    return Table(
        "CPU time of a node for a notification, alone and watched",
        "CPU µs",
        (rows,),
        (check,),
        (described(options), *pinning_notes()),
    )
