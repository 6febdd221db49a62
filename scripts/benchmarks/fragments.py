"""Fragments (performance-02): bytes a second end to end, of 30,000-byte notifications and 3,000-byte ones.

The original splits messages above 3,000 bytes between nodes. Nothing is split yet where one node serves both
sides, so this measures what a payload of ten times the size costs on the way through one node.
"""

from dataclasses import replace

from benchmarks.frame import Check, Options, Row, Table
from benchmarks.tools.arena import COMMIT, FLOOR, LIMIT, SPYNE, Arena, Candidate
from benchmarks.tools.messages import payload

SMALL, LARGE = 3_000, 30_000
NAMES = (COMMIT, LIMIT, FLOOR, SPYNE)


def run(options: Options) -> Table:
    """Both sizes through each candidate, in turns."""
    with Arena(options) as arena:
        groups = tuple(_measure(arena, each) for each in arena.start(*NAMES, consumers=1))
    small, large = groups[0]
    return Table(
        "fragments",
        "MB/s",
        groups,
        (Check.ratio(f"bytes/s of {LARGE:,} bytes, against {SMALL:,}", large, small, 100, "%"),),
        (*arena.notes(), "through one node: nothing is split on this way"),
    )


def _measure(arena: Arena, candidate: Candidate) -> tuple[Row, ...]:
    cases = {f"{candidate.name}, {size:,} bytes": size for size in (SMALL, LARGE)}
    seen = [replace(candidate, name=name, content=payload(size)) for name, size in cases.items()]
    rows = arena.contest(seen, candidate.name)
    return tuple(_bytes(rows[name], size) for name, size in cases.items())


def _bytes(row: Row, size: int) -> Row:
    return Row(row.name, row.value * size / 1e6, row.note, tuple(s * size / 1e6 for s in row.samples))
