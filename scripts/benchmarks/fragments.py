"""Fragments (performance-02): bytes a second of 30,000-byte messages, split in ten, and of 3,000-byte ones.

A publisher at one node, a consumer at another of its cluster: between them each notification is as many
datagrams as it needs, one or ten. Beside that both sizes go through one node, where nothing is split, and
through the references.
"""

from contextlib import ExitStack
from dataclasses import replace

from benchmarks.frame import Check, Options, Row, Table, progress
from benchmarks.tools.arena import COMMIT, FLOOR, LIMIT, SPYNE, Arena, Candidate
from benchmarks.tools.members import cluster, reach
from benchmarks.tools.messages import TOPIC, payload
from benchmarks.tools.sink import Tally

SMALL, LARGE = 3_000, 30_000
DATAGRAM = 3_500
"""Bytes of a datagram: one holds the smaller notification with its topic, and ten the larger."""
BETWEEN = "HPwsn, two nodes, split over UDP"
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
        (Check.ratio(f"bytes/s of {LARGE:,} bytes split in ten, against {SMALL:,}", large, small, 100, "%"),),
        (*arena.notes(), f"between the two nodes, datagrams of at most {DATAGRAM:,} bytes"),
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
