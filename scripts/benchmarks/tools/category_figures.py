"""Figures 4 to 8 of the paper on sensor virtualisation: category matching against its rivals.

10,000 to 50,000 subscriptions of 3 to 11 ranges, of which an event matches 0.3 %. A range lies around a value
that is drawn, like the event's own, from 1,000 values by the distribution that the figure names; its width is
one of five, scaled so that the ratio of matches comes out. The paper does not publish its data.
"""

import bisect
import itertools
import math
import random
from collections.abc import Callable
from dataclasses import dataclass

from benchmarks.frame import Options, Row, progress
from benchmarks.tools.contest import contest, rows_of
from hpwsn.matching.engine.default_engine import DefaultEngine, fast_kernel
from hpwsn.matching.language.predicates import Disjunction, Event, Operator, Predicate
from hpwsn.matching.language.reference_engine import Engine, NaiveEngine
from hpwsn.matching.papers.categories import CategoryEngine
from hpwsn.matching.papers.counting import ForwardingEngine
from hpwsn.matching.papers.sequential import SequentialEngine, SubOrderEngine

VALUES = 1000
WIDTHS = (0.5, 0.75, 1.0, 1.25, 1.5)
RATIO = 0.003
LEAST, MOST = 3, 7

Draw = Callable[[random.Random], float]


def _weighted(weights: list[float]) -> Draw:
    sums = list(itertools.accumulate(weights))
    return lambda chance: float(bisect.bisect(sums, chance.random() * sums[-1]))


DISTRIBUTIONS: dict[str, Draw] = {
    "uniform": _weighted([1.0] * VALUES),
    "Zipf": _weighted([1 / rank for rank in range(1, VALUES + 1)]),
    "exponential": _weighted([math.exp(-2 * value / VALUES) for value in range(VALUES)]),
}


@dataclass(frozen=True)
class Load:
    """How subscriptions are made."""

    draw: Draw
    most: int = MOST
    ranges: int = 1
    widths: tuple[float, ...] = WIDTHS
    grid: int = 1

    def subscription(self, chance: random.Random, width: float) -> Disjunction:
        """Between the least and the most predicates; each further range is a conjunction of its own."""
        names = sorted(chance.sample(range(self.most), chance.randint(LEAST, self.most)))
        rest = [self._band(chance, name, width) for name in names[1:]]
        return tuple((self._band(chance, names[0], width), *rest) for _ in range(self.ranges))

    def _band(self, chance: random.Random, name: int, width: float) -> Predicate:
        middle = self.draw(chance) // self.grid * self.grid
        half = width * chance.choice(self.widths)
        return Predicate(f"p{name:02}", Operator.BETWEEN, (middle - half, middle + half))

    def event(self, chance: random.Random) -> Event:
        """A value for every attribute."""
        return {f"p{name:02}": self.draw(chance) for name in range(self.most)}


def category_figures(options: Options) -> list[tuple[Row, ...]]:
    """Subscriptions by distribution, predicates, several ranges, and ranges that overlap."""
    counts = (1_000,) if options.quick else (10_000, 30_000, 50_000)
    uniform = DISTRIBUTIONS["uniform"]
    loads = {f"{n} {name}": Load(draw) for n, (name, draw) in enumerate(DISTRIBUTIONS.items(), 4)}
    loads["7 two ranges"] = Load(uniform, ranges=2)
    loads["8 overlapping"] = Load(uniform, widths=(1.0,), grid=10)
    groups = [
        _compared(figure, f"subscriptions {count}", count, load, options)
        for figure, load in loads.items()
        for count in (counts if figure.startswith("4") else counts[::2])
    ]
    most = (5,) if options.quick else (5, 7, 9, 11)
    groups += [_compared("predicates", f"at most {m}", counts[0], Load(uniform, m), options) for m in most]
    return groups


def _engines() -> dict[str, Engine]:
    return {
        "naive": NaiveEngine(),
        "sequential": SequentialEngine(),
        "sub-order": SubOrderEngine(),
        "forwarding": ForwardingEngine(),
        "CMA": CategoryEngine(),
        "HPwsn": DefaultEngine(fast_kernel()),
    }


def _compared(figure: str, x: str, count: int, load: Load, options: Options) -> tuple[Row, ...]:
    progress(f"figure {figure}, {x}")
    chance = random.Random(count)
    width = _width_for(load)
    subscriptions = [load.subscription(chance, width) for _ in range(count)]
    events = [load.event(chance) for _ in range(5)]
    fewer = Options(options.seconds, min(options.rounds, 2), options.quick)
    return rows_of(f"categories {figure}, events/s", x, contest(_engines(), subscriptions, events, fewer))


def _width_for(load: Load) -> float:
    """The width at which the ratio comes out, found by halving on a sample of middles and values."""
    chance = random.Random(3)
    pairs = [(load.draw(chance), load.draw(chance), chance.choice(load.widths)) for _ in range(4_000)]
    distances = sorted(abs(value - middle) / width for value, middle, width in pairs)
    low, high = 0.0, 1.0
    for _ in range(30):
        share = (low + high) / 2
        counts = range(LEAST, load.most + 1)
        ratio = load.ranges * sum(share**count for count in counts) / len(counts)
        low, high = (low, share) if ratio > RATIO else (share, high)
    return distances[int(low * len(distances))]
