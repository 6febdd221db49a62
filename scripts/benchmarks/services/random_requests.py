"""Random records and random requests of two stream services, as in the paper on stream data services (5.3).

getANPR gives {cid, vid, time}, inteGPS gives {vid, time, longitude, latitude, speed, direction,
satelliteNum}. A request has six predicates on a random choice of attributes, never on all of them, with
bounds within the constraints of the service. No two requests are equal. A record satisfies a request with
the probability SHARE, so deliveries grow with the number of requests. Identifiers and times are numbers
here, because a broker indexes ranges of numbers and not of texts.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

PREDICATES = 6
PER_EVENT, PER_REQUESTS = 18, 1000
"""So many of so many requests, half of them for each service, match an event."""
SHARE = 2 * PER_EVENT / PER_REQUESTS
DAY = 1_456_790_400
"""The first second of the day of the records."""


@dataclass(frozen=True, slots=True)
class Attribute:
    """A number between two bounds, of which the second is excluded; `digits` after the point."""

    name: str
    low: float
    high: float
    digits: int = 0

    @property
    def step(self) -> float:
        """The difference between two neighbouring values."""
        return float(10**-self.digits)

    @property
    def values(self) -> int:
        """How many different values there are."""
        return round((self.high - self.low) / self.step)

    def value(self, number: int) -> float:
        """The value with this number, counted from 0."""
        return round(self.low + number * self.step, self.digits)


@dataclass(frozen=True, slots=True)
class Service:
    """A stream service: the topic of its events, the topics of its sources, its attributes."""

    name: str
    topic: str
    sources: tuple[str, ...]
    attributes: tuple[Attribute, ...]

    def attribute(self, name: str) -> Attribute:
        """One attribute by its name."""
        return next(each for each in self.attributes if each.name == name)


VEHICLE, TIME = Attribute("vid", 0, 50_000), Attribute("time", DAY, DAY + 86_400)
GET_ANPR = Service("getANPR", "city:plates", ("sensors:anpr",), (Attribute("cid", 0, 1000), VEHICLE, TIME))
INTE_GPS = Service(
    "inteGPS",
    "city:gps",
    ("fleet:buses", "fleet:taxis", "fleet:lorries"),
    (
        VEHICLE,
        TIME,
        Attribute("longitude", 115.26, 117.30, 4),
        Attribute("latitude", 39.27, 41.03, 4),
        Attribute("speed", 1, 121),
        Attribute("direction", 0, 360),
        Attribute("satelliteNum", 3, 13),
    ),
)
SERVICES = (GET_ANPR, INTE_GPS)

Predicate = tuple[str, str, float]
"""Attribute, operator (>=, < or !=) and value."""
Record = Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Request:
    """What one consumer wants of a service: all predicates must hold."""

    service: Service
    predicates: tuple[Predicate, ...]

    @property
    def text(self) -> str:
        """The request in the predicate language."""
        return " and ".join(f"{name} {sign} {value:.10g}" for name, sign, value in self.predicates)

    @property
    def kind(self) -> frozenset[str]:
        """Its attributes: requests with the same ones are one kind (the paper, table 4)."""
        return frozenset(name for name, _, _ in self.predicates)


def random_records(service: Service, count: int, seed: int) -> list[dict[str, Any]]:
    """Records whose values are spread evenly, each independent of the others."""
    chance = random.Random(f"{service.name} {seed}")
    return [
        {each.name: each.value(chance.randrange(each.values)) for each in service.attributes}
        for _ in range(count)
    ]


def random_requests(service: Service, count: int, seed: int) -> list[Request]:
    """So many different requests; fewer are the first ones of more."""
    chance = random.Random(f"{service.name} requests {seed}")
    found: dict[str, Request] = {}
    while len(found) < count:
        request = Request(service, tuple(_predicates(service, chance)))
        found.setdefault(request.text, request)
    return list(found.values())


def mixed_requests(count: int, seed: int) -> list[Request]:
    """Requests of both services in turn; fewer are the first ones of more."""
    each = (count + 1) // 2
    pairs = zip(random_requests(GET_ANPR, each, seed), random_requests(INTE_GPS, each, seed), strict=True)
    return [request for pair in pairs for request in pair][:count]


def _predicates(service: Service, chance: random.Random) -> Iterator[Predicate]:
    """Bounds on each chosen attribute, then values that are excluded, until there are six."""
    names = [each.name for each in service.attributes]
    chosen: list[str] = []
    while not 0 < len(chosen) < len(names):
        chosen = [name for name in names if chance.random() < 0.5]
    share = SHARE ** (1 / len(chosen))
    spare = PREDICATES - len(chosen)
    """Predicates beyond one for each attribute: a second bound, or an excluded value."""
    both = set(chance.sample(chosen, min(spare, len(chosen))))
    excluded = spare - len(both)
    ranges = {}
    for name in chosen:
        attribute = service.attribute(name)
        width = min(attribute.values - 1, max(1, round(share * attribute.values)))
        start = chance.randrange(attribute.values - width + 1) if name in both else 0
        upper = name not in both and chance.random() < 0.5
        if name in both:
            yield name, ">=", attribute.value(start)
        if name in both or upper:
            yield name, "<", attribute.value(start + width)
        else:
            start = attribute.values - width
            yield name, ">=", attribute.value(start)
        ranges[name] = range(start, start + width)
    for name in sorted(chance.choices(chosen, k=excluded)):
        yield name, "!=", _outside(service.attribute(name), ranges[name], chance)


def _outside(attribute: Attribute, taken: range, chance: random.Random) -> float:
    """A value that the bounds exclude, too: a request must not contradict itself."""
    while True:
        number = chance.randrange(attribute.values)
        if number not in taken:
            return attribute.value(number)


def matches(requests: Iterable[Request], records: Sequence[Record]) -> Iterator[NDArray[np.bool_]]:
    """For each request, which of the records satisfy it."""
    columns = {name: np.array([record[name] for record in records]) for name in records[0]}
    for request in requests:
        held = np.ones(len(records), np.bool_)
        for name, sign, value in request.predicates:
            column = columns[name]
            held &= column >= value if sign == ">=" else column < value if sign == "<" else column != value
        yield held


def kinds(requests: Iterable[Request]) -> dict[str, int]:
    """The number of kinds of request by service."""
    found: dict[str, set[frozenset[str]]] = {}
    for request in requests:
        found.setdefault(request.service.name, set()).add(request.kind)
    return {name: len(each) for name, each in found.items()}


def services_needed(requests: Sequence[Request]) -> dict[str, int]:
    """How many services or topics each method needs for these requests (the paper, table 5)."""
    services = {request.service.name: request.service for request in requests}
    sources = sum(len(service.sources) for service in services.values())
    return {
        "this": len(services),
        "one service per request": sum(kinds(requests).values()),
        "by topic": sources,
        "by content": sources,
    }
