"""Long connections: CPU time of one delivery by number of connections and filter, and one node beside two.

    [HPWSN_BENCH_BEFORE=DIR] scripts/bench long-connections

DIR is an older checkout, whose node takes turns with the node of this one. Events are posted as JSON lines,
20 in a request, as fast as they are answered; connections read server-sent events. A sample is the CPU time
of the node's process without that of intake, which is measured without connections, divided by the
deliveries. Deliveries/s are those of a second of CPU time, with intake. Filters have six predicates, all are
different, and each selects half of the events or, from 36 connections on, so few that an event is delivered
18 times.
"""

import asyncio
import os
import statistics
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.frame import Check, Options, Row, Table, figure, take_turns
from benchmarks.report import as_tables, cell
from benchmarks.tools.checkouts import Checkout, Process, running
from benchmarks.tools.cores import SERVER_CORE, on_load_core, pinning_notes, settle
from benchmarks.tools.long_clients import LongConnections, Workload, events_of, filters_of
from benchmarks.tools.raw_load import cpu_seconds

HERE = Path(__file__).parents[2]
BEFORE = "HPWSN_BENCH_BEFORE"
CONNECTIONS, QUICK = (1, 10, 100, 1000), (1, 10)
PER_EVENT = 18
"""Deliveries of one event, which the paper's random requests need at 1,000 requests."""
DELIVERIES = 40_000
FEWEST, MOST = 200, 8000
"""Events of one sample."""
KERNEL = 30.0
"""Seconds that the kernel of the index may take to be compiled or loaded."""
WANTED = 180_000.0
"""Deliveries/s at 10,000 events/s."""
CHEAPER, CHEAPER_ALONE = 10.0, 2.0
"""How many times cheaper a delivery must be than before, to many connections and to one."""
COST, HELD, NODES = "CPU µs per delivery", "deliveries/s on one core", "CPU µs per event"


@dataclass(frozen=True, slots=True)
class Sample:
    """CPU seconds of each node for one round of a workload, the seconds it took, and what it delivered."""

    cpu: tuple[float, ...]
    seconds: float
    events: int
    deliveries: int


class Nodes:
    """Running nodes of one checkout, the first of which takes all events."""

    def __init__(self, runner: asyncio.Runner, processes: Sequence[Process]) -> None:
        self._runner = runner
        self._processes = processes
        self._links: LongConnections | None = None

    def open(self, workload: Workload) -> None:
        """Open the workload's connections in place of those before, and deliver its events once."""
        self.close()
        self._workload = workload
        self._links = LongConnections([each.port for each in self._processes], self._processes[0].port)
        self._runner.run(self._links.open(workload))
        self.sample()
        for process in self._processes:
            settle(process.pid, KERNEL)

    def close(self) -> None:
        """Close all connections."""
        if self._links is not None:
            self._links.close()
            self._links = None

    def sample(self) -> Sample:
        """Publish all events, and check what the samples among the connections got."""
        assert self._links is not None
        before = [cpu_seconds(each.pid) for each in self._processes]
        began = time.perf_counter()
        self._runner.run(self._links.publish())
        took = time.perf_counter() - began
        cpu = [cpu_seconds(each.pid) - used for each, used in zip(self._processes, before, strict=True)]
        self._links.check_samples()
        return Sample(tuple(cpu), took, len(self._workload.events), self._workload.deliveries)


def workload_of(connections: int, filtered: bool, scale: float) -> Workload:
    """A workload with about as many deliveries as every other one."""
    share = min(0.5, PER_EVENT / max(connections, 1)) if filtered else 1.0
    each = max(1.0, connections * share)
    events = min(MOST, max(FEWEST, int(DELIVERIES / each)))
    filters = filters_of(connections, share) if filtered else [None] * connections
    return Workload(filters, events_of(max(40, int(events * scale)) // 20 * 20))


@contextmanager
def _nodes(checkouts: Sequence[Checkout], each: int = 1) -> Iterator[dict[str, Nodes]]:
    """So many nodes of each checkout, in one cluster where there are several."""
    with asyncio.Runner() as runner, tempfile.TemporaryDirectory(prefix="hpwsn-bench-") as data:
        stack = AsyncExitStack()
        found: dict[str, Nodes] = {}
        try:
            for checkout in checkouts:
                checkout.check()
                processes = runner.run(_start(stack, checkout, Path(data), each))
                found[checkout.name] = Nodes(runner, processes)
            yield found
        finally:
            for nodes in found.values():
                nodes.close()
            runner.run(stack.aclose())


async def _start(stack: AsyncExitStack, checkout: Checkout, data: Path, count: int) -> list[Process]:
    folder = data / checkout.name
    folder.mkdir()
    if count == 1:
        return [await stack.enter_async_context(running(checkout, folder, "serve"))]
    admin = await stack.enter_async_context(running(checkout, folder, "admin"))
    joined = ("--admin", f"http://127.0.0.1:{admin.port}", "--cluster", "one")
    found = []
    for number in range(count):
        place = folder / f"n{number}"
        place.mkdir()
        named = ("--name", f"n{number}")
        found.append(await stack.enter_async_context(running(checkout, place, "serve", *joined, *named)))
    return found


def run(options: Options) -> Table:
    """Checkouts take turns for each number of connections; then one node and two do."""
    checkouts = [Checkout("after", HERE)]
    if folder := os.environ.get(BEFORE):
        checkouts.insert(0, Checkout("before", Path(folder).resolve()))
    scale = 0.05 if options.quick else 1.0
    groups: list[tuple[Row, ...]] = []
    checks: list[Check] = []
    with on_load_core():
        with _nodes(checkouts) as nodes:
            intake = _intake(nodes, scale)
            for filtered in (False, True):
                for count in QUICK if options.quick else CONNECTIONS:
                    rows = _costs(nodes, count, filtered, intake, options, scale)
                    groups += rows
                    if len(checkouts) == 2:
                        checks.append(_cheaper(count, filtered, rows[0]))
            most = groups[-1][-1]
            checks.append(Check(f"{count:,} filters, on one core", most.samples, WANTED, "deliveries/s"))
        groups += _one_and_two(options, scale)
    notes = (*pinning_notes(), f"the nodes run on core {SERVER_CORE}, the load on another")
    return Table("long-connections", COST, tuple(groups), tuple(checks), notes, body=body_of(groups))


def body_of(groups: Sequence[Sequence[Row]]) -> str:
    """A table by number of connections, and one of nodes."""
    return as_tables(_cells(row for group in groups for row in group))


def _cells(rows: Iterator[Row]) -> Iterator[tuple[str, str, str, str]]:
    for row in rows:
        what, x, series = row.name.split(" · ")
        value = cell(row) if what == COST else figure(row.value)
        yield ("nodes" if what == NODES else "connections"), x, f"{what}, {series}", value


def _intake(nodes: dict[str, Nodes], scale: float) -> dict[str, float]:
    """CPU seconds of each checkout's node for an event that nobody reads."""
    found = {}
    for name, each in nodes.items():
        each.open(Workload([], events_of(int(MOST * max(scale, 0.2)) // 20 * 20)))
        found[name] = statistics.median(sample.cpu[0] / sample.events for sample in _thrice(each))
    return found


def _thrice(nodes: Nodes) -> Iterator[Sample]:
    return (nodes.sample() for _ in range(3))


def _costs(
    nodes: dict[str, Nodes],
    count: int,
    filtered: bool,
    intake: dict[str, float],
    options: Options,
    scale: float,
) -> list[tuple[Row, ...]]:
    kind = "six predicates each" if filtered else "no filter"
    held: dict[str, list[float]] = {name: [] for name in nodes}

    def sample(name: str) -> float:
        got = nodes[name].sample()
        held[name].append(got.deliveries / got.cpu[0])
        return max(0.001, 1e6 * (got.cpu[0] - got.events * intake[name]) / got.deliveries)

    for name, each in nodes.items():
        # Without its filter index, the older node needs minutes for as many events.
        slow = name == "before" and count * (1 + filtered) >= 1000
        each.open(workload_of(count, filtered, scale / 20 if slow else scale))
    calls = {name: lambda name=name: sample(name) for name in nodes}
    taken = take_turns(calls, options.rounds, f"{count:,} connections, {kind}")
    x = f"{count:,}"
    costs = tuple(Row.of(f"{COST} · {x} · {_named(kind, name)}", taken[name]) for name in nodes)
    rates = tuple(Row.of(f"{HELD} · {x} · {_named(kind, name)}", held[name]) for name in nodes)
    return [costs, rates]


def _named(kind: str, checkout: str) -> str:
    return kind if checkout == "after" else f"{kind}, before"


def _cheaper(count: int, filtered: bool, rows: tuple[Row, ...]) -> Check:
    before, after = rows
    kind = "with filters" if filtered else "without"
    target = CHEAPER if count > 1 else CHEAPER_ALONE
    return Check.ratio(f"{count:,} connections {kind}, before against after", before, after, target)


def _one_and_two(options: Options, scale: float) -> list[tuple[Row, ...]]:
    """CPU of each node for an event: all connections at one node, or half of them at each of two."""
    here = [Checkout("after", HERE)]
    count = options.sized(CONNECTIONS[-1], QUICK[-1])
    groups = []
    for filtered in (False, True):
        workload = workload_of(count, filtered, scale)
        found: dict[str, list[Sample]] = {}
        with _nodes(here) as one, _nodes(here, 2) as two:
            candidates = {"one node": one["after"], "two nodes": two["after"]}
            for name, nodes in candidates.items():
                nodes.open(workload)
                found[name] = []
            for _ in range(options.rounds):
                for name, nodes in candidates.items():
                    found[name].append(nodes.sample())
        kind = "six predicates each" if filtered else "no filter"
        groups.append(tuple(_per_event(kind, found)))
    return groups


def _per_event(kind: str, found: dict[str, list[Sample]]) -> Iterator[Row]:
    deliveries = found["one node"][0].deliveries / found["one node"][0].events
    places = ("one node", 0, "all at one node"), ("two nodes", 0, "the first"), ("two nodes", 1, "the second")
    for name, place, label in places:
        samples = [1e6 * sample.cpu[place] / sample.events for sample in found[name]]
        yield Row.of(f"{NODES} · {kind}, {deliveries:,.0f} deliveries an event · {label}", samples)
