"""Memory: resident size of a node before and after 10,000 subscriptions."""

import asyncio
import tempfile
from pathlib import Path

import psutil

from benchmarks.frame import Check, Options, Row, Table, progress
from benchmarks.tools.arena import FLOOR, LIMIT, SPYNE, Arena, Candidate
from benchmarks.tools.journals import fill
from hpwsn_client import Client

SUBSCRIPTIONS = 10_000
QUICK = 1_000
AT_ONCE = 32
WARM = 256
"""Subscriptions before anything is measured, some for each connection."""
TARGET = 30.0
"""Megabytes for 10,000."""


def run(options: Options) -> Table:
    """Subscribes over the wire, as users do, and restores as many from a journal."""
    count = options.sized(SUBSCRIPTIONS, QUICK)
    with tempfile.TemporaryDirectory(prefix="hpwsn-bench-") as folder, Arena(options) as arena:
        node = arena.node("HPwsn")
        # Connections and code that the first requests load must not count as subscriptions.
        arena.load.run(_subscribe(node.url, WARM, "warm"))
        before = _resident(node)
        progress(f"subscribing {count:,} times")
        arena.load.run(_subscribe(node.url, count, "bench"))
        after = _resident(node)
        progress(f"a node restored with {count:,}")
        fill(Path(folder) / "data", subscriptions=count)
        restored = _resident(arena.node("restored", data=Path(folder)))
        references = [Row(each.name, _resident(each)) for each in arena.start(LIMIT, FLOOR, SPYNE)]
    rows = (
        Row(f"HPwsn, {WARM} subscriptions", before),
        Row(f"HPwsn, {count:,} more", after, f"{(after - before) * 1e3 / count:.2f} KB per subscription"),
        Row(f"HPwsn, {count:,} restored from the journal", restored),
    )
    scaled = (after - before) * SUBSCRIPTIONS / count
    check = Check(f"{SUBSCRIPTIONS:,} more subscriptions", (scaled,), TARGET, "MB", at_most=True)
    small = f"measured with {count:,} and scaled up, which overstates one-time allocations"
    notes = () if count == SUBSCRIPTIONS else (small,)
    return Table("memory", "MB", (rows, tuple(references)), (check,), notes)


def _resident(candidate: Candidate) -> float:
    resident: int = psutil.Process(candidate.pid).memory_info().rss
    return resident / 1e6


async def _subscribe(url: str, count: int, name: str) -> None:
    """Each to a topic of a thousand, with a consumer of its own."""
    numbers = iter(range(count))

    async def subscribe(client: Client) -> None:
        for number in numbers:
            await client.subscribe(f"{name}:t{number % 1000}", f"http://127.0.0.1:9/{number}")

    async with Client(url, connections=AT_ONCE) as client:
        await asyncio.gather(*(subscribe(client) for _ in range(AT_ONCE)))
