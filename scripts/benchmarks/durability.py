"""Durability: notifications accepted per second at each durability, with 1, 8 and 64 publishers."""

import subprocess
import sys
from collections.abc import Iterable
from contextlib import ExitStack

from benchmarks.frame import Options, Row, Table, take_turns
from benchmarks.report import as_tables, cell
from benchmarks.tools.nodes import running

PUBLISHERS = (1, 8, 64)
NODES = {
    "none": (["journal.durability=none"], "hpwsn"),
    "commit": (["journal.durability=commit"], "hpwsn"),
    "fsync": (["journal.durability=fsync"], "hpwsn"),
    "no journal": ([], "unjournalled"),
}


def run(options: Options) -> Table:
    """Nodes take turns under the same load; the median of several rounds counts, with its spread."""
    with ExitStack() as stack:
        urls = {
            name: stack.enter_context(running(settings, module)) + "/wsn"
            for name, (settings, module) in NODES.items()
        }
        groups = tuple(_measure(urls, publishers, options) for publishers in PUBLISHERS)
    body = body_of(row for group in groups for row in group)
    return Table("durability", "notifications/s", groups, body=body)


def body_of(rows: Iterable[Row]) -> str:
    """A line for each durability, a column for each number of publishers."""
    return as_tables(
        ("notifications/s", name, f"publishers: {count.removesuffix(' pub.')}", cell(row))
        for row in rows
        for name, _, count in (row.name.partition(", "),)
    )


def _measure(urls: dict[str, str], publishers: int, options: Options) -> tuple[Row, ...]:
    rates = take_turns(
        {name: lambda url=url: _load(url, publishers, options.seconds) for name, url in urls.items()},  # type: ignore[misc]
        options.rounds,
        f"{publishers} publishers",
    )
    return tuple(Row.of(f"{name}, {publishers} pub.", seen) for name, seen in rates.items())


def _load(url: str, publishers: int, seconds: float) -> float:
    command = [sys.executable, "-m", "benchmarks.tools.publish", url, str(publishers), str(seconds)]
    return float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
