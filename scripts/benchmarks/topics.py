"""Topics (performance-01): messages a second on a topic two levels deep, five deep, and a last sibling."""

import tempfile
from pathlib import Path

from benchmarks.frame import Check, Options, Table
from benchmarks.tools.arena import FLOOR, LIMIT, SPYNE, Arena

SIBLINGS = 1_000
CASES = {
    "two levels deep": "bench:two",
    "five levels deep": "bench:a:b:c:d",
    f"last of {SIBLINGS:,} siblings": f"bench:siblings:s{SIBLINGS - 1}",
}
NOISE = 95.0
"""Per cent of the first that still counts as equal."""


def run(options: Options) -> Table:
    """One node with a fixed tree, a consumer for each case; the references know no topics."""
    with Arena(options) as arena, tempfile.TemporaryDirectory(prefix="hpwsn-bench-") as folder:
        file = Path(folder) / "topics.toml"
        file.write_text(_tree())
        node = arena.node("HPwsn", [f"topics.url={file}"])
        cases = [arena.subscribe(node, f"HPwsn, {name}", topic) for name, topic in CASES.items()]
        rows = tuple(arena.contest(cases).values())
        references = arena.contest(arena.start(LIMIT, FLOOR, SPYNE, consumers=1), "references")
    checks = tuple(
        Check.ratio(f"{name}, against two levels (within noise)", row, rows[0], NOISE, "%")
        for name, row in zip(list(CASES)[1:], rows[1:], strict=True)
    )
    return Table("topics", "messages/s", (rows, tuple(references.values())), checks, arena.notes())


def _tree() -> str:
    siblings = (f"[topics.bench.siblings.s{number}]\n" for number in range(SIBLINGS))
    return "[topics.bench.two]\n[topics.bench.a.b.c.d]\n" + "".join(siblings)
