"""The results of a virtual sensor: what a closed window becomes, as an event and as a readable text.

The states of a result depend on the event before it, through hysteresis, and so does `changed`. A window
with readings of fewer sensors than the quorum is silence: it has no result, one without a value, or that of
the event before, as the template says.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from hpwsn.sensors.readings.reading_run import LARGEST
from hpwsn.sensors.readings.reading_times import time_text
from hpwsn.sensors.templates.bands import states_of
from hpwsn.sensors.templates.combining import combine, sensors_in, without_outliers
from hpwsn.sensors.templates.reading_windows import ClosedWindow
from hpwsn.sensors.templates.template import VirtualTemplate

_WHOLE = 1e15
"""Below this, a whole number is exact and is written without a fraction."""


class Before(NamedTuple):
    """What the next result needs of the event before it."""

    value: float | None
    states: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Result:
    """The result of one window; `time` is its end in milliseconds since 1970."""

    sensor: str
    time: int
    quantity: str
    unit: str
    value: float | None
    count: int
    sensors: int
    states: tuple[str, ...]
    changed: bool
    text: str

    def event(self) -> dict[str, Any]:
        """The JSON object that is published."""
        return {
            "sensor": self.sensor,
            "time": time_text(self.time),
            "quantity": self.quantity,
            "unit": self.unit,
            "value": _shown(self.value),
            "count": self.count,
            "sensors": self.sensors,
            "states": list(self.states),
            "changed": self.changed,
            "text": self.text,
        }

    @property
    def before(self) -> Before:
        """This result as the one before the next."""
        return Before(self.value, self.states)


def result_of(
    template: VirtualTemplate, unit: str, window: ClosedWindow, before: Before | None
) -> Result | None:
    """The result of a closed window, whose readings have this unit; None if nothing is published."""
    readings = window.readings
    if template.outliers is not None:
        readings = without_outliers(readings, template.outliers)
    sensors = sensors_in(readings)
    if sensors >= template.quorum:
        value = combine(template.combine, readings)
    elif template.silence == "null":
        value = None
    elif template.silence == "hold" and before is not None and before.value is not None:
        value = before.value
    else:
        return None
    known = () if before is None else before.states
    states = states_of(template.bands, template.hysteresis, value, known)
    return Result(
        sensor=template.name,
        time=window.end,
        quantity=template.quantity,
        unit=unit,
        value=value,
        count=len(readings),
        sensors=sensors,
        states=states,
        changed=before is None or set(states) != set(known),
        text=template.text.format(template.name, _shown(value), unit, states),
    )


def before_of(event: Mapping[str, Any]) -> Before:
    """What a published event means for the next result; what cannot be read of it counts as absent."""
    value, states = event.get("value"), event.get("states")
    is_number = type(value) in (int, float) and abs(value) <= LARGEST  # type: ignore[arg-type]
    named = states if isinstance(states, list) else [states]
    return Before(
        float(value) if is_number else None,  # type: ignore[arg-type]
        tuple(state for state in named if isinstance(state, str)),
    )


def _shown(value: float | None) -> float | int | None:
    """The value as it is published: a whole number has no fraction."""
    if value is None or not (abs(value) < _WHOLE and value == int(value)):
        return value
    return int(value)
