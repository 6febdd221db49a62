"""Results: values, silence, quorum, outliers, states and changes from event to event."""

from __future__ import annotations

import json
from typing import Any

import pytest

from hpwsn.sensors.templates.reading_windows import ClosedWindow
from hpwsn.sensors.templates.result import Before, Result, before_of, result_of
from hpwsn.sensors.templates.template import parse_template

END = 1_700_000_060_000


def template(**fields: Any) -> Any:
    return parse_template("north", {"quantity": "t", "every": 60, **fields})


def window(*values: float) -> ClosedWindow:
    """A reading for each of several sensors."""
    return ClosedWindow(END, {(f"s{number}", END - 1): value for number, value in enumerate(values)})


def result(values: tuple[float, ...], before: Before | None = None, **fields: Any) -> Result:
    found = result_of(template(**fields), "degC", window(*values), before)
    assert found is not None
    return found


def test_the_event_of_a_window_has_the_fields_of_the_contract() -> None:
    found = result((20, 21, 31), bands=[{"name": "high", "low": 24}], text="{name} {value} {unit} {states}")
    assert found.event() == {
        "sensor": "north",
        "time": "2023-11-14T22:14:20.000Z",
        "quantity": "t",
        "unit": "degC",
        "value": 24,
        "count": 3,
        "sensors": 3,
        "states": ["high"],
        "changed": True,
        "text": "north 24 degC high",
    }


@pytest.mark.parametrize(
    ("value", "text"), [(20.0, "20"), (20.5, "20.5"), (-0.25, "-0.25"), (1e300, "1e+300"), (2.0**60, None)]
)
def test_a_whole_number_is_published_without_a_fraction(value: float, text: str | None) -> None:
    published = result((value,)).event()["value"]
    assert published == value
    assert text is None or json.dumps(published) == text


def test_fewer_sensors_than_the_quorum_are_silence() -> None:
    assert result((1, 2), quorum=2).value == 1.5
    assert result_of(template(quorum=3), "", window(1, 2), None) is None


def test_a_sensor_with_many_readings_is_one_of_the_quorum() -> None:
    readings = ClosedWindow(END, {("a", END - 2): 1.0, ("a", END - 1): 2.0})
    assert result_of(template(quorum=2), "", readings, None) is None


def test_a_silent_window_has_no_event_by_default() -> None:
    assert result_of(template(), "", window(), None) is None


def test_a_silent_window_can_have_an_event_without_a_value() -> None:
    found = result((), Before(30.0, ("high",)), silence="null", bands=[{"name": "high", "low": 24}])
    assert (found.value, found.states, found.changed, found.count, found.sensors) == (None, (), True, 0, 0)
    assert found.event()["value"] is None
    assert found.text == "north: no value degC ()"


def test_a_silent_window_below_the_quorum_tells_how_many_sensors_it_had() -> None:
    found = result((1, 2), quorum=3, silence="null")
    assert (found.value, found.count, found.sensors) == (None, 2, 2)


def test_a_silent_window_can_hold_the_value_of_the_event_before() -> None:
    bands = [{"name": "high", "low": 24}]
    found = result((), Before(23.5, ("high",)), silence="hold", bands=bands, hysteresis=1)
    assert (found.value, found.states, found.changed, found.count) == (23.5, ("high",), False, 0)


@pytest.mark.parametrize("before", [None, Before(None, ())])
def test_without_a_value_before_nothing_is_held(before: Before | None) -> None:
    assert result_of(template(silence="hold"), "", window(), before) is None


def test_outliers_count_neither_as_readings_nor_for_the_quorum() -> None:
    found = result((20, 21, 22, 500), outliers=3)
    assert (found.value, found.count, found.sensors) == (21, 3, 3)
    assert result_of(template(outliers=3, quorum=4), "", window(20, 21, 22, 500), None) is None


def test_a_change_is_a_change_of_states_from_the_event_before() -> None:
    bands = [{"name": "low", "high": 10}, {"name": "high", "low": 30}]
    before, changes = None, []
    for value in (20, 21, 31, 33, 5, 6, 20):
        found = result((value,), before, bands=bands)
        changes.append((found.states, found.changed))
        before = found.before
    assert changes == [
        ((), True),
        ((), False),
        (("high",), True),
        (("high",), False),
        (("low",), True),
        (("low",), False),
        ((), True),
    ]


def test_hysteresis_follows_the_event_before() -> None:
    bands = [{"name": "high", "low": 30}]
    before, states = None, []
    for value in (29, 30, 29, 28, 27.5, 29, 31):
        found = result((value,), before, bands=bands, hysteresis=2)
        states.append(found.states)
        before = found.before
    high = ("high",)
    assert states == [(), high, high, high, (), (), high]


def test_states_in_another_order_are_no_change() -> None:
    bands = [{"name": "a", "low": 1}, {"name": "b", "low": 1}]
    assert not result((2,), Before(2.0, ("b", "a")), bands=bands).changed


def test_a_sum_that_no_number_can_hold_has_no_value() -> None:
    assert result((1e308, 1e308), combine="sum").event()["value"] is None


def test_a_result_comes_back_from_its_event() -> None:
    found = result((31,), bands=[{"name": "high", "low": 24}])
    assert before_of(found.event()) == found.before


@pytest.mark.parametrize(
    ("event", "before"),
    [
        ({}, Before(None, ())),
        ({"value": "x", "states": 3}, Before(None, ())),
        ({"value": 10**400}, Before(None, ())),
        ({"value": True, "states": [1, "a"]}, Before(None, ("a",))),
        ({"value": 3, "states": "a"}, Before(3.0, ("a",))),
    ],
)
def test_an_event_of_somebody_else_is_read_as_far_as_possible(event: Any, before: Before) -> None:
    assert before_of(event) == before
