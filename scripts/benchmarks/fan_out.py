"""Fan-out: notifications accepted per second, each delivered to 1, 10 or 32 consumers."""

from collections.abc import Iterable
from dataclasses import replace

from benchmarks.frame import Check, Options, Row, Table
from benchmarks.report import as_tables, cell
from benchmarks.tools.arena import COMMIT, FLOOR, LIMIT, SPYNE, Arena
from benchmarks.tools.load import BUSY

CONSUMERS = (1, 10, 32)
QUICK = (1, 10)
NAMES = (COMMIT, LIMIT, FLOOR, SPYNE)


def run(options: Options) -> Table:
    """Each candidate runs once for each number of consumers; all of a candidate's take turns."""
    with Arena(options) as arena:
        groups = tuple(_measure(arena, name, options) for name in NAMES)
    ours = groups[0]
    return Table(
        "fan-out",
        "notifications accepted/s",
        groups,
        (Check.ratio("10 consumers, against 1", ours[1], ours[0], 65, "%"),),
        arena.notes(),
        BUSY,
        body=body_of(row for group in groups for row in group),
    )


def body_of(rows: Iterable[Row]) -> str:
    """A line for each candidate, a column for each number of consumers, with the CPU time of its notes."""
    return as_tables(
        ("notifications accepted/s", name, f"to {count}", f"{cell(row)}, {row.note.partition(', ')[0]}")
        for row in rows
        for name, _, count in (row.name.partition(", to "),)
    )


def _measure(arena: Arena, name: str, options: Options) -> tuple[Row, ...]:
    counts = QUICK if options.quick else CONSUMERS
    candidates = [replace(arena.start(name, consumers=n)[0], name=f"{name}, to {n}") for n in counts]
    return tuple(arena.contest(candidates, name).values())
