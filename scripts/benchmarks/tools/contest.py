"""Matching engines side by side: processor time for each event, and predicate evaluations.

Processor time of this process, so that what else runs on the machine does not count; engines take turns.
"""

import gc
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from benchmarks.frame import Options, Row
from hpwsn.matching.language.predicates import Disjunction, Event
from hpwsn.matching.language.reference_engine import Engine


@dataclass(frozen=True, slots=True)
class Measured:
    """What an engine took: events in a second of processor time, and evaluations for an event."""

    rates: tuple[float, ...]
    evaluations: float
    matched: float


def contest(
    engines: Mapping[str, Engine], requests: Sequence[Disjunction], events: Sequence[Event], options: Options
) -> dict[str, Measured]:
    """Fill the engines with the requests and let them match the events in turn; all must find as many."""
    for engine in filled(engines, requests).values():
        # Indexes are made and orders learned before anything is measured.
        engine.match_batch(events)
    counted = {name: counts(engine, events) for name, engine in engines.items()}
    if len({matched for _, matched in counted.values()}) != 1:
        raise ValueError(f"engines disagree on (evaluations, matches): {counted}")
    rates: dict[str, list[float]] = {name: [] for name in engines}
    for _ in range(options.rounds):
        for name, engine in engines.items():
            rates[name].append(rate(engine, events, options.seconds / 20))
    return {name: Measured(tuple(rates[name]), *counted[name]) for name in engines}


def filled(engines: Mapping[str, Engine], requests: Sequence[Disjunction]) -> Mapping[str, Engine]:
    """The engines after all requests were added."""
    # The collector would walk over all subscriptions again and again while engines are filled.
    gc.disable()
    for engine in engines.values():
        for number, request in enumerate(requests):
            engine.add(number, request)
    gc.enable()
    return engines


def counts(engine: Engine, events: Sequence[Event]) -> tuple[float, float]:
    """Evaluations and matches for an event."""
    before = engine.evaluations
    matched = sum(map(len, engine.match_batch(events)))
    return (engine.evaluations - before) / len(events), matched / len(events)


def evaluations(engine: Engine, events: Sequence[Event]) -> float:
    """How many predicates it evaluates for an event."""
    engine.match_batch(events)
    return counts(engine, events)[0]


def rate(engine: Engine, events: Sequence[Event], seconds: float) -> float:
    """Events in a second of processor time, over at least so many seconds of it."""
    gc.disable()
    count, start = 0, time.process_time()
    while not count or time.process_time() - start < seconds:
        engine.match_batch(events)
        count += len(events)
    taken = time.process_time() - start
    gc.enable()
    return count / max(taken, 1e-9)


def rows_of(figure: str, x: str, measured: Mapping[str, Measured]) -> tuple[Row, ...]:
    """A row for each engine; the note says what it evaluated."""
    return tuple(
        Row.of(f"{figure} · {x} · {name}", one.rates, f"{one.evaluations:,.0f} evaluations per event")
        for name, one in measured.items()
    )
