"""Fragments (performance-02): MPS with payloads of 3,000 bytes, and of 30,000 bytes that are split in ten.

As in the thesis, one node has one subscriber, and splits what its routing layer takes: every notification
goes to a node of the original, too, which is a socket here. Partial delivery is allowed. The same payloads
also pass through a node that sends nothing on, and so splits nothing; through two nodes of a cluster, whole
and in pieces; and through the references.
"""

import socket
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace

from benchmarks.frame import Check, Options, Row, Table, figure, progress
from benchmarks.report import as_tables, cell
from benchmarks.tools.arena import COMMIT, FLOOR, LIMIT, SPYNE, Arena, Candidate
from benchmarks.tools.load import BUSY
from benchmarks.tools.members import RunningMember, cluster, reach
from benchmarks.tools.messages import TOPIC, payload
from benchmarks.tools.sink import Tally

SMALL, LARGE, PIECES = 3_000, 30_000, 10
DATAGRAM = 3_500
"""Bytes of a datagram: one holds the smaller notification with its topic, and ten the larger."""
ONE = "HPwsn, one node"
BETWEEN = "HPwsn, two nodes, UDP"
IN_ONE, SPLIT, UNSPLIT = "one datagram", "ten datagrams", "not sent on"
REFERENCES = (LIMIT, FLOOR, SPYNE)


class WholeMessages(Tally):
    """Counts messages that arrive in ten pieces each, as whole ones."""

    def __init__(self) -> None:
        super().__init__()
        self._pieces = 0

    def take(self, data: bytes, start: int, end: int) -> None:
        """Count the pieces of one body."""
        before = self.notifications
        super().take(data, start, end)
        self._pieces += self.notifications - before
        self.notifications = self._pieces // PIECES


def run(options: Options) -> Table:
    """Both sizes through each candidate, in turns."""
    with ExitStack() as stack:
        arena = stack.enter_context(Arena(options))
        one = _measure(arena, list(_one_node(arena, stack.enter_context(_original_node()))), ONE)
        members = stack.enter_context(_two_nodes())
        two = _measure(arena, list(_whole(arena, members)), BETWEEN)
        others = [_measure(arena, _sizes(each), each.name) for each in arena.start(*REFERENCES, consumers=1)]
    groups = (one, two, *others)
    return Table(
        "fragments",
        "MPS",
        groups,
        _checks(one, two),
        (*arena.notes(), f"a datagram has at most {DATAGRAM:,} bytes"),
        BUSY,
        body=body_of(row for group in groups for row in group),
    )


def _checks(one: Sequence[Row], two: Sequence[Row]) -> tuple[Check, ...]:
    small, split, _, unsplit = one
    split_bytes, small_bytes = (_in_bytes(row) for row in (two[1], two[0]))
    in_ten = f"MPS, one node: {LARGE:,} bytes in ten datagrams"
    in_bytes = f"MB/s, two nodes: {LARGE:,} bytes"
    return (
        Check.ratio(f"{in_ten}, against {SMALL:,}", split, small, 90, "%"),
        Check.ratio(f"{in_ten}, against unsplit", split, unsplit, 90, "%"),
        Check.ratio(f"{in_bytes}, against {SMALL:,}", split_bytes, small_bytes, 100, "%"),
    )


def body_of(rows: Iterable[Row]) -> str:
    """A line for HPwsn and the fastest reference: MPS, the same as bytes, and the CPU time."""
    return as_tables(_cells(row for row in rows if not row.name.startswith((FLOOR, SPYNE))))


def _cells(rows: Iterable[Row]) -> Iterator[tuple[str, str, str, str]]:
    for row in rows:
        yield "", row.name, "MPS", cell(row)
        yield "", row.name, "MB/s", figure(_in_bytes(row).value)
        yield "", row.name, "CPU each", row.note.partition(", ")[0]


def _in_bytes(row: Row) -> Row:
    size = (LARGE if f"{LARGE:,} bytes" in row.name else SMALL) / 1e6
    return Row(row.name, row.value * size, row.note, tuple(each * size for each in row.samples))


@contextmanager
def _original_node() -> Iterator[int]:
    """The port of a socket that stands for a node of the original; what it gets is dropped."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp:
        udp.bind(("127.0.0.1", 0))
        yield udp.getsockname()[1]


def _one_node(arena: Arena, port: int) -> Iterator[Candidate]:
    settings = ["journal.durability=commit", f"routing.fragment_size={DATAGRAM}"]
    node = arena.node(ONE, [*settings, f"routing.originals=127.0.0.1:{port}"], consumers=1)
    for size, datagrams in ((SMALL, IN_ONE), (LARGE, SPLIT)):
        name = f"{ONE}, {size:,} bytes, {datagrams}"
        yield replace(node, name=name, content=payload(size), partial=True)
    (alone,) = arena.start(COMMIT, consumers=1)
    for size in (SMALL, LARGE):
        yield replace(alone, name=f"{ONE}, {size:,} bytes, {UNSPLIT}", content=payload(size))


@contextmanager
def _two_nodes() -> Iterator[dict[str, RunningMember]]:
    progress("starting an admin node and two nodes of a cluster")
    size = (f"routing.fragment_size={DATAGRAM}",)
    with cluster({"a": "one", "b": "one"}, {"a": size, "b": size}) as members:
        yield members


def _whole(arena: Arena, members: dict[str, RunningMember]) -> Iterator[Candidate]:
    """The node that is published to, with the tally of a consumer of the other one."""
    source, pieces = members["a"], "pieces"
    for size, datagrams, topic, tally in (
        (SMALL, IN_ONE, TOPIC, Tally()),
        (LARGE, SPLIT, TOPIC, Tally()),
        (LARGE, f"ten {pieces} delivered", f"bench:{pieces}", WholeMessages()),
    ):
        arena.load.run(reach(members["b"].url, topic, arena.load, tally, source.url))
        name = f"{BETWEEN}, {size:,} bytes, {datagrams}"
        partial = topic != TOPIC
        yield Candidate(name, f"{source.url}/wsn", source.pid, (tally,), topic, payload(size), partial)


def _sizes(candidate: Candidate) -> list[Candidate]:
    return [
        replace(candidate, name=f"{candidate.name}, {size:,} bytes", content=payload(size))
        for size in (SMALL, LARGE)
    ]


def _measure(arena: Arena, candidates: Sequence[Candidate], what: str) -> tuple[Row, ...]:
    rows = arena.contest(candidates, what, mps=what in (ONE, BETWEEN))
    return tuple(rows[each.name] for each in candidates)
