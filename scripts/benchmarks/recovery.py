"""Recovery: seconds from start to ready, by notifications and subscriptions in the journal."""

import tempfile
import time
from collections.abc import Iterable
from pathlib import Path

from benchmarks.frame import Options, Row, Table, figure, progress
from benchmarks.report import as_tables
from benchmarks.tools.journals import fill
from benchmarks.tools.nodes import start, stop

CASES = (
    (0, 0, False),
    (100_000, 1_000, False),
    (1_000_000, 10_000, False),
    (0, 100_000, True),
)
QUICK = ((0, 0, False), (10_000, 100, False), (0, 1_000, True))


def run(options: Options) -> Table:
    """Writes each journal, starts a node on it, kills the node and starts it again."""
    cases = QUICK if options.quick else CASES
    groups = tuple(_measure(*case) for case in cases)
    return Table("recovery", "s to ready", groups, body=body_of(row for group in groups for row in group))


def body_of(rows: Iterable[Row]) -> str:
    """A line for each journal, a column for each start."""
    return as_tables(
        ("notifications and subscriptions", journal, f"{start}, s", figure(row.value))
        for row in rows
        for journal, _, start in (row.name.rpartition(", "),)
    )


def _measure(notifications: int, subscriptions: int, predicates: bool) -> tuple[Row, ...]:
    with tempfile.TemporaryDirectory(prefix="hpwsn-bench-") as folder:
        data = Path(folder) / "data"
        progress(f"writing {notifications} notifications and {subscriptions} subscriptions")
        fill(data, notifications=notifications, subscriptions=subscriptions, predicates=predicates)
        first, second = (_time_start(data, clean) for clean in (False, True))
    name = f"{notifications:,} and {subscriptions:,}" + (" with predicates" if predicates else "")
    return Row(f"{name}, first start", first), Row(f"{name}, after kill -9", second)


def _time_start(data: Path, clean: bool) -> float:
    progress("starting a node" + (" again after kill -9" if clean else ""))
    began = time.perf_counter()
    process, _ = start(data, ["log.level=error"])
    taken = time.perf_counter() - began
    stop(process, kill=not clean)
    return taken
