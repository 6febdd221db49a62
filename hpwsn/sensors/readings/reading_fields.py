"""The fields of a raw reading: who sent it, when and where it was taken, and what was measured.

This is the first check. Malformed is raised for whatever has another form, whether or not the sensor exists.
A value is a finite number, in the unit of the sensor's registration or in the unit that comes with it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from hpwsn.sensors.physical.physical_sensor import shown
from hpwsn.sensors.readings.formats import RawReading, Unparsed
from hpwsn.sensors.readings.reading_run import LARGEST
from hpwsn.sensors.readings.reading_times import parse_time

_OWN_FIELDS = frozenset({"sensor", "kind", "time", "longitude", "latitude"})
_NUMBERS = (float, int)
_BOUNDS = {"longitude": 180.0, "latitude": 90.0}


class Fields(NamedTuple):
    """A raw reading of the right form."""

    sensor: str
    kind: str | None
    time: int
    place: tuple[float, float] | None
    measured: Mapping[str, tuple[float, str | None]]
    """Values with their units, None for the unit of the registration."""


class Malformed(ValueError):
    """A raw reading of another form."""


def fields_of(raw: RawReading, now: int, sensor: str | None) -> Fields:
    """The fields of a raw reading; `sensor` is the id in the address, and `now` the time of one without."""
    if isinstance(raw, Unparsed):
        raise Malformed(raw.problem)
    if not isinstance(raw, dict):
        raise Malformed(f"a reading is a JSON object, and this is {shown(raw)}")
    name = raw.get("sensor", sensor)
    if name is None:
        raise Malformed("the field sensor is missing; give the id of the sensor")
    if not isinstance(name, str):
        raise Malformed(f"sensor is {shown(name)}; give the id of the sensor as text")
    if sensor is not None and name != sensor:
        raise Malformed(f"sensor is {shown(name)}, and the address names {shown(sensor)}")
    kind = raw.get("kind")
    if "kind" in raw and not isinstance(kind, str):
        raise Malformed(f"kind is {shown(kind)}; give the kind of the sensor as text")
    measured = {name: _measured(name, value) for name, value in raw.items() if name not in _OWN_FIELDS}
    if not measured:
        raise Malformed("there is no value; give at least one quantity, such as temperature")
    return Fields(name, kind, _time(raw, now), _place(raw), measured)


def _time(raw: Mapping[str, Any], now: int) -> int:
    if "time" not in raw:
        return now
    text = raw["time"]
    time = parse_time(text) if isinstance(text, str) else None
    if time is None:
        raise Malformed(f"time is {shown(text)}; give RFC 3339 with a zone, such as 2026-11-19T08:00:00Z")
    return time


def _place(raw: Mapping[str, Any]) -> tuple[float, float] | None:
    if "longitude" not in raw and "latitude" not in raw:
        return None
    numbers = []
    for name, most in _BOUNDS.items():
        value = _number(raw.get(name))
        if value is None or abs(value) > most:
            raise Malformed(f"{name} is {shown(raw.get(name))}; give both longitude and latitude in degrees")
        numbers.append(value)
    return numbers[0], numbers[1]


def _measured(name: str, value: object) -> tuple[float, str | None]:
    if isinstance(value, Unparsed):
        raise Malformed(f"{shown(name)}: {value.problem}")
    number, unit = _number(value), None
    if isinstance(value, dict) and value.keys() == {"value", "unit"}:
        number, unit = _number(value["value"]), value["unit"]
    if number is None or not isinstance(unit, str | None):
        raise Malformed(
            f'{shown(name)} is {shown(value)}; give a number, or {{"value": number, "unit": text}}'
        )
    return number, unit


def _number(value: object) -> float | None:
    if type(value) not in _NUMBERS or not abs(value) <= LARGEST:  # type: ignore[arg-type]
        return None
    return float(value)  # type: ignore[arg-type]
