"""Figure 9 of the paper on stream data services: the matching tree against its rivals, and its parallel form.

Requests are made of a GPS stream's attributes within the constraints of the service, as the paper's are; the
paper's own records are not public. Parallel rates are those of the slowest block, as with a core for each,
and those of real processes by the clock. Blocks by visits are made with a sample of events; all blocks are
measured with other events.

The bound of the paper's section 4.2.3 is measured in its own model: equalities on a random half of seven
attributes with ten values each.
"""

import random
import time
from collections.abc import Callable, Sequence

from benchmarks.frame import Options, Row, progress
from benchmarks.tools.contest import contest, rate, rows_of
from benchmarks.tools.matching_processes import ProcessWorkers
from hpwsn.matching.engine.default_engine import DefaultEngine, fast_kernel
from hpwsn.matching.language.predicates import Conjunction, Disjunction, Event, Operator, Predicate
from hpwsn.matching.language.reference_engine import Engine, NaiveEngine
from hpwsn.matching.papers.counting import CountingEngine, PreIndexEngine
from hpwsn.matching.papers.parallel import ParallelTree, measured_visits
from hpwsn.matching.papers.partition import even_partition
from hpwsn.matching.papers.trees import ImprovedTree, NormalTree, visit_bound

SIGNS = tuple(Operator(sign) for sign in ("<", "<=", ">", ">=", "=", "!="))
ATTRIBUTES: dict[str, Callable[[random.Random], float | str]] = {
    "direction": lambda chance: float(chance.randrange(360)),
    "latitude": lambda chance: round(chance.uniform(39.26, 41.03), 2),
    "longitude": lambda chance: round(chance.uniform(115.25, 117.30), 2),
    "satelliteNum": lambda chance: float(chance.randint(3, 12)),
    "speed": lambda chance: float(chance.randint(0, 120)),
    "time": lambda chance: float(chance.randrange(86_400)),
    "vid": lambda chance: f"V{chance.randrange(500)}",
}
EVENTS = 50
SAMPLE = 200
"""Events with which visits are measured, none of which is measured later."""
BOUND_ATTRIBUTES, BOUND_VALUES = 7, 10


def stream_figures(options: Options) -> list[tuple[Row, ...]]:
    """All three parts of the figure, and the bound."""
    predicates = (2, 6) if options.quick else (2, 4, 6, 8, 10, 12)
    requests = (100, 200) if options.quick else (100, 200, 400, 600, 800, 1000)
    groups = [_compared("9a", f"predicates {n}", 100, n, options) for n in predicates]
    groups += [_compared("9b", f"requests {n}", n, 6, options) for n in requests]
    return [*groups, *_parallel(options), *_bounds(options)]


def gps_request(chance: random.Random, count: int) -> Disjunction:
    """A conjunction of so many predicates, at most two on an attribute."""
    names = chance.sample([*ATTRIBUTES, *ATTRIBUTES], count)
    return (tuple(_predicate(chance, name) for name in sorted(names)),)


def _predicate(chance: random.Random, name: str) -> Predicate:
    operators = SIGNS[4:] if name == "vid" else SIGNS
    return Predicate(name, chance.choice(operators), (ATTRIBUTES[name](chance),))


def gps_event(chance: random.Random) -> Event:
    """A record of one vehicle."""
    return {name: value(chance) for name, value in ATTRIBUTES.items()}


def _engines() -> dict[str, Engine]:
    return {
        "BruteForce": NaiveEngine(),
        "Counting": CountingEngine(),
        "PreIndex": PreIndexEngine(),
        "NormalTree": NormalTree(),
        "ImprovedTree": ImprovedTree(),
        "HPwsn": DefaultEngine(fast_kernel()),
    }


def _compared(figure: str, x: str, requests: int, predicates: int, options: Options) -> tuple[Row, ...]:
    progress(f"figure {figure}, {x}")
    chance = random.Random(requests * 100 + predicates)
    made = [gps_request(chance, predicates) for _ in range(requests)]
    events = [gps_event(chance) for _ in range(EVENTS)]
    return rows_of(f"streams {figure}, events/s", x, contest(_engines(), made, events, options))


def _parallel(options: Options) -> list[tuple[Row, ...]]:
    chance = random.Random(9)
    requests = [gps_request(chance, 6) for _ in range(options.sized(1000, 200))]
    sample = [gps_event(chance) for _ in range(SAMPLE)]
    events = [gps_event(chance) for _ in range(EVENTS)]
    groups = []
    for k in (1, 2) if options.quick else (1, 2, 4, 8):
        progress(f"figure 9c, {k} workers")
        trees = {
            "by subtrees": ParallelTree(k, partition=even_partition),
            "by predicates": ParallelTree(k),
            "by visits": ParallelTree(k, costs=measured_visits(sample)),
        }
        blocks = {name: _blocks(tree, requests) for name, tree in trees.items()}
        rows = [
            Row.of(f"streams 9c, events/s · workers {k} · {name}", _slowest(each, events, options))
            for name, each in blocks.items()
        ]
        rows.append(
            Row.of(f"streams 9c, events/s · workers {k} · processes", _by_the_clock(k, requests, events))
        )
        groups.append(tuple(rows))
        groups.append(
            tuple(
                Row(
                    f"streams 9c, visits of the busiest block · workers {k} · {name}",
                    _most_visits(each, events),
                )
                for name, each in blocks.items()
            )
        )
    return groups


def _by_the_clock(k: int, requests: Sequence[Disjunction], events: Sequence[Event]) -> list[float]:
    """The rate of as many real processes, which share the cores of this machine with all else on it."""
    with ProcessWorkers(k) as workers:
        tree = ParallelTree(k, workers)
        for number, request in enumerate(requests):
            tree.add(number, request)
        tree.match_batch(events)
        return [_once(tree, events) for _ in range(3)]


def _once(tree: ParallelTree, events: Sequence[Event]) -> float:
    start = time.perf_counter()
    tree.match_batch(events)
    return len(events) / (time.perf_counter() - start)


def _blocks(tree: ParallelTree, requests: Sequence[Disjunction]) -> list[ImprovedTree]:
    """A tree for each block of the requests."""
    for number, request in enumerate(requests):
        tree.add(number, request)
    blocks = []
    for block in tree.blocks():
        blocks.append(ImprovedTree())
        for leaf in (leaf for subtree in block for leaf in subtree.all_leaves()):
            blocks[-1].add(leaf.id, (leaf.conjunction,))
    return blocks


def _slowest(blocks: Sequence[ImprovedTree], events: Sequence[Event], options: Options) -> list[float]:
    """The rate of the slowest block, in each round."""
    return [min(rate(block, events, options.seconds / 20) for block in blocks) for _ in range(options.rounds)]


def _most_visits(blocks: Sequence[ImprovedTree], events: Sequence[Event]) -> float:
    """The nodes that an event visits in the block where it visits most."""
    return max(_visits(block, events)[0] for block in blocks)


def _visits(tree: ImprovedTree, events: Sequence[Event]) -> tuple[float, float]:
    """The nodes that an event asks, and those that it reaches."""
    visits, reached = tree.visits, tree.reached
    tree.match_batch(events)
    return (tree.visits - visits) / len(events), (tree.reached - reached) / len(events)


def _bounds(options: Options) -> list[tuple[Row, ...]]:
    groups = []
    for count in (100,) if options.quick else (100, 1_000, 10_000):
        chance, tree = random.Random(count), ImprovedTree()
        for number in range(count):
            tree.add(number, (_equalities(chance),))
        events: list[Event] = [
            {f"a{name}": float(chance.randrange(BOUND_VALUES)) for name in range(BOUND_ATTRIBUTES)}
            for _ in range(options.sized(1000, 100))
        ]
        asked, reached = _visits(tree, events)
        bound = visit_bound(count, BOUND_ATTRIBUTES, BOUND_VALUES)
        figures = {"reached": reached, "asked": asked, "bound": bound}
        groups.append(
            tuple(Row(f"streams bound, nodes · requests {count} · {name}", n) for name, n in figures.items())
        )
    return groups


def _equalities(chance: random.Random) -> Conjunction:
    names = [name for name in range(BOUND_ATTRIBUTES) if chance.random() < 0.5] or [0]
    return tuple(
        Predicate(f"a{name}", Operator.EQ, (float(chance.randrange(BOUND_VALUES)),)) for name in names
    )
