"""The template of a virtual sensor: which physical sensors, which quantity, how, how often, and what follows.

Parses and encodes the JSON form, which the API, the file and the journal share. The name of a virtual sensor
is a name of topics, since its events are on `virtual:NAME`. What is wrong with a template raises
SensorRefused, which names the field, its value and what to write instead.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from hpwsn.sensors.physical.physical_sensor import (
    LONGEST_NAME,
    MOST_TAGS,
    PhysicalSensor,
    SensorRefused,
    is_line,
    number,
    shown,
)
from hpwsn.sensors.physical.selection import Selection, parse_area
from hpwsn.sensors.templates.bands import Band, parse_bands
from hpwsn.sensors.templates.combining import COMBINATIONS
from hpwsn.sensors.templates.result_text import TextPattern, parse_pattern
from hpwsn.settings.quantities import Duration
from hpwsn_client.wsn.soap.xml import NCNAME
from hpwsn_client.wsn.topics.topic_expressions import Topic

ROOT = "virtual"
"""The root of the topics of virtual sensors."""
SILENCES = ("skip", "null", "hold")
SHORTEST, LONGEST = 0.1, 7 * 86_400.0
"""Seconds of a window."""
LONGEST_LATENESS = 3_600.0
LARGEST_QUORUM = 1_000_000
LONGEST_SERVICE = 200_000
"""Characters of the definition of a stream service."""
FIELDS = (
    "kind",
    "tags",
    "area",
    "quantity",
    "combine",
    "every",
    "lateness",
    "quorum",
    "silence",
    "outliers",
    "bands",
    "hysteresis",
    "text",
    "service",
)
"""The fields of a template, in the order of its JSON form."""
_EVERY, _LATENESS = Duration(SHORTEST, LONGEST), Duration(0, LONGEST_LATENESS)
_AREA = ("west", "south", "east", "north")
_PLAIN_TEXT, _TEXT_WITH_STATES = "{name}: {value} {unit}", "{name}: {value} {unit} ({states})"

_ROUNDING = 1e-6
"""Of a decimal fraction of seconds as a binary number of milliseconds."""

_is_name = re.compile(NCNAME).fullmatch
_is_broken = re.compile("[\ud800-\udfff]").search
"""Whether a text has halves of characters, which JSON can escape."""


@dataclass(frozen=True, slots=True)
class VirtualTemplate:
    """A virtual sensor as it was defined; durations are in milliseconds."""

    name: str
    quantity: str
    every: int
    combine: str = "mean"
    selection: Selection = field(default_factory=Selection)
    lateness: int = 1000
    quorum: int = 1
    """Sensors below which a window is silence."""
    silence: str = "skip"
    outliers: float | None = None
    """Median absolute deviations beyond which a reading is dropped; None keeps all."""
    bands: tuple[Band, ...] = ()
    hysteresis: float = 0.0
    text: TextPattern = field(default_factory=lambda: parse_pattern(_PLAIN_TEXT))
    service: str = ""
    """The definition of a stream service that makes the results, in TOML; empty: the node makes them."""
    topic: Topic = field(init=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "topic", Topic.parse(f"{ROOT}:{self.name}"))

    def means(self, sensor: PhysicalSensor) -> bool:
        """Whether a physical sensor is a member."""
        return self.quantity in sensor.quantities and self.selection.selects(sensor)

    def document(self) -> dict[str, Any]:
        """The JSON form without the name, which parse_template reads; durations in seconds."""
        selection = self.selection
        found: dict[str, Any] = {
            "kind": selection.kind,
            "tags": list(selection.tags),
            "area": None if selection.area is None else list(selection.area),
            "quantity": self.quantity,
            "combine": self.combine,
            "every": _seconds(self.every),
            "lateness": _seconds(self.lateness),
            "quorum": self.quorum,
            "silence": self.silence,
            "outliers": self.outliers,
            "bands": [band.document() for band in self.bands],
            "hysteresis": self.hysteresis,
            "text": self.text.pattern,
            "service": self.service or None,
        }
        return {name: value for name, value in found.items() if value is not None}


def parse_template(name: str, document: object) -> VirtualTemplate:
    """The template of a JSON object or a TOML table; SensorRefused says what is wrong."""
    if len(name) > LONGEST_NAME or not _is_name(name):
        raise SensorRefused(
            f"the name {shown(name)} is not valid; give at most {LONGEST_NAME} letters, digits, '-', '_' and"
            " '.', a letter or '_' first"
        )
    if not isinstance(document, Mapping):
        raise SensorRefused('a virtual sensor is an object such as {"quantity": "t", "every": "60 s", …}')
    for given in document:
        if given not in FIELDS and not (given == "name" and document["name"] == name):
            raise SensorRefused(f"the field {given!r} is unknown; known fields are {', '.join(FIELDS)}")
    given = {key: value for key, value in document.items() if value is not None}
    for needed in ("quantity", "every"):
        if needed not in given:
            raise SensorRefused(f"the field {needed} is missing; a virtual sensor has quantity and every")
    bands = parse_bands(given.get("bands", ()))
    return VirtualTemplate(
        name=name,
        quantity=_quantity(given["quantity"]),
        every=_milliseconds("every", given["every"], _EVERY),
        combine=_choice("combine", given.get("combine", "mean"), COMBINATIONS),
        selection=_selection(given),
        lateness=_milliseconds("lateness", given.get("lateness", 1), _LATENESS),
        quorum=_quorum(given.get("quorum", 1)),
        silence=_choice("silence", given.get("silence", "skip"), SILENCES),
        outliers=None if "outliers" not in given else _positive("outliers", given["outliers"]),
        bands=bands,
        hysteresis=_positive("hysteresis", given.get("hysteresis", 0)),
        text=parse_pattern(given.get("text", _TEXT_WITH_STATES if bands else _PLAIN_TEXT)),
        service=_service(given.get("service", "")),
    )


def _selection(given: Mapping[str, Any]) -> Selection:
    kind, tags, area = given.get("kind"), given.get("tags", ()), given.get("area")
    if kind is not None and not (is_line(kind) and _is_name(kind)):
        raise SensorRefused(f"kind is {shown(kind)}; give the kind of the physical sensors")
    if isinstance(tags, str):
        tags = [tag.strip() for tag in tags.split(",") if tag.strip()]
    is_list = isinstance(tags, list | tuple) and len(tags) <= MOST_TAGS
    if not is_list or not all(map(is_line, tags)):
        raise SensorRefused(f"tags is {shown(tags)}; give a list of at most {MOST_TAGS} texts in one line")
    if isinstance(area, Mapping) and set(area) == set(_AREA):
        area = [area[side] for side in _AREA]
    return Selection(kind, tuple(tags), None if area is None else parse_area(area))


def _quantity(value: object) -> str:
    if not isinstance(value, str) or len(value) > LONGEST_NAME or not _is_name(value):
        raise SensorRefused(f"quantity is {shown(value)}; give the name of a quantity of the sensors")
    return value


def _choice(name: str, value: object, choices: tuple[str, ...]) -> str:
    if value not in choices:
        raise SensorRefused(f"{name} is {shown(value)}; give one of {', '.join(choices)}")
    return str(value)


def _milliseconds(name: str, value: object, kind: Duration) -> int:
    try:
        found = kind.parse(value) * 1000
    except ValueError as error:
        raise SensorRefused(f"{name} is {shown(value)}; give {error}") from error
    if abs(found - round(found)) > _ROUNDING:
        raise SensorRefused(f"{name} is {shown(value)}; give whole milliseconds")
    return round(found)


def _seconds(milliseconds: int) -> int | float:
    return milliseconds // 1000 if milliseconds % 1000 == 0 else milliseconds / 1000


def _quorum(value: object) -> int:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not 1 <= value <= LARGEST_QUORUM or value % 1:  # type: ignore[operator]
        raise SensorRefused(f"quorum is {shown(value)}; give a number of sensors from 1 to {LARGEST_QUORUM}")
    return int(value)  # type: ignore[call-overload, no-any-return]


def _positive(name: str, value: object) -> float:
    found = number(name, value)
    if found < 0:
        raise SensorRefused(f"{name} is {found:g}; give a number of 0 or more")
    return found


def _service(value: object) -> str:
    if not isinstance(value, str) or len(value) > LONGEST_SERVICE or _is_broken(value):
        raise SensorRefused(
            f"service is not a text of at most {LONGEST_SERVICE} characters; give a stream definition in TOML"
        )
    return value
