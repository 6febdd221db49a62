"""Topics (performance-01): notifications per second, by depth of the topic and number of siblings.

A second topic of two levels measures the noise: on an idle machine its rate would be that of the first.
"""

import tempfile
from pathlib import Path

from benchmarks.frame import Check, Options, Table
from benchmarks.report import as_rows
from benchmarks.tools.arena import FLOOR, LIMIT, SPYNE, Arena
from benchmarks.tools.load import BUSY

SIBLINGS = 1_000
CASES = {
    "two levels deep": "bench:two",
    "two levels deep, second topic": "bench:too",
    "five levels deep": "bench:a:b:c:d",
    f"last of {SIBLINGS:,} siblings": f"bench:siblings:s{SIBLINGS - 1}",
}
EQUAL = 95.0
"""Per cent of the first topic's rate that counts as equal on an idle machine."""


def run(options: Options) -> Table:
    """One node with a fixed tree, a consumer for each case; the references know no topics."""
    with Arena(options) as arena, tempfile.TemporaryDirectory(prefix="hpwsn-bench-") as folder:
        file = Path(folder) / "topics.toml"
        file.write_text(_tree())
        node = arena.node("HPwsn", [f"topics.url={file}"])
        cases = [arena.subscribe(node, f"HPwsn, {name}", topic) for name, topic in CASES.items()]
        rows = tuple(arena.contest(cases).values())
        references = arena.contest(arena.start(LIMIT, FLOOR, SPYNE, consumers=1), "references")
    same = Check.ratio("", rows[1], rows[0], 0, "%")
    # The lower quartile of equal topics, if the machine is too busy for EQUAL.
    noise = round(min(EQUAL, sorted(same.values)[len(same.values) // 4]), 1)
    checks = tuple(
        Check.ratio(f"{name}, against two", row, rows[0], noise, "%")
        for name, row in zip(list(CASES)[2:], rows[2:], strict=True)
    )
    notes = (*arena.notes(), f"noise: the second topic of two levels reached {same.reached} of the first")
    body = as_rows(Table("", "notifications/s", (rows,), note_title=BUSY))
    groups = (rows, tuple(references.values()))
    return Table("topics", "notifications/s", groups, checks, notes, BUSY, body=body)


def _tree() -> str:
    siblings = (f"[topics.bench.siblings.s{number}]\n" for number in range(SIBLINGS))
    return "[topics.bench.two]\n[topics.bench.too]\n[topics.bench.a.b.c.d]\n" + "".join(siblings)
