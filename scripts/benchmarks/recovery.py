"""Recovery: time from start to ready with many notifications in the journal and many subscriptions."""

import tempfile
import time
from pathlib import Path

from benchmarks.frame import Options, Row, Table, progress
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
    """Writes each journal, then starts a node on it, killed before that and stopped cleanly before that."""
    cases = QUICK if options.quick else CASES
    return Table("recovery", "s to ready", tuple(_measure(*case) for case in cases))


def _measure(notifications: int, subscriptions: int, predicates: bool) -> tuple[Row, ...]:
    with tempfile.TemporaryDirectory(prefix="hpwsn-bench-") as folder:
        data = Path(folder) / "data"
        progress(f"writing {notifications} notifications and {subscriptions} subscriptions")
        fill(data, notifications=notifications, subscriptions=subscriptions, predicates=predicates)
        first, second = (_time_start(data, clean) for clean in (False, True))
    name = f"{notifications:,} and {subscriptions:,}" + (" with predicates" if predicates else "")
    return Row(f"{name}, first start", first), Row(f"{name}, after a kill -9", second)


def _time_start(data: Path, clean: bool) -> float:
    progress("starting a node" + (" again after kill -9" if clean else ""))
    began = time.perf_counter()
    process, _ = start(data, ["log.level=error"])
    taken = time.perf_counter() - began
    stop(process, kill=not clean)
    return taken
