"""Bands of a value: normal bands, unusual states, several and overlapping ranges, and discrete values.

A band has a name and bounds, both included; one bound may be missing, and a discrete value is a band whose
bounds are equal. Bands may overlap and may share a name, so that one state can have several ranges. The
states of a value are the names of the bands that hold it. With hysteresis, a state ends only when the value
has left its bands by more than the hysteresis, so that a value at a bound does not change states each time.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from hpwsn.sensors.physical.physical_sensor import LONGEST_NAME, SensorRefused, is_line, number, shown

MOST_BANDS = 100


@dataclass(frozen=True, slots=True)
class Band:
    """A named range with its bounds; None is unbounded."""

    name: str
    low: float | None = None
    high: float | None = None

    def holds(self, value: float, widened: float = 0.0) -> bool:
        """Whether the value is in the band, after each bound was moved outwards."""
        return (self.low is None or value >= self.low - widened) and (
            self.high is None or value <= self.high + widened
        )

    def document(self) -> dict[str, Any]:
        """The JSON form, which parse_bands reads."""
        bounds = {"low": self.low, "high": self.high}
        return {"name": self.name, **{name: bound for name, bound in bounds.items() if bound is not None}}


def states_of(
    bands: Sequence[Band], hysteresis: float, value: float | None, before: Collection[str]
) -> tuple[str, ...]:
    """The names of the bands that hold a value, in the order of the bands; None has no states.

    `before` has the states of the last event: their bands are widened by the hysteresis.
    """
    if value is None:
        return ()
    held = [band.name for band in bands if band.holds(value, hysteresis if band.name in before else 0.0)]
    return tuple(dict.fromkeys(held))


def parse_bands(value: object) -> tuple[Band, ...]:
    """The bands of a list of objects; SensorRefused says what is wrong."""
    if not isinstance(value, list | tuple) or len(value) > MOST_BANDS:
        raise SensorRefused(
            f"bands is {shown(value)}; give a list of at most {MOST_BANDS} objects such as"
            ' {"name": "high", "low": 30}'
        )
    return tuple(_band(each) for each in value)


def _band(value: object) -> Band:
    if not isinstance(value, dict) or not set(value) <= {"name", "low", "high"} or "name" not in value:
        raise SensorRefused(f'a band is {shown(value)}; give {{"name": …, "low": …, "high": …}}')
    name = value["name"]
    if not is_line(name) or not name:
        raise SensorRefused(
            f"the name of a band is {shown(name)}; give a text of 1 to {LONGEST_NAME} characters in one line"
        )
    low, high = (
        None if value.get(end) is None else number(f"{end} of the band {name!r}", value[end])
        for end in ("low", "high")
    )
    if low is None and high is None:
        raise SensorRefused(f"the band {name!r} has no bound; give low, high or both")
    if low is not None and high is not None and low > high:
        raise SensorRefused(f"the band {name!r} has low {low:g} above high {high:g}; exchange them")
    return Band(name, low, high)
