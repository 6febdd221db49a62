"""Scrapes: CPU of a node for one scrape of /metrics a second, with 1,000 subscriptions and five services."""

import json
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path

from benchmarks.frame import Check, Options, Row, Table, progress
from benchmarks.tools.arena import Arena, Candidate
from benchmarks.tools.load import Load
from hpwsn_client import Client

SUBSCRIPTIONS = 1_000
SERVICES = 5
SCRAPES = 10
"""Scrapes of one measurement, a second apart, and as many seconds without."""
FIGURES = {"batch": 1, "rows_in": 1, "rows_out": 1, "rows_per_second": 1.5, "lag": 1, "state_rows": 1}
WANTED = 1.0
"""Per cent of a core."""


def run(options: Options) -> Table:
    """Compares an idle node that is scraped every second with the same node alone, in turns."""
    scrapes = options.sized(SCRAPES, 2)
    with Arena(options) as arena:
        node = arena.node("HPwsn")
        base = node.url.removesuffix("/wsn")
        _fill(arena.load, node, base)
        size = len(_scrape(base))
        alone, scraped = [], []
        for number in range(options.rounds):
            progress(f"round {number + 1} of {options.rounds}")
            alone.append(_used(node.pid, scrapes, lambda: b""))
            scraped.append(_used(node.pid, scrapes, lambda: _scrape(base)))
    rows = (
        Row.of("alone", alone),
        Row.of("scraped every second", scraped, f"{size:,} bytes an answer"),
    )
    added = tuple(one - other for one, other in zip(scraped, alone, strict=True))
    check = Check("a scrape a second", added, WANTED, "% of a core", at_most=True)
    return Table("CPU time of an idle node", "% of a core", (rows,), (check,), arena.notes())


def _fill(load: Load, node: Candidate, base: str) -> None:
    """Subscribe, and register services as their jobs do."""

    async def subscribe() -> None:
        async with Client(node.url) as client:
            for number in range(SUBSCRIPTIONS):
                await client.subscribe(f"scrapes:t{number % 100}", f"http://127.0.0.1:9/{number}")

    load.run(subscribe())
    for number in range(SERVICES):
        document = {"topic": f"scrapes:s{number}", "instance": "1", "figures": FIGURES}
        request = urllib.request.Request(
            f"{base}/streams/urn%3Ascrapes%3A{number}",
            json.dumps(document).encode(),
            {"Content-Type": "application/json"},
            method="PUT",
        )
        urllib.request.urlopen(request).close()


def _scrape(base: str) -> bytes:
    with urllib.request.urlopen(f"{base}/metrics") as answer:
        body: bytes = answer.read()
    return body


def _used(pid: int, seconds: int, each: Callable[[], bytes]) -> float:
    """Per cent of a core that a process uses while `each` is called once a second."""
    before, began = _cpu(pid), time.perf_counter()
    for number in range(seconds):
        each()
        time.sleep(max(0.0, began + number + 1 - time.perf_counter()))
    return 100.0 * (_cpu(pid) - before) / (time.perf_counter() - began)


def _cpu(pid: int) -> float:
    """CPU seconds of all threads, to the nanosecond: a scrape takes less than a tick of the usual counter."""
    tasks = Path(f"/proc/{pid}/task").iterdir()
    return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks) / 1e9
