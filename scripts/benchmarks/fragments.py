"""Fragments (performance-02): bytes per second with payloads of 30,000 bytes in ten datagrams, and of 3,000.

The publisher is at one node and the consumer at another node of the same cluster. A notification crosses in
one datagram or in ten. Both sizes are also measured through one node, without fragments, and through the
references.
"""

from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import replace

from benchmarks.frame import Check, Options, Row, Table, progress
from benchmarks.report import as_tables, cell
from benchmarks.tools.arena import COMMIT, FLOOR, LIMIT, SPYNE, Arena, Candidate
from benchmarks.tools.load import BUSY
from benchmarks.tools.members import cluster, reach
from benchmarks.tools.messages import TOPIC, payload
from benchmarks.tools.sink import Tally

SMALL, LARGE = 3_000, 30_000
DATAGRAM = 3_500
"""Bytes of a datagram: one holds the smaller notification with its topic, and ten the larger."""
BETWEEN = "HPwsn, two nodes, UDP"
NAMES = (COMMIT, LIMIT, FLOOR, SPYNE)


def run(options: Options) -> Table:
    """Both sizes through each candidate, in turns."""
    with ExitStack() as stack:
        arena = stack.enter_context(Arena(options))
        candidates = [_two_nodes(stack, arena), *arena.start(*NAMES, consumers=1)]
        groups = tuple(_measure(arena, each) for each in candidates)
    small, large = groups[0]
    return Table(
        "fragments",
        "MB/s",
        groups,
        (Check.ratio(f"{LARGE:,}-byte payloads, against {SMALL:,}", large, small, 100, "%"),),
        (*arena.notes(), f"datagrams between the two nodes have at most {DATAGRAM:,} bytes"),
        BUSY,
        body=body_of(row for group in groups for row in group),
    )


def body_of(rows: Iterable[Row]) -> str:
    """A line for HPwsn and the fastest reference, a column for each size, with the CPU time."""
    return as_tables(
        ("MB/s", name, size, f"{cell(row)}, {row.note.partition(', ')[0]}")
        for row in rows
        for name, _, size in (row.name.rpartition(", "),)
        if name not in (FLOOR, SPYNE)
    )


def _two_nodes(stack: ExitStack, arena: Arena) -> Candidate:
    """The node that is published to, with the tally of a consumer of the other one."""
    progress("starting an admin node and two nodes of a cluster")
    size = (f"routing.fragment_size={DATAGRAM}",)
    members = stack.enter_context(cluster({"a": "one", "b": "one"}, {"a": size, "b": size}))
    source, tally = members["a"], Tally()
    arena.load.run(reach(members["b"].url, TOPIC, arena.load, tally, source.url))
    return Candidate(BETWEEN, f"{source.url}/wsn", source.pid, (tally,))


def _measure(arena: Arena, candidate: Candidate) -> tuple[Row, ...]:
    cases = {f"{candidate.name}, {size:,} bytes": size for size in (SMALL, LARGE)}
    seen = [replace(candidate, name=name, content=payload(size)) for name, size in cases.items()]
    rows = arena.contest(seen, candidate.name)
    return tuple(_bytes(rows[name], size) for name, size in cases.items())


def _bytes(row: Row, size: int) -> Row:
    return Row(row.name, row.value * size / 1e6, row.note, tuple(s * size / 1e6 for s in row.samples))
