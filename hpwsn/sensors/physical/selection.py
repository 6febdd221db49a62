"""Which physical sensors are meant: by kind, tags and area.

A sensor without a place is in no area. An area whose west is east of its east crosses the 180th meridian.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from hpwsn.sensors.physical.physical_sensor import PhysicalSensor, Place, SensorRefused, number, shown


class Area(NamedTuple):
    """A rectangle in degrees, with its borders."""

    west: float
    south: float
    east: float
    north: float

    def holds(self, place: Place | None) -> bool:
        """Whether a place is in the area."""
        if place is None or not self.south <= place.latitude <= self.north:
            return False
        if self.west <= self.east:
            return self.west <= place.longitude <= self.east
        return place.longitude >= self.west or place.longitude <= self.east


def parse_area(value: object) -> Area:
    """The area of a list or a text `west,south,east,north`; SensorRefused says what is wrong."""
    parts = value.split(",") if isinstance(value, str) else value
    if not isinstance(parts, Sequence) or len(parts) != 4:
        raise SensorRefused(f"area is {shown(value)}; give west,south,east,north in degrees")
    try:
        numbers = [float(part) if isinstance(part, str) else number("area", part) for part in parts]
    except ValueError as error:
        raise SensorRefused(f"area is {shown(value)}; give west,south,east,north in degrees") from error
    west, south, east, north = numbers
    # A comparison with NaN is false.
    if not (-180 <= west <= 180 and -180 <= east <= 180 and -90 <= south <= north <= 90):
        raise SensorRefused(
            f"area is {shown(value)}; give west and east from -180 to 180, south and north from -90 to 90,"
            " south first"
        )
    return Area(west, south, east, north)


@dataclass(frozen=True, slots=True)
class Selection:
    """Sensors of a kind, with all tags, in an area; what is None or empty does not matter."""

    kind: str | None = None
    tags: tuple[str, ...] = ()
    area: Area | None = None

    def selects(self, sensor: PhysicalSensor) -> bool:
        """Whether the sensor is meant."""
        return (
            (self.kind is None or sensor.kind == self.kind)
            and all(tag in sensor.tags for tag in self.tags)
            and (self.area is None or self.area.holds(sensor.place))
        )

    def of(self, sensors: Iterable[PhysicalSensor]) -> list[PhysicalSensor]:
        """Those of the sensors that are meant, in their order."""
        return [sensor for sensor in sensors if self.selects(sensor)]
