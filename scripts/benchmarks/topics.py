"""Topics (performance-01): messages a second on a topic two levels deep, five deep, and a last sibling.

What counts as noise is measured: a second topic of two levels, whose rate would be the same on a machine that
did nothing else.
"""

import tempfile
from pathlib import Path

from benchmarks.frame import Check, Options, Table
from benchmarks.tools.arena import FLOOR, LIMIT, SPYNE, Arena

SIBLINGS = 1_000
CASES = {
    "two levels deep": "bench:two",
    "two levels deep, another": "bench:too",
    "five levels deep": "bench:a:b:c:d",
    f"last of {SIBLINGS:,} siblings": f"bench:siblings:s{SIBLINGS - 1}",
}
EQUAL = 95.0
"""Per cent of the first that counts as equal, however quiet the machine is."""


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
    # One round in four of the very same may be slower than that.
    noise = round(min(EQUAL, sorted(same.values)[len(same.values) // 4]), 1)
    checks = tuple(
        Check.ratio(f"{name}, against two levels (within noise)", row, rows[0], noise, "%")
        for name, row in zip(list(CASES)[2:], rows[2:], strict=True)
    )
    notes = (*arena.notes(), f"noise: two topics of the same kind differ as {same.reached}")
    return Table("topics", "messages/s", (rows, tuple(references.values())), checks, notes)


def _tree() -> str:
    siblings = (f"[topics.bench.siblings.s{number}]\n" for number in range(SIBLINGS))
    return "[topics.bench.two]\n[topics.bench.too]\n[topics.bench.a.b.c.d]\n" + "".join(siblings)
