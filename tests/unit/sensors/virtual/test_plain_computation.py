"""Results equal a plain computation over the same readings, with late, repeated, missing and wrong ones.

The readings pass through the real intake, and the windows close by the clock. The plain computation knows
only which readings were accepted and when, and the words of the contract.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hpwsn.sensors.templates.combining import COMBINATIONS
from tests.unit.sensors.virtual.virtual_field import START, Field, at, sensor, template
from tests.virtual_time import run

SENSORS = ("s1", "s2", "s3")
BANDS = [
    {"name": "cold", "high": 0},
    {"name": "normal", "low": -2, "high": 6},
    {"name": "odd", "low": 5},
    {"name": "odd", "high": -8},
    {"name": "exactly 3", "low": 3, "high": 3},
]
END = 60_000
"""When the last window has long been closed, in milliseconds since START."""


class Sent(NamedTuple):
    """A reading that is sent some milliseconds after the one before, with a time so far from then."""

    pause: int
    sensor: str
    off: int
    value: float | None


class Accepted(NamedTuple):
    """A reading that was accepted, when, and of which time."""

    came: int
    sensor: str
    time: int
    value: float


# A reading never comes at the millisecond in which a window closes: those are even.
sent = st.builds(
    Sent,
    st.integers(0, 400).map(lambda number: 2 * number),
    st.sampled_from(SENSORS),
    st.sampled_from([0, 1, -1, -400, -1100, -3000, 900, 5000]) | st.integers(-2500, 1500),
    st.none() | st.integers(-20, 20).map(lambda number: number / 2) | st.floats(-10, 10),
)
templates = st.fixed_dictionaries(
    {
        "every": st.sampled_from([0.1, 0.5, 1, 2.5]),
        "lateness": st.sampled_from([0, 0.1, 1, 3]),
        "quorum": st.integers(1, 3),
        "silence": st.sampled_from(["skip", "null", "hold"]),
        "hysteresis": st.sampled_from([0, 1, 2.5]),
        "bands": st.lists(st.sampled_from(BANDS), max_size=5),
        "outliers": st.none() | st.sampled_from([0, 1, 3]),
    }
)


def plain_value(how: str, readings: Sequence[Accepted]) -> float:
    values = [each.value for each in readings]
    if how == "last":
        return max(readings, key=lambda each: (each.time, each.sensor)).value
    return {
        "mean": statistics.fmean,
        "median": statistics.median,
        "min": min,
        "max": max,
        "sum": math.fsum,
        "count": len,
    }[how](values)


def kept(readings: list[Accepted], outliers: float | None) -> list[Accepted]:
    if outliers is None or not readings:
        return readings
    middle = statistics.median(each.value for each in readings)
    deviation = statistics.median(abs(each.value - middle) for each in readings)
    return [each for each in readings if abs(each.value - middle) <= outliers * deviation]


def plainly(how: str, fields: dict[str, Any], accepted: list[Accepted]) -> list[dict[str, Any]]:
    """The events by the words of the contract, in the order of their windows."""
    every, lateness = round(fields["every"] * 1000), round(fields["lateness"] * 1000)
    begin = (START - lateness) // every * every
    found: list[dict[str, Any]] = []
    while (end := begin + every) + lateness <= START + END:
        within = [each for each in accepted if begin <= each.time < end and each.came < end + lateness]
        within = kept(within, fields["outliers"])
        begin = end
        sensors = len({each.sensor for each in within})
        before = found[-1] if found else None
        value: float | None
        if sensors >= fields["quorum"]:
            value = plain_value(how, within)
        elif fields["silence"] == "null":
            value = None
        elif fields["silence"] == "hold" and before is not None:
            value = before["value"]
        else:
            continue
        known = before["states"] if before is not None else []
        states = []
        for band in fields["bands"]:
            wide = fields["hysteresis"] if band["name"] in known else 0
            low, high = band.get("low", -math.inf) - wide, band.get("high", math.inf) + wide
            if value is not None and low <= value <= high and band["name"] not in states:
                states.append(band["name"])
        found.append(
            {
                "time": end,
                "value": value,
                "count": len(within),
                "sensors": sensors,
                "states": states,
                "changed": before is None or set(states) != set(known),
            }
        )
    return found


async def experience(how: str, fields: dict[str, Any], arrivals: list[Sent]) -> None:
    field = Field(*map(sensor, SENSORS))
    field.start(combine=how, **fields)
    accepted: list[Accepted] = []
    now, times = 1, set()
    for pause, name, off, value in arrivals:
        now += pause
        await field.until(now)
        values = {"h": 1.0} if value is None else {"t": value}
        taken = await field.take(at(now + off, name, **values))
        key = (name, now + off)
        if value is None:
            assert taken.errors == [(0, "unknown-quantity")]
        elif key in times:
            assert taken.errors == [(0, "duplicate")]
        else:
            assert taken.accepted == 1
            times.add(key)
            accepted.append(Accepted(START + now, name, START + now + off, value))
    await field.until(END)
    expected = plainly(how, fields, accepted)
    text = template(combine=how, **fields).text
    events = [result.event() for result in field.published.results]
    assert [(each["value"], each["count"], each["sensors"]) for each in events] == [
        (each["value"], each["count"], each["sensors"]) for each in expected
    ]
    for result, event, plain in zip(field.published.results, events, expected, strict=True):
        assert (result.time, event["states"], event["changed"]) == (
            plain["time"],
            plain["states"],
            plain["changed"],
        )
        assert (event["sensor"], event["quantity"], event["unit"]) == ("hall", "t", "degC")
        assert event["text"] == text.format("hall", event["value"], "degC", plain["states"])
    await field.running.close()


@pytest.mark.parametrize("how", COMBINATIONS)
@settings(max_examples=60)
@given(templates, st.lists(sent, max_size=40))
def test_results_are_what_the_contract_says(how: str, fields: dict[str, Any], arrivals: list[Sent]) -> None:
    run(experience(how, fields, arrivals))
