"""Fan-out: notifications that are taken in a second while 1, 10 or 32 consumers get each of them."""

from dataclasses import replace

from benchmarks.frame import Check, Options, Row, Table
from benchmarks.tools.arena import COMMIT, FLOOR, LIMIT, SPYNE, Arena

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
        "notifications taken/s",
        groups,
        (Check.ratio("ingest with 10 consumers, against 1", ours[1], ours[0], 65, "%"),),
        (*arena.notes(), "each is counted once, when the last consumer has it"),
    )


def _measure(arena: Arena, name: str, options: Options) -> tuple[Row, ...]:
    counts = QUICK if options.quick else CONSUMERS
    candidates = [replace(arena.start(name, consumers=n)[0], name=f"{name}, to {n}") for n in counts]
    return tuple(arena.contest(candidates, name).values())
