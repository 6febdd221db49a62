"""Which readings are sent when, and which results must follow from them, so that nothing is taken on trust.

A gateway has `together` sensors, and each of its posts has one reading of each of them. Gateways take turns,
at equal distances in time. The members of a virtual sensor belong to many gateways: sensor n is one of
virtual sensor n modulo the number of virtual sensors. Values differ, and are known again from the sensor and
the number of the post.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import Any, NamedTuple

KIND, QUANTITY = "bench", "temperature"
LATENESS = 1000
"""Milliseconds after the end of a window in which its readings may still come: the node's default."""
LOW, HIGH = -100.0, 300.0
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_VALUES = tuple(LOW + number / 10 for number in range(4001))
_TEXTS = tuple(map(repr, _VALUES))


class Expected(NamedTuple):
    """What the result of a window must have."""

    readings: int
    sensors: int
    value: float


@dataclass(frozen=True)
class Schedule:
    """Readings at a rate (a second); `every` and `began` are in milliseconds, the latter since 1970."""

    sensors: int
    virtual: int
    together: int
    rate: float
    every: int
    began: int
    seconds: float

    @property
    def gateways(self) -> int:
        """How many gateways take turns."""
        return self.sensors // self.together

    @cached_property
    def posts(self) -> int:
        """How many posts there are."""
        return math.ceil(self.seconds * self.rate / self.together)

    def due(self, number: int) -> float:
        """When a post is due, in seconds since 1970."""
        return self.began / 1000 + number * self.together / self.rate

    def time(self, number: int) -> int:
        """The time of the readings of a post, in milliseconds."""
        return int(self.due(number) * 1000)

    def value(self, sensor: int, number: int) -> float:
        """What a sensor measures in a post."""
        return _VALUES[(37 * sensor + 11 * number) % len(_VALUES)]

    def texts(self, number: int) -> list[str]:
        """The values of a post as texts, in the order of its sensors."""
        first = self.first_sensor(number)
        return [
            _TEXTS[(37 * each + 11 * number) % len(_TEXTS)] for each in range(first, first + self.together)
        ]

    def first_sensor(self, number: int) -> int:
        """The first of the sensors of a post."""
        return number % self.gateways * self.together

    def windows(self, sent: int) -> dict[int, list[int]]:
        """The posts in each window, by its end, if so many posts were sent."""
        found: dict[int, list[int]] = {}
        for number in range(sent):
            end = (self.time(number) // self.every + 1) * self.every
            found.setdefault(end, []).append(number)
        return found

    def expected(self, sent: int) -> dict[tuple[str, int], Expected]:
        """The results by virtual sensor and end of the window, if so many posts were sent, none too late."""
        found: dict[tuple[str, int], Expected] = {}
        for end, posts in self.windows(sent).items():
            values: dict[int, list[float]] = {}
            sensors: Counter[int] = Counter()
            seen: set[int] = set()
            for number in posts:
                first = self.first_sensor(number)
                for sensor in range(first, first + self.together):
                    values.setdefault(sensor % self.virtual, []).append(self.value(sensor, number))
                    if sensor not in seen:
                        seen.add(sensor)
                        sensors[sensor % self.virtual] += 1
            for virtual, taken in values.items():
                mean = math.fsum(taken) / len(taken)
                found[virtual_name(virtual), end] = Expected(len(taken), sensors[virtual], mean)
        return found

    def registrations(self) -> Iterator[dict[str, Any]]:
        """All physical sensors, as POST /sensors takes them."""
        for number in range(self.sensors):
            yield {
                "id": sensor_id(number),
                "kind": KIND,
                "quantities": {QUANTITY: {"unit": "degC", "min": LOW - 1, "max": HIGH + 1}},
                "place": {"longitude": number % 360 - 180, "latitude": number % 180 - 90},
                "tags": [f"group-{number % self.virtual}"],
            }

    def definition(self, number: int) -> dict[str, Any]:
        """A virtual sensor, as PUT /virtual/{name} takes it."""
        every = self.every / 1000
        return {"kind": KIND, "tags": [f"group-{number}"], "quantity": QUANTITY, "every": every}


def array_of(schedule: Schedule) -> Callable[[int], bytes]:
    """What gives the readings of a post as a JSON array, by its number."""
    found = []
    for first in range(0, schedule.sensors, schedule.together):
        ids = (sensor_id(number) for number in range(first, first + schedule.together))
        found.append(",".join(f'{{"sensor":"{each}","time":"%s","{QUANTITY}":%s}}' for each in ids))

    def array(number: int) -> bytes:
        told = time_text(schedule.time(number))
        parts = tuple(part for text in schedule.texts(number) for part in (told, text))
        return b"[%b]" % (found[number % schedule.gateways] % parts).encode()

    return array


def sensor_id(number: int) -> str:
    """The id of a physical sensor."""
    return f"s{number:05}"


def virtual_name(number: int) -> str:
    """The name of a virtual sensor."""
    return f"v{number:03}"


def time_text(time: int) -> str:
    """The RFC 3339 text of a time in milliseconds."""
    return f"{(_EPOCH + timedelta(milliseconds=time)).isoformat(timespec='milliseconds')[:-6]}Z"


def milliseconds(text: str) -> int:
    """The inverse of `time_text`."""
    return round((datetime.fromisoformat(text) - _EPOCH) / timedelta(milliseconds=1))
