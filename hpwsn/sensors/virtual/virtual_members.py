"""The members of running virtual sensors: which windows take the readings of a physical sensor.

Every committed reading passes through `take`, which costs a lookup for a sensor that is no member. Values
are converted to the unit of the virtual sensor by a factor and an offset.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from math import isfinite
from typing import NamedTuple

from hpwsn.sensors.physical.physical_sensor import PhysicalSensor
from hpwsn.sensors.physical.units import UnitRefused, conversion
from hpwsn.sensors.readings.reading import Reading
from hpwsn.sensors.templates.reading_windows import ReadingWindows


class Feed(NamedTuple):
    """Where the readings of one sensor go for one virtual sensor, and how they are converted."""

    windows: ReadingWindows
    quantity: str
    factor: float
    offset: float


_NONE: Mapping[str, Feed] = {}


class Members:
    """The feeds of each physical sensor, by the name of the virtual one."""

    def __init__(self) -> None:
        self._feeds: dict[str, dict[str, Feed]] = {}
        self._of: dict[str, set[str]] = {}

    def take(self, upto: int, readings: Sequence[tuple[int, Reading]]) -> None:
        """Hand committed readings to the windows that want them; `upto` is not used."""
        if self._feeds:
            feeds_of = self._feeds.get
            for _, reading in readings:
                for feed in feeds_of(reading.sensor, _NONE).values():
                    _hand_over(feed, reading)

    def take_past(self, name: str, reading: Reading) -> None:
        """Hand a reading of the past to the windows of one virtual sensor."""
        feed = self._feeds.get(reading.sensor, {}).get(name)
        if feed is not None:
            _hand_over(feed, reading)

    def join(
        self, name: str, sensor: PhysicalSensor, windows: ReadingWindows, quantity: str, unit: str
    ) -> bool:
        """Make a sensor a member, or change how it is one; False if its unit does not convert into `unit`."""
        try:
            factor, offset = conversion(sensor.quantities[quantity].unit, unit)
        except UnitRefused:
            self.leave(name, sensor.id)
            return False
        self._feeds.setdefault(sensor.id, {})[name] = Feed(windows, quantity, factor, offset)
        self._of.setdefault(name, set()).add(sensor.id)
        return True

    def leave(self, name: str, sensor: str) -> None:
        """Take a sensor from the members, if it is one."""
        ids = self._of.get(name, set())
        if sensor not in ids:
            return
        ids.discard(sensor)
        if not ids:
            del self._of[name]
        feeds = self._feeds[sensor]
        del feeds[name]
        if not feeds:
            del self._feeds[sensor]

    def drop(self, name: str) -> None:
        """Forget all members of a virtual sensor."""
        for sensor in list(self._of.get(name, ())):
            self.leave(name, sensor)

    def of(self, name: str) -> Collection[str]:
        """The ids of the members of a virtual sensor; the caller must not change the collection."""
        return self._of.get(name, ())

    def having(self, sensor: str) -> Set[str]:
        """The names of the virtual sensors that a sensor is a member of."""
        return frozenset(self._feeds.get(sensor, ()))


def commonest_unit(sensors: Iterable[PhysicalSensor], quantity: str) -> str | None:
    """The unit in which most of the sensors have a quantity; of several, that of the first sensor."""
    units = Counter(sensor.quantities[quantity].unit for sensor in sensors)
    return max(units, key=lambda unit: units[unit]) if units else None


def _hand_over(feed: Feed, reading: Reading) -> None:
    windows, quantity, factor, offset = feed
    value = reading.values.get(quantity)
    if value is not None:
        value = value * factor + offset
        if isfinite(value):
            windows.add(reading.sensor, reading.time, value)
