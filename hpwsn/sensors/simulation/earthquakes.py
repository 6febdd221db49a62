"""Simulated earthquakes: magnitude, temperature of the ionosphere and electromagnetic field at stations.

There is one earthquake in each 20 seconds, at a random place; small ones are ten times as frequent as those
that are one magnitude stronger. Its waves reach the stations one after another. A station reports the
magnitude that it estimates, which is close to 0 at rest and fades after an earthquake. Strong earthquakes
warm the ionosphere and disturb the field. The rate is much higher than in nature, so that a short trial has
something to show.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

from hpwsn.sensors.physical.physical_sensor import Place, Quantity
from hpwsn.sensors.physical.selection import Area
from hpwsn.sensors.simulation.chance import Chance

PERIOD_MS = 20_000
"""Time in which there is one earthquake."""
_SHAKES_MS = 60_000
"""Time after which nothing of an earthquake is left at a station."""
_SPEED = 6.0
"""Kilometres that a wave travels in a second."""
_KM_A_DEGREE = 111.32
_LEAST, _GREATEST = 4.0, 9.0


class Earthquake(NamedTuple):
    """An earthquake; `at` is in milliseconds since 1970."""

    at: int
    longitude: float
    latitude: float
    magnitude: float


class Earthquakes:
    """What seismic stations in an area measure."""

    kind = "earthquake"
    tags: tuple[str, ...] = ("simulated", "seismic")
    quantities: Mapping[str, Quantity] = {
        "magnitude": Quantity("dimensionless", -1, 10),
        "ionosphere_temperature": Quantity("K", 100, 3000),
        "electromagnetic_field": Quantity("V/m", 0, 1000),
    }

    def __init__(self, seed: int, area: Area) -> None:
        self._chance = Chance(seed)
        self._area = area
        self._earthquake = lru_cache(64)(self.earthquake)

    def earthquake(self, period: int) -> Earthquake:
        """The earthquake in a period of PERIOD_MS since 1970."""
        when, east, north, size, *_ = self._chance.uniforms("earthquake", period)
        west, south, *_ = self._area
        return Earthquake(
            at=int((period + when) * PERIOD_MS),
            longitude=west + east * (self._area.east - west),
            latitude=south + north * (self._area.north - south),
            magnitude=min(_GREATEST, _LEAST - math.log10(size)),
        )

    def measure(self, number: int, place: Place, at: int) -> dict[str, float]:
        """The values of station `number` at a time in milliseconds since 1970."""
        noise = self._chance.normals("earthquakes", number, at)
        magnitude = warmth = disturbance = 0.0
        period = at // PERIOD_MS
        for each in range(period - _SHAKES_MS // PERIOD_MS, period + 1):
            felt = self._felt(self._earthquake(each), place, at)
            magnitude = max(magnitude, felt)
            warmth += 12 * max(0.0, felt - 3)
            disturbance += felt**2
        return {
            "magnitude": round(max(0.0, magnitude + 0.08 * abs(noise[0])), 2),
            "ionosphere_temperature": round(280 + warmth + noise[1], 1),
            "electromagnetic_field": round(max(0.0, 5 + disturbance + 0.5 * noise[2]), 2),
        }

    @staticmethod
    def _felt(earthquake: Earthquake, place: Place, at: int) -> float:
        """The magnitude that a station still estimates; 0 before the wave arrives."""
        east = (place.longitude - earthquake.longitude) * math.cos(math.radians(place.latitude))
        distance = _KM_A_DEGREE * math.hypot(east, place.latitude - earthquake.latitude)
        since = at - earthquake.at - int(distance / _SPEED * 1000)
        if not 0 <= since < _SHAKES_MS:
            return 0.0
        return earthquake.magnitude * math.exp(-since / 10_000)
