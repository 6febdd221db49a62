"""Figures 4 to 8 of the paper on sensor virtualisation: category matching against its rivals.

10,000 to 50,000 subscriptions of 3 to 11 ranges, of which an event matches 0.3 %. A range lies around a value
that is drawn, like the event's own, from 1,000 values by the distribution that the figure names; its width is
one of five, scaled so that the ratio of matches comes out. The paper does not publish its data.

Evaluations are those of 1,000 events, and of 5,000 in figures 4 and 7 at 10,000 subscriptions, as in the
paper. Rates are measured with 20 of these events: an engine in Python takes two minutes for 1,000.
"""

import bisect
import itertools
import math
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from benchmarks.frame import Options, Row, progress
from benchmarks.tools.contest import counts, filled, rate
from benchmarks.tools.evaluation_counts import Workload
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
EVENTS, MANY_EVENTS = 1_000, 5_000
FEWEST = 10_000
"""The subscriptions with which the paper matches 5,000 events."""
WARM_UP, TIMED = 20, 20

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


UNIFORM = DISTRIBUTIONS["uniform"]
LOADS: dict[str, Load] = {
    **{f"{n} {name}": Load(draw) for n, (name, draw) in enumerate(DISTRIBUTIONS.items(), 4)},
    "7 two ranges": Load(UNIFORM, ranges=2),
    "8 overlapping": Load(UNIFORM, widths=(1.0,), grid=10),
}
"""The figures by number, each with its subscriptions."""


def category_figures(options: Options) -> list[tuple[Row, ...]]:
    """Subscriptions by distribution, predicates, several ranges, and ranges that overlap."""
    counts = (1_000,) if options.quick else (10_000, 30_000, 50_000)
    groups: list[tuple[Row, ...]] = []
    for figure, load in LOADS.items():
        for count in counts if figure.startswith("4") else counts[::2]:
            groups += _compared(figure, f"subscriptions {count}", count, load, options)
    for most in (5,) if options.quick else (5, 7, 9, 11):
        groups += _compared("predicates", f"at most {most}", counts[0], Load(UNIFORM, most), options)
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


def _compared(figure: str, x: str, count: int, load: Load, options: Options) -> list[tuple[Row, ...]]:
    """The rates; in figures 4 and 7, at the fewest subscriptions, also what 5,000 events cost."""
    progress(f"figure {figure}, {x}")
    chance = random.Random(count)
    width = width_for(load)
    subscriptions = [load.subscription(chance, width) for _ in range(count)]
    events = [load.event(chance) for _ in range(options.sized(MANY_EVENTS, 100))]
    engines = filled(_engines(), subscriptions)
    workload = Workload(subscriptions, events)
    rates = _rates(engines, events, options)
    evaluated = _evaluations(engines, workload, events[: options.sized(EVENTS, 50)])
    groups = [_rows(f"categories {figure}, events/s", x, rates, evaluated)]
    if figure[0] in "47" and count <= FEWEST:
        many = _evaluations(engines, workload, events)
        groups += _of_many_events(figure, x, count, rates, many, len(events))
    return groups


def _evaluations(
    engines: Mapping[str, Engine], workload: Workload, events: Sequence[Event]
) -> dict[str, float]:
    """Evaluations per event; a compiled loop counts those of the engines that would take minutes."""
    number = len(events)
    naive, (categories, _) = workload.naive(number), workload.categories(number)
    evaluated, matched = counts(engines["HPwsn"], events)
    if round(matched * number) != naive.matches:
        raise ValueError(f"HPwsn and naive disagree on the matches of {number} events")
    return {
        "naive": naive.evaluations / number,
        "sequential": workload.sequential(number).evaluations / number,
        "sub-order": workload.sub_order(number).evaluations / number,
        # The same for every event, since each has all attributes.
        "forwarding": counts(engines["forwarding"], events[:1])[0],
        "CMA": categories.evaluations / number,
        "HPwsn": evaluated,
    }


def _rates(
    engines: Mapping[str, Engine], events: Sequence[Event], options: Options
) -> dict[str, list[float]]:
    """Events in a second of CPU time: the first events prepare an engine, the next ones are timed."""
    timed = events[WARM_UP : WARM_UP + TIMED]
    for engine in engines.values():
        engine.match_batch(events[:WARM_UP])
    rates: dict[str, list[float]] = {name: [] for name in engines}
    for _ in range(min(options.rounds, 2)):
        for name, engine in engines.items():
            rates[name].append(rate(engine, timed, options.seconds / 20))
    return rates


def _rows(
    title: str, x: str, rates: Mapping[str, Sequence[float]], evaluated: Mapping[str, float]
) -> tuple[Row, ...]:
    return tuple(
        Row.of(f"{title} · {x} · {name}", taken, f"{evaluated[name]:,.0f} evaluations per event")
        for name, taken in rates.items()
    )


def _of_many_events(
    figure: str,
    x: str,
    count: int,
    rates: Mapping[str, Sequence[float]],
    evaluated: Mapping[str, float],
    events: int,
) -> Iterator[tuple[Row, ...]]:
    """The paper's two measures: evaluations, and the time for one event and one subscription."""
    rivals = [name for name in rates if name != "HPwsn"]
    yield tuple(
        Row(f"categories {figure}, evaluations of each of {events:,} events · {x} · {name}", evaluated[name])
        for name in rivals
    )
    yield tuple(
        Row.of(
            f"categories {figure}, µs per event and subscription · {x} · {name}",
            [1e6 / one / count for one in rates[name]],
        )
        for name in rivals
    )


def width_for(load: Load) -> float:
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
