"""Durability: notifications accepted in a second with each promise, at 1, 8 and 64 publishers."""

import statistics
import subprocess
import sys
from contextlib import ExitStack

from benchmarks.frame import Options, Row, Table, progress
from benchmarks.tools.nodes import running

PUBLISHERS = (1, 8, 64)
ROUNDS = 5
NODES = {
    "none": (["journal.durability=none"], "hpwsn"),
    "commit": (["journal.durability=commit"], "hpwsn"),
    "fsync": (["journal.durability=fsync"], "hpwsn"),
    "no journal at all": ([], "unjournalled"),
}


def run(options: Options) -> Table:
    """Nodes take turns under the same load; the median of several rounds counts, with its spread."""
    with ExitStack() as stack:
        urls = {
            name: stack.enter_context(running(settings, module)) + "/wsn"
            for name, (settings, module) in NODES.items()
        }
        groups = tuple(_measure(urls, publishers, options) for publishers in PUBLISHERS)
    return Table("durability", "notifications/s", groups)


def _measure(urls: dict[str, str], publishers: int, options: Options) -> tuple[Row, ...]:
    rates: dict[str, list[float]] = {name: [] for name in urls}
    for number in range(ROUNDS):
        progress(f"{publishers} publishers, round {number + 1} of {ROUNDS}")
        for name, url in urls.items():
            rates[name].append(_load(url, publishers, options.seconds))
    return tuple(
        Row(f"{name}, {publishers} pub.", statistics.median(seen), f"{min(seen):.0f} to {max(seen):.0f}")
        for name, seen in rates.items()
    )


def _load(url: str, publishers: int, seconds: float) -> float:
    command = [sys.executable, "-m", "benchmarks.tools.publish", url, str(publishers), str(seconds)]
    return float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
