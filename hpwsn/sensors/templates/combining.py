"""How the readings of a window become one value: mean, median, min, max, sum, count, last by time.

Readings further from the median than a number of median absolute deviations can be dropped before. Sums are
exact before they are rounded once (math.fsum), so that the order in which readings came does not matter.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from statistics import median

WindowReadings = Mapping[tuple[str, int], float]
"""The values of one quantity by sensor and time."""


def combine(how: str, readings: WindowReadings) -> float | None:
    """The value of at least one reading; None if it is larger than a number can be."""
    value = _COMBINATIONS[how](readings)
    return value if math.isfinite(value) else None


def without_outliers(readings: WindowReadings, most: float) -> WindowReadings:
    """The readings that are at most so many median absolute deviations from their median.

    Where more than half of the readings are equal, that deviation is 0 and only equal ones stay.
    """
    if not readings:
        return readings
    middle = median(readings.values())
    allowed = most * median([abs(value - middle) for value in readings.values()])
    return {key: value for key, value in readings.items() if abs(value - middle) <= allowed}


def sensors_in(readings: WindowReadings) -> int:
    """How many sensors the readings came from."""
    return len({sensor for sensor, _ in readings})


def _sum(readings: WindowReadings) -> float:
    try:
        return math.fsum(readings.values())
    except OverflowError:
        return math.inf


def _mean(readings: WindowReadings) -> float:
    found = _sum(readings) / len(readings)
    # A sum that no number can hold has a mean that one can.
    return found if math.isfinite(found) else float(sum(map(Fraction, readings.values())) / len(readings))


def _median(readings: WindowReadings) -> float:
    found = median(readings.values())
    return found if math.isfinite(found) else float(median(map(Fraction, readings.values())))


def _last(readings: WindowReadings) -> float:
    """The value with the latest time; of several sensors at that time, the one with the greatest id."""
    return readings[max(readings, key=lambda key: (key[1], key[0]))]


_COMBINATIONS: Mapping[str, Callable[[WindowReadings], float]] = {
    "mean": _mean,
    "median": _median,
    "min": lambda readings: min(readings.values()),
    "max": lambda readings: max(readings.values()),
    "sum": _sum,
    "count": len,
    "last": _last,
}
COMBINATIONS = tuple(_COMBINATIONS)
