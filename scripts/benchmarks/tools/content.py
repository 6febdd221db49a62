"""Subscriptions and events for the matching benchmarks, each in the engine's form and in the peers'.

Twenty attributes with values between 0 and 1, as the papers have them. Subscriptions are drawn from a
pool of ready predicates, so that a million of them fit into memory for every candidate.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

from hpwsn.matching.language.predicates import Disjunction, Event, Operator, Predicate

ATTRIBUTES = tuple(f"a{number:02}" for number in range(20))
POOL = 1000
"""Predicates of each attribute to draw from."""

PASSING = {"0 %": 0.2, "0.1 %": 0.501, "3 %": 0.704, "36 %": 0.903}
"""The share of values that each of ten ranges lets through, for the share of subscriptions that match."""

VALUES = 1000
"""Values of an attribute that equalities ask for."""

CITIES, SPREAD, WORDS, SIDE = 200, 0.5, 2000, (0.2, 2.0)
"""Places where events happen, how far around them (degrees), their words, and the sides of rectangles."""


@dataclass(frozen=True, slots=True)
class Workload:
    """Requests in the engine's form, the same as plain tuples, and events."""

    requests: list[Disjunction]
    plain: list[tuple[tuple[object, ...], ...]]
    events: list[Event]


def ranges(count: int, passing: float, events: int = 200, each: int = 10, seed: int = 1) -> Workload:
    """Some ranges of twenty attributes, each passed by the same share of values."""
    chance = random.Random(seed)
    pool = {name: [_range(name, chance, passing) for _ in range(POOL)] for name in ATTRIBUTES}
    chosen = [[chance.choice(pool[name]) for name in _some(chance, each)] for _ in range(count)]
    happened: list[Event] = [{name: chance.random() for name in ATTRIBUTES} for _ in range(events)]
    return Workload(_requests(chosen), [tuple(plain for _, plain in one) for one in chosen], happened)


def _range(name: str, chance: random.Random, passing: float) -> tuple[Predicate, tuple[object, ...]]:
    low = chance.random() * (1 - passing)
    plain = (name, low, low + passing)
    return Predicate(name, Operator.BETWEEN, plain[1:]), plain


def equalities(count: int, events: int = 200, each: int = 5, texts: bool = False, seed: int = 2) -> Workload:
    """Some equalities of twenty attributes; every event has a subscription that it matches."""
    chance = random.Random(seed)
    pool = {name: [_equality(name, value, texts) for value in range(VALUES)] for name in ATTRIBUTES}
    chosen = [[chance.choice(pool[name]) for name in _some(chance, each)] for _ in range(count)]
    plain = [tuple(plain for _, plain in one) for one in chosen]
    happened: list[Event] = []
    for _ in range(events):
        event = {name: pool[name][chance.randrange(VALUES)][1][1] for name in ATTRIBUTES}
        happened.append(event | dict(chance.choice(plain)))  # type: ignore[arg-type]
    return Workload(_requests(chosen), plain, happened)


def _equality(name: str, number: int, texts: bool) -> tuple[Predicate, tuple[object, ...]]:
    value = f"value {number}" if texts else float(number)
    return Predicate(name, Operator.EQ, (value,)), (name, value)


def places(count: int, events: int = 200, seed: int = 3) -> Workload:
    """Rectangles and words, made from events as in the spatio-textual paper.

    Events are points of interest around cities, a few large and many small, with words of the same kind. A
    subscription is a rectangle around such a point with some of its words. Plain: the bounds, then the words.
    """
    chance = random.Random(seed)
    cities = [(chance.uniform(73, 135), chance.uniform(18, 54)) for _ in range(CITIES)]
    requests: list[Disjunction] = []
    plain: list[tuple[tuple[object, ...], ...]] = []
    for _ in range(count):
        x, y, words = _point_of_interest(chance, cities)
        wanted = chance.sample(words, chance.randint(1, min(3, len(words))))
        width, height = chance.uniform(*SIDE) / 2, chance.uniform(*SIDE) / 2
        plain.append(((x - width, y - height, x + width, y + height), tuple(wanted)))
        requests.append(((
            Predicate("longitude", Operator.BETWEEN, (x - width, x + width)),
            Predicate("latitude", Operator.BETWEEN, (y - height, y + height)),
            Predicate("keywords", Operator.HAS, tuple(wanted)),
        ),))  # fmt: skip
    happened: list[Event] = []
    for _ in range(events):
        x, y, words = _point_of_interest(chance, cities)
        happened.append({"longitude": x, "latitude": y, "keywords": tuple(words)})
    return Workload(requests, plain, happened)


def _point_of_interest(
    chance: random.Random, cities: list[tuple[float, float]]
) -> tuple[float, float, list[str]]:
    x, y = cities[_zipf(chance, CITIES)]
    words = {f"word{_zipf(chance, WORDS)}" for _ in range(chance.randint(3, 8))}
    return chance.gauss(x, SPREAD), chance.gauss(y, SPREAD), sorted(words)


def _zipf(chance: random.Random, count: int) -> int:
    """A number below the count, each as likely as its place is small (the inverse of a logarithm)."""
    return int((count + 1) ** chance.random()) - 1


def _some(chance: random.Random, each: int) -> list[str]:
    return chance.sample(ATTRIBUTES, each)


def _requests(chosen: list[list[tuple[Predicate, tuple[object, ...]]]]) -> list[Disjunction]:
    return [(tuple(predicate for predicate, _ in one),) for one in chosen]
