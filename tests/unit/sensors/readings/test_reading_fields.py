"""The fields of raw readings, and errors that say which one is wrong and never repeat much of it."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpwsn.sensors.physical.physical_sensor import shown
from hpwsn.sensors.readings.formats import Unparsed
from hpwsn.sensors.readings.reading_fields import Fields, Malformed, fields_of

NOW = 1_795_000_000_000


def test_a_whole_reading_has_all_its_fields() -> None:
    raw = {
        "sensor": "s1",
        "kind": "weather",
        "time": "1970-01-01T00:00:01.5Z",
        "longitude": -180,
        "latitude": 90,
        "t": {"unit": "degC", "value": 5},
        "p": 1.5,
    }
    assert fields_of(raw, NOW, None) == Fields(
        "s1", "weather", 1500, (-180.0, 90.0), {"t": (5.0, "degC"), "p": (1.5, None)}
    )


def test_the_address_names_the_sensor_and_now_is_the_time() -> None:
    assert fields_of({"t": 1}, NOW, "s1") == Fields("s1", None, NOW, None, {"t": (1.0, None)})


def test_names_of_quantities_are_not_judged_here() -> None:
    assert fields_of({"": 1, "offset": 2}, NOW, "s1").measured == {"": (1.0, None), "offset": (2.0, None)}


@pytest.mark.parametrize(
    ("raw", "problem"),
    [
        (Unparsed("x", "the line is not JSON"), "the line is not JSON"),
        ([{"t": 1}], "a reading is a JSON object"),
        ({"sensor": 1, "t": 1}, "sensor is 1;"),
        ({"sensor": None, "t": 1}, "the field sensor is missing"),
        ({"sensor": "s2", "t": 1}, "sensor is 's2', and the address names 's1'"),
        ({"kind": 1, "t": 1}, "kind is 1;"),
        ({"time": 1, "t": 1}, "time is 1;"),
        ({"time": "x", "t": 1}, "time is 'x'; give RFC 3339"),
        ({"longitude": 1, "t": 1}, "latitude is None;"),
        ({"longitude": 1, "latitude": "x", "t": 1}, "latitude is 'x'"),
        ({"longitude": 181, "latitude": 0, "t": 1}, "longitude is 181"),
        ({"time": "1970-01-01T00:00:01Z"}, "there is no value"),
        ({"t": "x"}, "'t' is 'x'"),
        ({"t": {"value": 1, "unit": 1}}, "'t' is {"),
        ({"t": Unparsed("{}", "the field 'value' is given twice")}, "'t': the field 'value' is given twice"),
    ],
)
def test_an_error_names_the_field_and_its_value(raw: Any, problem: str) -> None:
    with pytest.raises(Malformed) as refused:
        fields_of(raw, NOW, "s1")
    assert problem in str(refused.value)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    )
)
def test_any_json_value_is_a_reading_or_a_short_error(value: Any) -> None:
    for raw in (value, {"t": value}, {"time": value, "t": 1}, {"sensor": value, "t": 1}):
        try:
            found = fields_of(raw, NOW, None if isinstance(raw, dict) else "s1")
        except Malformed as error:
            assert len(str(error)) < 500
        else:
            assert found.measured


@pytest.mark.parametrize(
    "value", ["x" * 10**6, ["x" * 10**6] * 1000, {f"q{n}": n for n in range(10**5)}, 10**4000]
)
def test_what_is_long_is_cut(value: object) -> None:
    assert len(shown(value)) < 500
