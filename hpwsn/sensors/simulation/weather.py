"""Simulated weather: temperature, humidity, pressure and wind of stations in a rectangle.

The model is small but plausible: the temperature follows the hour of the day, fronts pass from west to east,
and pressure, humidity and wind follow the front. Each station has a constant error, and each reading a noise.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from hpwsn.sensors.physical.physical_sensor import Place, Quantity
from hpwsn.sensors.simulation.chance import Chance, Uniforms

DAY_MS = 86_400_000
_FRONT_MS = 3 * 3_600_000
"""Time between two fronts."""
_WARMEST = 14 / 24
"""The part of the day at which it is warmest, in UTC."""


class Weather:
    """What weather stations measure; the hours of the day are those of UTC."""

    kind = "weather"
    tags: tuple[str, ...] = ("simulated", "weather")
    quantities: Mapping[str, Quantity] = {
        "temperature": Quantity("degC", -60, 60),
        "humidity": Quantity("percent", 0, 100),
        "pressure": Quantity("hPa", 850, 1100),
        "wind": Quantity("m/s", 0, 90),
    }

    def __init__(self, seed: int) -> None:
        self._chance = Chance(seed)
        self._own: dict[int, Uniforms] = {}

    def measure(self, number: int, place: Place, at: int) -> dict[str, float]:
        """The values of station `number` at a time in milliseconds since 1970."""
        own = self._own.get(number)
        if own is None:
            own = self._own[number] = self._chance.uniforms("station", number)
        noise = self._chance.normals("weather", number, at)
        day = math.cos(math.tau * (at % DAY_MS / DAY_MS - _WARMEST))
        front = math.sin(math.tau * (at % _FRONT_MS / _FRONT_MS - place.longitude / 2))
        temperature = 14 + 7 * day - 2.5 * front - 0.8 * (place.latitude - 40) + 2 * own[0]
        humidity = 58 - 18 * day + 16 * front + 6 * own[1]
        wind = 4 + 3 * abs(front) + 2 * own[2]
        return {
            "temperature": round(temperature + 0.2 * noise[0], 2),
            "humidity": round(min(100.0, max(0.0, humidity + noise[1])), 1),
            "pressure": round(1013 - 7 * front + own[3] + 0.1 * noise[2], 1),
            "wind": round(max(0.0, wind + 0.6 * noise[3]), 1),
        }
