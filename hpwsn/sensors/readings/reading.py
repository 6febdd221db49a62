"""A reading: the values that one sensor measured at one time, in the units that it was registered with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class Reading(NamedTuple):
    """A checked reading; `time` is in whole milliseconds since 1970."""

    sensor: str
    kind: str
    time: int
    values: Mapping[str, float]
    """By quantity, in the sensor's units; a reading may have only some of the sensor's quantities."""
    longitude: float | None = None
    latitude: float | None = None
