"""The checks of readings: every reason at its edge, and a fast way that never differs from the reference."""

import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpwsn.sensors.physical.physical_sensor import PhysicalSensor, parse_sensor
from hpwsn.sensors.physical.units import UnitRefused, exact_conversion
from hpwsn.sensors.readings.checks import (
    MALFORMED,
    RANGE,
    TIME,
    UNIT,
    UNKNOWN_QUANTITY,
    UNKNOWN_SENSOR,
    Checked,
    Newcomer,
    ReadingChecks,
    Rejection,
    Unconverted,
)
from hpwsn.sensors.readings.formats import RawReading, Unparsed
from hpwsn.sensors.readings.reading import Reading
from hpwsn.sensors.readings.reading_times import parse_time, time_text

NOW = 1_795_000_000_000
DAY, MINUTE = 86_400_000, 60_000
PLACED = parse_sensor(
    {
        "id": "s1",
        "kind": "weather",
        "quantities": {"t": {"unit": "degC", "min": -40, "max": 60}, "p": {"unit": "hPa"}},
        "place": {"longitude": 12.5, "latitude": -41},
    }
)
BARE = parse_sensor({"id": "s2", "kind": "weather", "quantities": {"low": {"unit": "K", "min": 0}}})
SENSORS = {sensor.id: sensor for sensor in (PLACED, BARE)}


def checks(sensors: dict[str, PhysicalSensor] | None = None, auto_register: bool = False) -> ReadingChecks:
    known = SENSORS if sensors is None else sensors
    return ReadingChecks(known.get, max_age=DAY, max_ahead=5 * MINUTE, auto_register=auto_register)


def checked(raw: RawReading, sensor: str | None = None, auto_register: bool = False) -> Checked:
    """The answer, after conversions that it asks for."""
    made = checks(auto_register=auto_register)
    while isinstance(found := made.check(raw, NOW, sensor), Unconverted):
        assert found not in made.conversions
        try:
            made.conversions[found] = exact_conversion(found.source, found.target)
        except UnitRefused:
            made.conversions[found] = None
    return found


def reason(raw: RawReading, sensor: str | None = None, auto_register: bool = False) -> str:
    found = checked(raw, sensor, auto_register)
    assert isinstance(found, Rejection), found
    assert len(found.detail) < 500
    return found.reason


def test_a_good_reading_has_the_place_of_its_sensor_and_the_time_of_now() -> None:
    assert checked({"sensor": "s1", "t": 21}) == Reading("s1", "weather", NOW, {"t": 21.0}, 12.5, -41.0)
    assert checked({"t": 21, "p": 1e3}, "s1") == Reading(
        "s1", "weather", NOW, {"t": 21.0, "p": 1000.0}, 12.5, -41.0
    )
    assert checked({"sensor": "s2", "low": 0}) == Reading("s2", "weather", NOW, {"low": 0.0})


def test_a_reading_may_name_its_kind_its_time_and_its_own_place() -> None:
    raw = {"kind": "weather", "time": "2026-11-18T05:06:40.25Z", "longitude": 1, "latitude": 2, "t": 0}
    assert checked(raw, "s1") == Reading(
        "s1", "weather", parse_time("2026-11-18T05:06:40.25Z") or 0, {"t": 0.0}, 1.0, 2.0
    )


@pytest.mark.parametrize(
    "raw",
    [
        Unparsed("x", "no JSON"),
        1,
        "s1",
        None,
        [],
        {},
        {"t": 1},
        {"sensor": None, "t": 1},
        {"sensor": 5, "t": 1},
        {"sensor": "s1"},
        {"sensor": "s1", "time": "2026-11-18T05:06:40Z"},
        {"sensor": "s1", "t": "21"},
        {"sensor": "s1", "t": None},
        {"sensor": "s1", "t": True},
        {"sensor": "s1", "t": [1]},
        {"sensor": "s1", "t": float("nan")},
        {"sensor": "s1", "t": float("inf")},
        {"sensor": "s1", "t": -float("inf")},
        {"sensor": "s1", "t": 10**400},
        {"sensor": "s1", "t": {"value": 1}},
        {"sensor": "s1", "t": {"value": 1, "unit": 5}},
        {"sensor": "s1", "t": {"value": "1", "unit": "degC"}},
        {"sensor": "s1", "t": {"value": 1, "unit": "degC", "more": 1}},
        {"sensor": "s1", "t": {"value": float("nan"), "unit": "degC"}},
        {"sensor": "s1", "t": 1, "time": None},
        {"sensor": "s1", "t": 1, "time": NOW},
        {"sensor": "s1", "t": 1, "time": "yesterday"},
        {"sensor": "s1", "t": 1, "time": "2026-11-18T05:06:40"},
        {"sensor": "s1", "t": 1, "kind": None},
        {"sensor": "s1", "t": 1, "kind": "quake"},
        {"sensor": "s1", "t": 1, "longitude": 1},
        {"sensor": "s1", "t": 1, "latitude": 1},
        {"sensor": "s1", "t": 1, "longitude": 180.1, "latitude": 0},
        {"sensor": "s1", "t": 1, "longitude": 0, "latitude": -90.1},
        {"sensor": "s1", "t": 1, "longitude": "0", "latitude": 0},
        # Whatever the sensor, the form comes first.
        {"sensor": "nobody", "t": "x"},
        {"sensor": "s1", "x" * 10_000: "x" * 10_000},
        {"sensor": "s1", "t": "x" * 10_000, "time": "x" * 10_000},
    ],
)
def test_what_has_another_form_is_malformed(raw: RawReading) -> None:
    assert reason(raw) == MALFORMED


def test_the_address_and_the_reading_must_name_the_same_sensor() -> None:
    assert isinstance(checked({"sensor": "s1", "t": 1}, "s1"), Reading)
    assert reason({"sensor": "s1", "t": 1}, "s2") == MALFORMED
    assert reason({"sensor": "s2", "t": 1}, "s1") == MALFORMED


@pytest.mark.parametrize("name", ["nobody", "", "S1", "x" * 100_000])
def test_a_reading_of_a_sensor_that_is_not_registered_is_rejected(name: str) -> None:
    assert reason({"sensor": name, "t": 1}) == UNKNOWN_SENSOR
    assert reason({"t": 1}, name) == UNKNOWN_SENSOR
    assert reason({"sensor": name, "kind": "weather", "t": 1}) == UNKNOWN_SENSOR


def test_a_quantity_that_the_sensor_does_not_measure_is_rejected() -> None:
    assert reason({"sensor": "s1", "t": 1, "T": 1}) == UNKNOWN_QUANTITY
    assert reason({"sensor": "s2", "t": 1}) == UNKNOWN_QUANTITY
    assert reason({"sensor": "s1", "": 1}) == UNKNOWN_QUANTITY


@pytest.mark.parametrize(
    ("value", "unit", "expected"),
    [
        (50, "degF", 10.0),
        (140, "degF", 60.0),
        (293.15, "K", 20.0),
        (10.1, "degC", 10.1),
        (10.1, "celsius", 10.1),
        (-40, "°F", -40.0),
    ],
)
def test_values_are_converted_to_the_unit_of_the_registration(
    value: float, unit: str, expected: float
) -> None:
    found = checked({"sensor": "s1", "t": {"value": value, "unit": unit}})
    assert isinstance(found, Reading)
    assert found.values["t"] == expected


@pytest.mark.parametrize("unit", ["hPa", "m/s", "parsnip", "", "x" * 10_000])
def test_a_unit_that_does_not_convert_is_rejected(unit: str) -> None:
    assert reason({"sensor": "s1", "t": {"value": 10, "unit": unit}}) == UNIT


def test_the_range_includes_its_ends_and_is_that_of_the_unit_of_the_registration() -> None:
    for value in (-40, 60):
        assert isinstance(checked({"sensor": "s1", "t": value}), Reading)
    for value in (-40.0001, 60.0001, -1e300, sys.float_info.max):
        assert reason({"sensor": "s1", "t": value}) == RANGE
    assert isinstance(checked({"sensor": "s1", "t": {"value": 140, "unit": "degF"}}), Reading)
    assert reason({"sensor": "s1", "t": {"value": 140.1, "unit": "degF"}}) == RANGE
    assert reason({"sensor": "s2", "low": -0.1}) == RANGE
    assert isinstance(checked({"sensor": "s2", "low": sys.float_info.max}), Reading)
    # A value that overflows in the sensor's unit is in no range.
    assert reason({"sensor": "s1", "p": {"value": 1e308, "unit": "GPa"}}) == RANGE


@pytest.mark.parametrize(
    ("offset", "good"),
    [(-DAY, True), (-DAY - 1, False), (5 * MINUTE, True), (5 * MINUTE + 1, False), (0, True)],
)
def test_a_time_may_be_as_old_or_as_far_ahead_as_allowed(offset: int, good: bool) -> None:
    raw = {"sensor": "s1", "t": 1, "time": time_text(NOW + offset)}
    if good:
        found = checked(raw)
        assert isinstance(found, Reading)
        assert found.time == NOW + offset
    else:
        assert reason(raw) == TIME


@pytest.mark.parametrize("time", ["0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z"])
def test_the_first_and_the_last_time_there_is_are_only_far_off(time: str) -> None:
    assert reason({"sensor": "s1", "t": 1, "time": time}) == TIME


def test_the_first_reason_is_told() -> None:
    old = "2020-01-01T00:00:00Z"
    assert reason({"sensor": "no", "t": "x", "x": 1, "time": old}) == MALFORMED
    assert reason({"sensor": "no", "t": 999, "x": 1, "time": old}) == UNKNOWN_SENSOR
    wrong_unit = {"value": 999, "unit": "m"}
    assert reason({"sensor": "s1", "t": wrong_unit, "x": 1, "time": old}) == UNKNOWN_QUANTITY
    assert reason({"sensor": "s1", "p": wrong_unit, "t": 999, "time": old}) == UNIT
    assert reason({"sensor": "s1", "t": 999, "time": old}) == RANGE
    assert reason({"sensor": "s1", "t": 9, "time": old}) == TIME


def test_an_unknown_sensor_may_be_registered_by_its_first_reading() -> None:
    raw = {
        "sensor": "new",
        "kind": "quake",
        "m": {"value": 3, "unit": "m/s"},
        "n": 1,
        "longitude": 1,
        "latitude": 2,
    }
    assert checked(raw, auto_register=True) == Newcomer(
        parse_sensor(
            {
                "id": "new",
                "kind": "quake",
                "quantities": {"m": {"unit": "m/s"}, "n": {"unit": "dimensionless"}},
                "place": {"longitude": 1, "latitude": 2},
            }
        )
    )
    assert reason({"sensor": "new", "m": 1}, auto_register=True) == UNKNOWN_SENSOR
    assert reason({"sensor": "two words", "kind": "quake", "m": 1}, auto_register=True) == MALFORMED
    assert reason({"sensor": "new", "kind": "two words", "m": 1}, auto_register=True) == MALFORMED
    assert reason({"sensor": "new", "kind": "quake", "day": 1}, auto_register=True) == MALFORMED
    old = {"sensor": "new", "kind": "quake", "m": 1, "time": "2020-01-01T00:00:00Z"}
    assert reason(old, auto_register=True) == TIME


def test_a_sensor_that_is_registered_again_is_checked_by_its_new_registration() -> None:
    sensors = dict(SENSORS)
    made = checks(sensors)
    assert isinstance(made.check({"sensor": "s1", "t": 1}, NOW), Reading)
    sensors["s1"] = parse_sensor({"id": "s1", "kind": "weather", "quantities": {"x": {"unit": "K"}}})
    made.forget("s1")
    found = made.check({"sensor": "s1", "t": 1}, NOW)
    assert isinstance(found, Rejection)
    assert found.reason == UNKNOWN_QUANTITY
    assert isinstance(made.check({"sensor": "s1", "x": 1}, NOW), Reading)
    del sensors["s1"]
    made.forget("s1")
    found = made.check({"sensor": "s1", "x": 1}, NOW)
    assert isinstance(found, Rejection)
    assert found.reason == UNKNOWN_SENSOR


def test_sensors_with_many_different_quantities_are_all_checked_by_their_own() -> None:
    sensors = {
        f"s{n}": parse_sensor(
            {"id": f"s{n}", "kind": "k", "quantities": {"t": {"unit": "K", "max": n}, f"t{n}": {"unit": "K"}}}
        )
        for n in range(500)
    }
    made = checks(sensors)
    for n in range(500):
        assert isinstance(made.check({"sensor": f"s{n}", "t": n, f"t{n}": 1e6}, NOW), Reading)
        assert isinstance(made.check({"sensor": f"s{n}", "t": n + 1}, NOW), Rejection)


VALUES = st.one_of(
    st.floats(),
    st.integers(-100, 100),
    st.integers(),
    st.sampled_from([-40, 60, 10**400, -(10**400), True, None, "1", [], {}]),
    st.fixed_dictionaries(
        {
            "value": st.floats(-50, 70) | st.none(),
            "unit": st.sampled_from(["degC", "degF", "hPa", "no", None]),
        }
    ),
)
TIMES = st.one_of(
    st.integers(NOW - DAY - 3, NOW - DAY + 3).map(time_text),
    st.integers(NOW + 5 * MINUTE - 3, NOW + 5 * MINUTE + 3).map(time_text),
    st.integers(NOW - DAY, NOW).map(time_text),
    st.sampled_from(["now", "", None, 5, "2026-11-18T05:06:40", "0001-01-01T00:00:00+23:59"]),
)
RAW = st.one_of(
    st.fixed_dictionaries(
        {},
        optional={
            "sensor": st.sampled_from(["s1", "s1", "s2", "no", "", None, 1]),
            "kind": st.sampled_from(["weather", "weather", "quake", None, 1]),
            "time": TIMES,
            "t": VALUES,
            "p": VALUES,
            "low": VALUES,
            "longitude": st.floats(-181, 181) | st.none(),
            "latitude": st.floats(-91, 91) | st.none(),
        },
    ),
    st.none() | st.integers() | st.text() | st.lists(st.none()) | st.just(Unparsed("x", "wrong")),
)


@given(RAW, st.sampled_from([None, "s1", "s2", "no"]), st.booleans(), st.booleans())
def test_the_fast_way_gives_the_answer_of_the_reference(
    raw: RawReading, sensor: str | None, auto_register: bool, converts: bool
) -> None:
    made = checks(auto_register=auto_register)
    if converts:
        made.conversions[("degF", "degC")] = exact_conversion("degF", "degC")
        made.conversions[("hPa", "degC")] = made.conversions[("no", "degC")] = None
    before: Any = dict(raw) if isinstance(raw, dict) else raw
    assert made.check(raw, NOW, sensor) == made.judge(raw, NOW, sensor)
    assert repr(raw) == repr(before), "a check changes nothing in what it checks"
