"""Scale: a simulation of up to 1,000 nodes in 200 clusters: convergence time, messages and state per node.

One process with a simulated clock. The routers are the node's own code; links and the admin node are
replaced. The simulated latency is 0.5 ms within a cluster, and 20 ms between clusters and to the admin node,
each times a random factor from 0.5 to 1.5. 1 % of the datagrams are lost.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from random import Random
from typing import Any

from benchmarks.frame import Check, Options, Row, Table, figure, progress
from benchmarks.report import as_tables
from benchmarks.tools.curves import as_curves
from benchmarks.tools.simulation import Conditions, Simulation
from hpwsn_client.wsn.topics.topic_expressions import Topic

Shape = tuple[int, int]
"""The number of clusters, and of nodes in each."""

SHAPES: tuple[Shape, ...] = ((5, 20), (10, 20), (25, 20), (50, 20), (10, 100), (200, 5))
QUICK: tuple[Shape, ...] = ((2, 10), (4, 10))
SUBSCRIPTIONS, BRANCHES, LEAVES, WHOLE = 5, 100, 25, 0.01
NOTICED, IDLE = 0.5, 60.0

NOTES = (
    f"each node has {SUBSCRIPTIONS} subscriptions, drawn from {BRANCHES * LEAVES} topics in {BRANCHES}"
    " branches; one in a hundred is to a whole branch",
    "start: all nodes start at once, without state",
    f"failover: a representative dies, until traffic resumes; includes {NOTICED} s of detection",
    "state: all data of a router, including the topology",
)


@dataclass(slots=True)
class Figures:
    """The results of one shape."""

    clusters: int
    nodes: int
    seconds: float
    rows: dict[str, float]

    @property
    def name(self) -> str:
        """Nodes and clusters, for a column's title."""
        return f"{self.nodes:,}/{self.clusters}"


def run(options: Options) -> Table:
    """All shapes; the plot has those with clusters of the first one's size."""
    found = []
    for clusters, size in QUICK if options.quick else SHAPES:
        progress(f"{clusters * size:,} nodes in {clusters} clusters")
        found.append(measure(clusters, size))
    groups = tuple(
        tuple(Row(f"{what} · {each.name}", each.rows[what]) for each in found) for what in found[0].rows
    )
    rows = [row for group in groups for row in group]
    return Table(
        "scale", "mixed units", groups, _checks(found), NOTES, drawing=_drawing(found), body=body_of(rows)
    )


def body_of(rows: Iterable[Row]) -> str:
    """A column for each shape, without the numbers of patterns, which are in the JSON."""
    return as_tables(
        ("nodes/clusters", what, shape, figure(row.value))
        for row in rows
        for what, _, shape in (row.name.partition(" · "),)
        if not what.endswith("patterns")
    )


def _checks(found: list[Figures]) -> tuple[Check, ...]:
    dead = max(each.rows["failover: traffic resumed, s"] for each in found)
    start = max(each.rows["start: converged, s"] for each in found)
    return (
        Check("longest failover", (dead,), 4.0, "s", at_most=True),
        Check("longest start", (start,), 10.0, "s", at_most=True),
    )


def _drawing(found: list[Figures]) -> str:
    size = found[0].nodes // found[0].clusters
    line = [each for each in found if each.nodes // each.clusters == size]
    shown = {
        "messages per node at the start": "start: messages per node",
        "messages for one subscription": "new subscription: messages",
        "KiB of state, ordinary node": "state: ordinary node, KiB",
        "KiB of state, representative": "state: representative, KiB",
    }
    series = {name: [(float(each.nodes), each.rows[what]) for each in line] for name, what in shown.items()}
    return as_curves(f"Clusters of {size}", series, "messages or KiB", "nodes")


def measure(clusters: int, size: int, seed: int = 1) -> Figures:
    """Drive one shape through its life."""
    began, rows = time.perf_counter(), {}
    simulation = Simulation(seed, Conditions(loss=0.01))
    nodes = clusters * size
    simulation.start((f"c{c}n{n}", f"c{c}") for c in range(clusters) for n in range(size))
    _subscribe(simulation, Random(seed))
    simulation.run(8.0)
    sent, size_of_it = _sent(simulation)
    rows["start: converged, s"] = simulation.last_interest
    rows["start: messages per node"] = sent / nodes
    rows["start: KiB sent per node"] = size_of_it / nodes / 1024
    check_converged(simulation, Random(seed))
    rows |= _one_subscription(simulation)
    rows |= _idle(simulation, nodes)
    rows |= _representative_dies(simulation)
    rows |= _state(simulation)
    return Figures(clusters, nodes, time.perf_counter() - began, rows)


def _subscribe(simulation: Simulation, random: Random) -> None:
    for name in simulation.nodes:
        for _ in range(SUBSCRIPTIONS):
            branch = f"B{random.randrange(BRANCHES)}"
            whole = random.random() < WHOLE
            simulation.subscribe(name, branch if whole else f"{branch}:T{random.randrange(LEAVES)}")


def _sent(simulation: Simulation) -> tuple[int, int]:
    return simulation.traffic.messages.total(), simulation.traffic.bytes.total()


def _interest_messages(simulation: Simulation) -> int:
    """The messages with interests and requests for them; periodic comparisons of versions do not count."""
    return simulation.traffic.messages["Interest"] + simulation.traffic.messages["InterestRequest"]


def check_converged(simulation: Simulation, random: Random) -> None:
    """What nodes believe of some topics is what is so."""
    for _ in range(10):
        topic = Topic.parse(f"B{random.randrange(BRANCHES)}:T{random.randrange(LEAVES)}")
        wanting = simulation.wanting(topic)
        clusters = {simulation.nodes[name].cluster for name in wanting}
        for node in simulation.running():
            route = node.router.route(topic)
            near = {name for name in wanting if simulation.nodes[name].cluster == node.cluster}
            far = bool(route.cross if node.router.view.is_representative else route.up)
            if set(route.nodes) != near - {node.name} or far != bool(clusters - {node.cluster}):
                raise AssertionError(f"{node.name} has the wrong route for {topic}: {route}")


def _one_subscription(simulation: Simulation) -> dict[str, float]:
    began, (before, _) = simulation.now, _sent(simulation)
    name = next(name for name in reversed(simulation.nodes))
    simulation.subscribe(name, "New:T")
    simulation.run(1.0)
    topic = Topic.parse("New:T")
    unaware = [n.name for n in simulation.running() if n.name != name and not n.router.route(topic).wanted]
    if unaware:
        raise AssertionError(f"{unaware[0]} has not heard of a subscription after a second")
    return {
        "new subscription: known everywhere, ms": 1000 * (simulation.last_interest - began),
        "new subscription: messages": float(_sent(simulation)[0] - before),
    }


def _idle(simulation: Simulation, nodes: int) -> dict[str, float]:
    before = simulation.traffic.bytes.total()
    simulation.run(IDLE)
    spent = simulation.traffic.bytes.total() - before
    return {"idle: bytes/s per node": spent / IDLE / nodes}


def _representative_dies(simulation: Simulation) -> dict[str, float]:
    cluster = simulation.topology().clusters[0]
    publisher, topic = cluster.nodes[-1].name, Topic.parse("New:T")
    far = simulation.nodes[next(name for name in reversed(simulation.nodes))]
    began, before = simulation.now, _interest_messages(simulation)
    assert cluster.representative is not None
    simulation.kill(cluster.representative, noticed_after=NOTICED)
    while simulation.now < began + 10:
        publication = simulation.publish(publisher, topic, reliable=False)
        simulation.run(0.1)
        if far.arrived[publication]:
            break
    gap = simulation.now - began
    simulation.run(3.0)
    return {
        "failover: traffic resumed, s": gap,
        "failover: messages": float(_interest_messages(simulation) - before),
    }


def _state(simulation: Simulation) -> dict[str, float]:
    nodes = list(simulation.running())
    leading = next(node for node in nodes if node.router.view.is_representative)
    ordinary = next(node for node in nodes if not node.router.view.is_representative)
    return {
        "state: ordinary node, patterns": float(ordinary.router.figures()["patterns"]),
        "state: representative, patterns": float(leading.router.figures()["patterns"]),
        "state: ordinary node, KiB": held(ordinary.router) / 1024,
        "state: representative, KiB": held(leading.router) / 1024,
    }


def held(thing: object) -> int:
    """The bytes of an object and of all that it refers to, but for classes and functions."""
    seen: set[int] = set()
    waiting, total = [thing], 0
    while waiting:
        one = waiting.pop()
        if id(one) in seen or isinstance(one, type) or callable(one):
            continue
        seen.add(id(one))
        total += sys.getsizeof(one)
        waiting.extend(_parts(one))
    return total


def _parts(one: Any) -> Iterator[Any]:
    if isinstance(one, dict):
        yield from one.keys()
        yield from one.values()
    elif isinstance(one, list | tuple | set | frozenset):
        yield from one
    elif not isinstance(one, str | bytes | int | float):
        yield from getattr(one, "__dict__", {}).values()
        for each in type(one).__mro__:
            yield from (getattr(one, slot, None) for slot in getattr(each, "__slots__", ()) or ())
