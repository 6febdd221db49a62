"""A physical sensor: its id, kind, quantities, place, tags and how it reports.

Parses and encodes the JSON form, which files, the API and the journal share. An id and a kind are names of
topics, since the events of a sensor are on `sensors:KIND:ID`. What is wrong with a description raises
SensorRefused, which names the field, its value and what to write instead.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from reprlib import Repr
from typing import Any, TypeGuard

from hpwsn_client.wsn.soap.xml import NCNAME
from hpwsn_client.wsn.topics.topic_expressions import Topic

ROOT = "sensors"
"""The root of the topics of physical sensors."""
RESERVED = frozenset({"sensor", "kind", "time", "longitude", "latitude", "offset", "day"})
"""Names that no quantity may have, since events and kept readings have fields with these names."""
LONGEST_NAME = 200
"""Characters of an id, a kind, a quantity, a unit or a tag."""
MOST_QUANTITIES = 100
MOST_TAGS = 100
MOST_SHOWN = 200
"""Characters of a wrong value that an error repeats."""

_is_name = re.compile(NCNAME).fullmatch
# Whatever XML can have in one line; JSON can also escape halves of characters.
_is_line = re.compile("[ -\x7e\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]*").fullmatch
_brief = Repr()
_brief.maxstring = _brief.maxother = _brief.maxlong = 80
_brief.maxlevel = 2
_FIELDS = ("id", "kind", "quantities", "place", "tags", "interval", "owner", "gateway", "on_demand")


class SensorRefused(ValueError):
    """A description of a sensor that is not valid; the text says what to write instead."""


@dataclass(frozen=True, slots=True)
class Quantity:
    """What a sensor measures: its unit, and the range in which readings are plausible; None is unbounded."""

    unit: str
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class Place:
    """Degrees, east and north positive."""

    longitude: float
    latitude: float


@dataclass(frozen=True, slots=True)
class PhysicalSensor:
    """A sensor as it was registered."""

    id: str
    kind: str
    quantities: Mapping[str, Quantity]
    place: Place | None = None
    tags: tuple[str, ...] = ()
    interval: float | None = None
    """Seconds between two readings, as its owner declares them."""
    owner: str = ""
    gateway: str = ""
    on_demand: bool = False
    """Whether it may be told to stop while nobody wants its readings."""
    topic: Topic = field(init=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "topic", Topic.parse(f"{ROOT}:{self.kind}:{self.id}"))

    def document(self) -> dict[str, Any]:
        """The JSON form, which parse_sensor reads."""
        found: dict[str, Any] = {
            "id": self.id,
            "kind": self.kind,
            "quantities": {name: _quantity_document(each) for name, each in self.quantities.items()},
        }
        if self.place is not None:
            found["place"] = {"longitude": self.place.longitude, "latitude": self.place.latitude}
        found["tags"] = list(self.tags)
        if self.interval is not None:
            found["interval"] = self.interval
        for name in ("owner", "gateway"):
            if value := getattr(self, name):
                found[name] = value
        if self.on_demand:
            found["on_demand"] = True
        return found


def parse_sensor(document: object) -> PhysicalSensor:
    """The sensor of a JSON object; SensorRefused says what is wrong."""
    if not isinstance(document, dict):
        raise SensorRefused('a sensor is a JSON object such as {"id": "s1", "kind": "weather", …}')
    for name in document:
        if name not in _FIELDS:
            raise SensorRefused(f"the field {shown(name)} is unknown; known fields are {', '.join(_FIELDS)}")
    for name in ("id", "kind", "quantities"):
        if name not in document:
            raise SensorRefused(f"the field {name} is missing; a sensor has id, kind and quantities")
    on_demand = document.get("on_demand", False)
    if not isinstance(on_demand, bool):
        raise SensorRefused(f"on_demand is {shown(on_demand)}; give true or false")
    return PhysicalSensor(
        id=_name("id", document["id"]),
        kind=_name("kind", document["kind"]),
        quantities=_quantities(document["quantities"]),
        place=_place(document.get("place")),
        tags=_tags(document.get("tags", [])),
        interval=_interval(document.get("interval")),
        owner=_text("owner", document.get("owner", "")),
        gateway=_text("gateway", document.get("gateway", "")),
        on_demand=on_demand,
    )


def number(name: str, value: object) -> float:
    """A finite number; SensorRefused names the field."""
    try:
        found = math.nan if isinstance(value, bool) or not isinstance(value, int | float) else float(value)
    except OverflowError:
        found = math.inf
    if not math.isfinite(found):
        raise SensorRefused(f"{name} is {shown(value)}; give a number")
    return found


def is_line(value: object, longest: int = LONGEST_NAME) -> TypeGuard[str]:
    """Whether it is a text of one line, with characters that events can have."""
    return isinstance(value, str) and len(value) <= longest and _is_line(value) is not None


def shown(value: object) -> str:
    """A wrong value as an error repeats it, in at most MOST_SHOWN characters."""
    text = _brief.repr(value)
    return text if len(text) <= MOST_SHOWN else f"{text[: MOST_SHOWN - 1]}…"


def _quantity_document(quantity: Quantity) -> dict[str, Any]:
    found: dict[str, Any] = {"unit": quantity.unit}
    if quantity.low is not None:
        found["min"] = quantity.low
    if quantity.high is not None:
        found["max"] = quantity.high
    return found


def _name(field_name: str, value: object) -> str:
    """A name that a topic can have."""
    if not isinstance(value, str) or len(value) > LONGEST_NAME or not _is_name(value):
        raise SensorRefused(
            f"{field_name} is {shown(value)}; give a name of at most {LONGEST_NAME} letters, digits, '-', '_'"
            " and '.' that begins with a letter or '_'"
        )
    return value


def _text(field_name: str, value: object) -> str:
    if not is_line(value):
        raise SensorRefused(
            f"{field_name} is {shown(value)}; give a text of at most {LONGEST_NAME} characters in one line"
        )
    return value


def _quantities(value: object) -> dict[str, Quantity]:
    if not isinstance(value, dict) or not 0 < len(value) <= MOST_QUANTITIES:
        raise SensorRefused(
            f'quantities is not an object of 1 to {MOST_QUANTITIES} names, such as {{"t": {{"unit": "K"}}}}'
        )
    found = {}
    for name, description in value.items():
        if name in RESERVED:
            raise SensorRefused(f"the quantity {name!r} has the name of another field; choose another name")
        named = _name("the name of a quantity", name)
        found[named] = _quantity(named, description)
    return found


def _quantity(name: str, value: object) -> Quantity:
    if not isinstance(value, dict) or not set(value) <= {"unit", "min", "max"} or "unit" not in value:
        raise SensorRefused(
            f'the quantity {name!r} is {shown(value)}; give {{"unit": …, "min": …, "max": …}}'
        )
    low, high = (
        None if value.get(end) is None else number(f"{end} of {name}", value[end]) for end in ("min", "max")
    )
    if low is not None and high is not None and low > high:
        raise SensorRefused(f"the quantity {name!r} has min {low:g} above max {high:g}; exchange them")
    return Quantity(_text(f"the unit of {name}", value["unit"]), low, high)


def _place(value: object) -> Place | None:
    if value is None:
        return None
    if not isinstance(value, dict) or set(value) != {"longitude", "latitude"}:
        raise SensorRefused(f'place is {shown(value)}; give {{"longitude": degrees, "latitude": degrees}}')
    longitude, latitude = number("longitude", value["longitude"]), number("latitude", value["latitude"])
    if not -180 <= longitude <= 180:
        raise SensorRefused(f"longitude is {longitude:g}; give degrees from -180 to 180")
    if not -90 <= latitude <= 90:
        raise SensorRefused(f"latitude is {latitude:g}; give degrees from -90 to 90")
    return Place(longitude, latitude)


def _tags(value: object) -> tuple[str, ...]:
    if not isinstance(value, list | tuple) or len(value) > MOST_TAGS:
        raise SensorRefused(f"tags is {shown(value)}; give a list of at most {MOST_TAGS} texts")
    return tuple(dict.fromkeys(_text("a tag", each) for each in value))


def _interval(value: object) -> float | None:
    if value is None:
        return None
    seconds = number("interval", value)
    if seconds <= 0:
        raise SensorRefused(f"interval is {seconds:g}; give the seconds between two readings, more than 0")
    return seconds
