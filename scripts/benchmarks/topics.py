"""Topics (performance-01): MPS by depth of the topic and number of siblings, in the tree of the thesis.

A second topic of two levels measures the noise: on an idle machine its rate would be that of the first. The
last of a thousand siblings is beyond the thesis, whose topics had five.
"""

import tempfile
from pathlib import Path

from benchmarks.frame import Check, Options, Table
from benchmarks.report import as_rows
from benchmarks.tools.arena import FLOOR, LIMIT, SPYNE, Arena
from benchmarks.tools.load import BUSY
from hpwsn_client.wsn.soap.names import DIALECT_CONCRETE

SIBLINGS = 1_000
FIVE_LEVELS = "ALL:ALARM:ALARM1:ALARM11"
CASES = {
    "two levels deep": "ALL:ALARM",
    "two levels deep, second topic": "ALL:STATE",
    "five levels deep": f"{FIVE_LEVELS}:ALARM111",
    "five levels deep, last sibling": f"{FIVE_LEVELS}:ALARM115",
    f"last of {SIBLINGS:,} siblings": f"WIDE:S{SIBLINGS - 1}",
}
EQUAL = 95.0
"""Per cent of the first topic's rate that counts as equal on an idle machine."""


def run(options: Options) -> Table:
    """One node with a fixed tree, a consumer for each case; the references know no topics."""
    with Arena(options) as arena, tempfile.TemporaryDirectory(prefix="hpwsn-bench-") as folder:
        file = Path(folder) / "topics.toml"
        file.write_text(_tree())
        node = arena.node("HPwsn", [f"topics.url={file}"])
        # Concrete: a Simple subscription to ALL:ALARM would get the messages of the deeper topics, too.
        cases = [
            arena.subscribe(node, f"HPwsn, {name}", topic, dialect=DIALECT_CONCRETE)
            for name, topic in CASES.items()
        ]
        rows = tuple(arena.contest(cases, mps=True).values())
        references = arena.contest(arena.start(LIMIT, FLOOR, SPYNE, consumers=1), "references")
    same = Check.ratio("", rows[1], rows[0], 0, "%")
    # The lower quartile of equal topics, if the machine is too busy for EQUAL.
    noise = round(min(EQUAL, sorted(same.values)[len(same.values) // 4]), 1)
    checks = tuple(
        Check.ratio(f"{name}, against two", row, rows[0], noise, "%")
        for name, row in zip(list(CASES)[2:], rows[2:], strict=True)
    )
    notes = (*arena.notes(), f"noise: the second topic of two levels reached {same.reached} of the first")
    body = as_rows(Table("", "MPS", (rows,), note_title=BUSY))
    groups = (rows, tuple(references.values()))
    return Table("topics", "MPS", groups, checks, notes, BUSY, body=body)


def _tree() -> str:
    five = (f"[topics.{FIVE_LEVELS.replace(':', '.')}.ALARM11{number}]\n" for number in range(1, 6))
    wide = (f"[topics.WIDE.S{number}]\n" for number in range(SIBLINGS))
    return "".join(["[topics.ALL.STATE]\n", *five, *wide])
