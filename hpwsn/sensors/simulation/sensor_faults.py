"""Faults of simulated sensors: silence, drift, spikes and duplicates.

A sensor falls silent for periods of 20 seconds. A drifting sensor moves away from the true value by up to a
thousandth of its range in a second. A spike is a value anywhere in a range twice as wide as the sensor's:
about half of the spikes are outside the range, and a node rejects them. A duplicate is the same reading sent
again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields

from hpwsn.sensors.physical.physical_sensor import Quantity
from hpwsn.sensors.simulation.chance import Chance

SILENCE_MS = 20_000
"""Length of a period of silence."""
_DRIFT_A_MS = 1e-6
"""Largest drift in a millisecond, as a part of the range."""


@dataclass(frozen=True, slots=True)
class SensorFaults:
    """How frequent faults are, each as a number from 0 (never) to 1 (always)."""

    silence: float = 0.0
    """Part of the time in which a sensor is silent."""
    drift: float = 0.0
    """Part of the sensors that drift."""
    spikes: float = 0.0
    """Part of the readings that are spikes."""
    duplicates: float = 0.0
    """Part of the readings that are sent twice."""

    def __post_init__(self) -> None:
        for each in fields(self):
            value = getattr(self, each.name)
            if not 0 <= value <= 1:
                raise ValueError(f"{each.name} is {value:g}; give a number from 0 to 1")


NO_FAULTS = SensorFaults()


class FaultySensors:
    """The faults of all sensors of a network; `start` is when drifting begins, in milliseconds since 1970."""

    def __init__(
        self, faults: SensorFaults, seed: int, quantities: Mapping[str, Quantity], start: int
    ) -> None:
        self._faults = faults
        self._chance = Chance(seed)
        self._ranges = {name: _range_of(quantity) for name, quantity in quantities.items()}
        self._start = start

    def repetitions(self, sensor: int, at: int) -> int:
        """How often a reading is sent: 0 while its sensor is silent, 2 for a duplicate, else 1."""
        faults, chance = self._faults, self._chance
        if faults.silence:
            begins = int(chance.uniform("silence begins", sensor) * SILENCE_MS)
            if chance.uniform("silence", sensor, (at + begins) // SILENCE_MS) < faults.silence:
                return 0
        return 2 if faults.duplicates and chance.uniform("duplicate", sensor, at) < faults.duplicates else 1

    def disturb(self, sensor: int, at: int, values: dict[str, float]) -> None:
        """Change the true values of a reading to what the sensor reports."""
        faults, chance = self._faults, self._chance
        if faults.drift and chance.uniform("drifts", sensor) < faults.drift:
            ways = chance.uniforms("drift", sensor)
            for way, (name, value) in zip(ways, values.items(), strict=False):
                low, high = self._ranges[name]
                drift = (2 * way - 1) * _DRIFT_A_MS * (high - low) * (at - self._start)
                values[name] = round(value + drift, 2)
        if faults.spikes and chance.uniform("spike", sensor, at) < faults.spikes:
            which, where, *_ = chance.uniforms("spike of", sensor, at)
            name = list(values)[int(which * len(values))]
            low, high = self._ranges[name]
            values[name] = round((low + high) / 2 + (2 * where - 1) * (high - low), 2)


def _range_of(quantity: Quantity) -> tuple[float, float]:
    if quantity.low is None or quantity.high is None:
        raise ValueError(f"the range {quantity.low} to {quantity.high} has an open end; give both ends")
    return quantity.low, quantity.high
