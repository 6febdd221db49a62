"""Growth: notifications per second end to end, with 1 to 100,000 subscriptions that do not match."""

import tempfile
from pathlib import Path

from benchmarks.frame import Check, Options, Table, progress
from benchmarks.report import as_rows
from benchmarks.tools.arena import FLOOR, LIMIT, SPYNE, Arena, Candidate
from benchmarks.tools.journals import fill
from benchmarks.tools.load import BUSY

COUNTS = (1, 1_000, 10_000, 100_000)
QUICK = (1, 100, 1_000)


def run(options: Options) -> Table:
    """A node for each number, restored from a journal; the references have no subscriptions."""
    counts = QUICK if options.quick else COUNTS
    with tempfile.TemporaryDirectory(prefix="hpwsn-bench-") as folder, Arena(options) as arena:
        nodes = [_node(arena, count, Path(folder)) for count in counts]
        rows = tuple(arena.contest(nodes).values())
        references = arena.contest(arena.start(LIMIT, FLOOR, SPYNE, consumers=1), "references")
    check = Check.ratio(f"{counts[-1]:,} non-matching subscriptions, against 1", rows[-1], rows[0], 90, "%")
    body = as_rows(Table("", "notifications/s", (rows,), note_title=BUSY))
    groups = (rows, tuple(references.values()))
    return Table("growth", "notifications/s", groups, (check,), arena.notes(), BUSY, body=body)


def _node(arena: Arena, count: int, folder: Path) -> Candidate:
    progress(f"a node with {count:,} subscriptions")
    data = folder / str(count)
    fill(data / "data", subscriptions=count)
    return arena.node(f"HPwsn, {count:,} non-matching", consumers=1, data=data)
