"""The checks of a raw reading, in this order: malformed, unknown-sensor, unknown-quantity, unit, range, time.

A duplicate is found later, by known_times. `check` has a fast way, which knows only good readings, and
`judge`, which is the reference: it takes whatever the fast way leaves, and names the first reason against it.
A test compares both. Values are converted to the unit of the sensor's registration before their range is
checked. A reading may name the place where it was taken; the place of the registration is for all others.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from hpwsn.sensors.physical.physical_sensor import (
    PhysicalSensor,
    Quantity,
    SensorRefused,
    parse_sensor,
    shown,
)
from hpwsn.sensors.physical.units import ExactConversion
from hpwsn.sensors.readings.formats import RawReading
from hpwsn.sensors.readings.reading import Reading
from hpwsn.sensors.readings.reading_fields import Fields, Malformed, fields_of
from hpwsn.sensors.readings.reading_run import LARGEST, SensorRuns
from hpwsn.sensors.readings.reading_times import parse_time, time_text

MALFORMED = "malformed"
UNKNOWN_SENSOR = "unknown-sensor"
UNKNOWN_QUANTITY = "unknown-quantity"
UNIT = "unit"
RANGE = "range"
TIME = "time"
DUPLICATE = "duplicate"
REASONS = (MALFORMED, UNKNOWN_SENSOR, UNKNOWN_QUANTITY, UNIT, RANGE, TIME, DUPLICATE)

DIMENSIONLESS = "dimensionless"
"""The unit of a quantity that a sensor was registered with by a reading without a unit."""


class Rejection(NamedTuple):
    """Why a reading was not accepted: one of REASONS, and what exactly is wrong."""

    reason: str
    detail: str


class Newcomer(NamedTuple):
    """A good reading of a sensor that is not registered, which it describes."""

    sensor: PhysicalSensor


class Unconverted(NamedTuple):
    """A reading with values in a unit that the checks do not know; give them the conversion and ask again."""

    source: str
    target: str


Checked = Reading | Rejection | Newcomer | Unconverted


class KnownSensor:
    """What the checks keep of a registered sensor."""

    __slots__ = ("kind", "latitude", "limits", "longitude", "runs", "sensor")

    def __init__(self, sensor: PhysicalSensor, limits: Mapping[str, tuple[float, float]]) -> None:
        self.sensor = sensor
        self.limits = limits
        self.kind = sensor.kind
        place = sensor.place
        self.longitude = None if place is None else place.longitude
        self.latitude = None if place is None else place.latitude
        self.runs = SensorRuns(sensor.id, sensor.kind, sensor.topic)


class ReadingChecks:
    """Checks readings of the sensors that `sensor_of` knows; times are in milliseconds."""

    def __init__(
        self,
        sensor_of: Callable[[str], PhysicalSensor | None],
        *,
        max_age: int,
        max_ahead: int,
        auto_register: bool = False,
    ) -> None:
        self._sensor_of = sensor_of
        self._max_age = max_age
        self._max_ahead = max_ahead
        self._auto_register = auto_register
        self._known: dict[str, KnownSensor] = {}
        self._limits: dict[tuple[tuple[str, Quantity], ...], Mapping[str, tuple[float, float]]] = {}
        """Shared by all sensors with the same quantities."""
        self.conversions: dict[tuple[str, str], ExactConversion | None] = {}
        """By the units from and to; None for units that do not convert. The caller adds what is asked for."""

    def known(self, name: str) -> KnownSensor | None:
        """The sensor with this id, or None."""
        known = self._known.get(name)
        if known is None and (sensor := self._sensor_of(name)) is not None:
            known = self._known[name] = KnownSensor(sensor, self._limits_of(sensor.quantities))
        return known

    def forget(self, name: str) -> None:
        """Call this after the sensor was registered again or removed."""
        self._known.pop(name, None)

    def _limits_of(self, quantities: Mapping[str, Quantity]) -> Mapping[str, tuple[float, float]]:
        key = tuple(quantities.items())
        found = self._limits.get(key)
        if found is None:
            if len(self._limits) >= len(self._known) + 100:
                self._limits.clear()
            found = self._limits[key] = {name: _limits(quantity) for name, quantity in key}
        return found

    def check(self, raw: RawReading, now: int, sensor: str | None = None) -> Checked:
        """The reading, or why it is rejected; `sensor` is the id in the address, if it has one."""
        if type(raw) is dict:
            name = raw.get("sensor", sensor)
            known = self._known.get(name) if type(name) is str and sensor in (None, name) else None
            if known is not None and (reading := self._take(raw, now, known)) is not None:
                return reading
        return self.judge(raw, now, sensor)

    def _take(self, raw: dict[str, Any], now: int, known: KnownSensor) -> Reading | None:
        """The reading of a raw one with nothing unusual, else None."""
        limits, values, time = known.limits, {}, now
        for name, value in raw.items():
            limit = limits.get(name)
            if limit is not None:
                if type(value) is float:
                    values[name] = value
                elif type(value) is int and -LARGEST <= value <= LARGEST:
                    values[name] = value = float(value)
                else:
                    return None
                if not limit[0] <= value <= limit[1]:
                    return None
            elif name == "time":
                read = parse_time(value) if type(value) is str else None
                if read is None or not now - self._max_age <= read <= now + self._max_ahead:
                    return None
                time = read
            elif name != "sensor" and (name != "kind" or value != known.kind):
                return None
        if not values:
            return None
        return Reading(known.sensor.id, known.kind, time, values, known.longitude, known.latitude)

    def judge(self, raw: RawReading, now: int, sensor: str | None = None) -> Checked:
        """The same answer as `check`, without its fast way."""
        try:
            fields = fields_of(raw, now, sensor)
        except Malformed as error:
            return Rejection(MALFORMED, str(error))
        known = self.known(fields.sensor)
        if known is None:
            return self._judge_unknown(fields, now)
        return self._judge_known(fields, now, known)

    def _judge_unknown(self, fields: Fields, now: int) -> Checked:
        told = f"the sensor {shown(fields.sensor)} is not registered; register it with POST /sensors"
        if not self._auto_register:
            return Rejection(UNKNOWN_SENSOR, told)
        if fields.kind is None:
            return Rejection(UNKNOWN_SENSOR, f"{told}, or name its kind in the reading")
        try:
            sensor = _described(fields)
        except SensorRefused as error:
            return Rejection(MALFORMED, str(error))
        rejection = self._judge_time(fields.time, now)
        return Newcomer(sensor) if rejection is None else rejection

    def _judge_known(self, fields: Fields, now: int, known: KnownSensor) -> Checked:
        sensor = known.sensor
        if fields.kind not in (None, sensor.kind):
            return Rejection(
                MALFORMED, f"kind is {shown(fields.kind)}, and {sensor.id} is registered as {sensor.kind}"
            )
        for name in fields.measured:
            if name not in sensor.quantities:
                measures = ", ".join(sensor.quantities)
                return Rejection(
                    UNKNOWN_QUANTITY, f"{sensor.id} does not measure {shown(name)}, but {measures}"
                )
        values: dict[str, float] = {}
        for name, (value, unit) in fields.measured.items():
            target = sensor.quantities[name].unit
            if unit is None or unit == target:
                values[name] = value
                continue
            if (unit, target) not in self.conversions:
                return Unconverted(unit, target)
            conversion = self.conversions[unit, target]
            if conversion is None:
                return Rejection(UNIT, f"{name} is in {shown(unit)}, which does not convert to {target!r}")
            values[name] = conversion.of(value)
        for name, value in values.items():
            low, high = known.limits[name]
            if not low <= value <= high:
                unit = sensor.quantities[name].unit
                return Rejection(RANGE, f"{name} is {value:g} {unit}, outside of {low:g} to {high:g}")
        rejection = self._judge_time(fields.time, now)
        if rejection is not None:
            return rejection
        place = fields.place or (known.longitude, known.latitude)
        return Reading(sensor.id, sensor.kind, fields.time, values, *place)

    def _judge_time(self, time: int, now: int) -> Rejection | None:
        if time < now - self._max_age:
            allowed = f"sensors.max_age is {self._max_age / 1000:g} s"
            return Rejection(TIME, f"{time_text(time)} is {(now - time) / 1000:g} s ago, and {allowed}")
        if time > now + self._max_ahead:
            allowed = f"sensors.max_ahead is {self._max_ahead / 1000:g} s"
            return Rejection(TIME, f"{time_text(time)} is {(time - now) / 1000:g} s ahead, and {allowed}")
        return None


def _described(fields: Fields) -> PhysicalSensor:
    """The sensor of its first reading; SensorRefused if it cannot be one."""
    document: dict[str, Any] = {
        "id": fields.sensor,
        "kind": fields.kind,
        "quantities": {
            name: {"unit": DIMENSIONLESS if unit is None else unit}
            for name, (_, unit) in fields.measured.items()
        },
    }
    if fields.place is not None:
        document["place"] = dict(zip(("longitude", "latitude"), fields.place, strict=True))
    return parse_sensor(document)


def _limits(quantity: Quantity) -> tuple[float, float]:
    """The least and the greatest value; an infinite one is never in the range."""
    return (
        -LARGEST if quantity.low is None else max(quantity.low, -LARGEST),
        LARGEST if quantity.high is None else min(quantity.high, LARGEST),
    )
