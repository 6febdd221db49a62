"""The text of a result from its pattern."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpwsn.sensors.physical.physical_sensor import SensorRefused
from hpwsn.sensors.templates.result_text import LONGEST_TEXT, parse_pattern


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("{name}: {value} {unit} ({states})", "north: 21.37 K (warm, rising)"),
        ("{value:.1f} {unit}", "21.4 K"),
        ("{value:,.0f}", "21"),
        ("no field", "no field"),
        ("", ""),
        ("{{{name}}}", "{north}"),
        ("Gefrierpunkt fern \N{SNOWFLAKE}", "Gefrierpunkt fern \N{SNOWFLAKE}"),
    ],
)
def test_a_pattern_becomes_a_text(pattern: str, text: str) -> None:
    assert parse_pattern(pattern).format("north", 21.369999999999997, "K", ["warm", "rising"]) == text


@pytest.mark.parametrize(
    ("value", "text"), [(None, "no value"), (20.0, "20"), (20, "20"), (12345678901, "12345678901")]
)
def test_a_value_is_shown_without_the_noise_of_its_sum(value: float | None, text: str) -> None:
    assert parse_pattern("{value}").format("", value, "", ()) == text


def test_no_states_are_an_empty_text() -> None:
    assert parse_pattern("[{states}]").format("", 1, "", ()) == "[]"


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        (3, "text is 3"),
        ("{temperature}", "the field {temperature} is unknown"),
        ("{}", "the field {} is unknown"),
        ("{0}", "the field {0} is unknown"),
        ("{name.__class__}", "is unknown"),
        ("{name", "known fields are"),
        ("name}", "known fields are"),
        ("{name!r}", "has a format that is unknown"),
        ("{name:>10}", "has a format that is unknown"),
        ("{value:100d}", "has a format that is unknown"),
        ("{value:.999f}", "has a format that is unknown"),
        ("{value:{unit}}", "has a format that is unknown"),
        ("a\nb", "in one line"),
        ("x" * (LONGEST_TEXT + 1), "at most 1000 characters"),
    ],
)
def test_a_pattern_that_is_not_valid_is_refused(pattern: object, words: str) -> None:
    with pytest.raises(SensorRefused) as refused:
        parse_pattern(pattern)
    assert words in str(refused.value)


def test_the_longest_pattern_is_accepted() -> None:
    assert parse_pattern("x" * LONGEST_TEXT).format("", 1, "", ()) == "x" * LONGEST_TEXT


@given(
    st.from_regex(r"[-+ ]?0?[0-9]{0,2},?(\.[0-9]{1,2})?[eEfFgG%]?", fullmatch=True),
    st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(10**15), 10**15),
)
def test_every_accepted_format_can_format_any_value(form: str, value: float) -> None:
    assert parse_pattern(f"{{value:{form}}}").format("", value, "", ())
