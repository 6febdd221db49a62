"""A network of simulated sensors: where they are, and their readings in the order of time.

Sensors are at random places in a rectangle. Each reports at regular intervals, at its own part of the
interval, so that readings of the network are spread evenly over the time. The same arguments give the same
sensors and the same readings.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Protocol

from hpwsn.sensors.physical.physical_sensor import PhysicalSensor, Place, Quantity
from hpwsn.sensors.physical.selection import Area
from hpwsn.sensors.readings.reading import Reading
from hpwsn.sensors.simulation.chance import Chance
from hpwsn.sensors.simulation.earthquakes import Earthquakes
from hpwsn.sensors.simulation.sensor_faults import NO_FAULTS, FaultySensors, SensorFaults
from hpwsn.sensors.simulation.weather import Weather

START = int(datetime(2024, 3, 4, 6, 0, tzinfo=UTC).timestamp() * 1000)
"""When simulations begin unless another time is given: a Monday morning, in milliseconds since 1970."""
AREA = Area(115.25, 39.26, 117.30, 41.03)
KINDS = ("weather", "earthquake")
MOST_SENSORS = 1_000_000


class Measured(Protocol):
    """What the sensors of a network measure."""

    kind: str
    tags: tuple[str, ...]
    quantities: Mapping[str, Quantity]

    def measure(self, number: int, place: Place, at: int) -> dict[str, float]: ...


@dataclass(frozen=True, slots=True)
class Simulation:
    """What to simulate: `interval` is in milliseconds between two readings of a sensor."""

    kind: str
    sensors: int
    seed: int = 1
    interval: int = 1000
    faults: SensorFaults = NO_FAULTS

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"there is no simulation of {self.kind!r}; choose one of {', '.join(KINDS)}")
        if not 1 <= self.sensors <= MOST_SENSORS:
            raise ValueError(f"{self.sensors} sensors cannot be simulated; give 1 to {MOST_SENSORS}")
        if self.interval < 1:
            raise ValueError(f"the interval is {self.interval} ms; give at least 1 ms")


class SimulatedNetwork:
    """The sensors of a simulation, as they are registered, and their readings."""

    def __init__(self, simulation: Simulation) -> None:
        self._simulation = simulation
        self._measured: Measured = (
            Weather(simulation.seed) if simulation.kind == "weather" else Earthquakes(simulation.seed, AREA)
        )
        chance = Chance(simulation.seed)
        own = [chance.uniforms("place", number) for number in range(simulation.sensors)]
        self.sensors = tuple(self._sensor(number, each[0], each[1]) for number, each in enumerate(own))
        phases = [(int(each[2] * simulation.interval), number) for number, each in enumerate(own)]
        self._turns = sorted(phases)

    def _sensor(self, number: int, east: float, north: float) -> PhysicalSensor:
        measured = self._measured
        return PhysicalSensor(
            id=f"{measured.kind}-{number + 1}",
            kind=measured.kind,
            quantities=measured.quantities,
            place=Place(
                round(AREA.west + east * (AREA.east - AREA.west), 5),
                round(AREA.south + north * (AREA.north - AREA.south), 5),
            ),
            tags=measured.tags,
            interval=self._simulation.interval / 1000,
        )

    def readings(self, start: int = START, length: int | None = None) -> Iterator[Reading]:
        """The readings from `start` on, for `length` milliseconds or without end."""
        simulation = self._simulation
        faulty = FaultySensors(simulation.faults, simulation.seed, self._measured.quantities, start)
        measure, sensors = self._measured.measure, self.sensors
        begins = start
        while length is None or begins < start + length:
            for phase, number in self._turns:
                at = begins + phase
                if length is not None and at >= start + length:
                    return
                repetitions = faulty.repetitions(number, at)
                if not repetitions:
                    continue
                sensor = sensors[number]
                place = sensor.place
                assert place is not None
                values = measure(number, place, at)
                faulty.disturb(number, at, values)
                reading = Reading(sensor.id, sensor.kind, at, values, place.longitude, place.latitude)
                for _ in range(repetitions):
                    yield reading
            begins += simulation.interval
