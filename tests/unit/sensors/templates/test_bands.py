"""Bands: normal, unusual, several, overlapping, discrete; and hysteresis between them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpwsn.sensors.physical.physical_sensor import SensorRefused
from hpwsn.sensors.templates.bands import MOST_BANDS, Band, parse_bands, states_of

LOW_NORMAL_HIGH = (Band("low", high=10), Band("normal", 10, 30), Band("high", low=30))


@pytest.mark.parametrize(
    ("value", "states"),
    [
        (-5, ("low",)),
        (10, ("low", "normal")),
        (20, ("normal",)),
        (30, ("normal", "high")),
        (31, ("high",)),
        (None, ()),
    ],
)
def test_a_value_is_in_the_bands_whose_bounds_include_it(
    value: float | None, states: tuple[str, ...]
) -> None:
    assert states_of(LOW_NORMAL_HIGH, 0, value, ()) == states


def test_several_ranges_of_one_name_are_one_state() -> None:
    unusual = (Band("unusual", high=10), Band("unusual", low=30), Band("unusual", low=35))
    assert [states_of(unusual, 0, value, ()) for value in (5, 20, 40)] == [("unusual",), (), ("unusual",)]


def test_overlapping_bands_hold_together_in_the_order_of_their_definition() -> None:
    bands = (Band("hot", low=30), Band("warm", low=20), Band("mild", 15, 32))
    assert states_of(bands, 0, 31, ()) == ("hot", "warm", "mild")


def test_a_discrete_value_is_a_band_with_equal_bounds() -> None:
    bands = (Band("350 K", 350, 350), Band("375 K", 375, 375))
    assert [states_of(bands, 0, value, ()) for value in (350, 351, 375)] == [("350 K",), (), ("375 K",)]


@pytest.mark.parametrize(
    ("value", "before", "states"),
    [
        (29, ("high",), ("normal", "high")),
        (28, ("high",), ("normal", "high")),
        (27.9, ("high",), ("normal",)),
        (29, ("normal",), ("normal",)),
        (29, (), ("normal",)),
        (31, ("normal",), ("normal", "high")),
        (33, ("normal",), ("high",)),
    ],
)
def test_a_state_ends_once_the_value_left_its_band_by_more_than_the_hysteresis(
    value: float, before: tuple[str, ...], states: tuple[str, ...]
) -> None:
    assert states_of(LOW_NORMAL_HIGH, 2, value, before) == states


bounds = st.one_of(st.none(), st.integers(-20, 20))
bands = st.lists(
    st.builds(Band, st.sampled_from("abc"), bounds, bounds).filter(
        lambda band: band.low is None or band.high is None or band.low <= band.high
    ),
    max_size=6,
)


@given(bands, st.integers(0, 5), st.lists(st.integers(-30, 30), max_size=30))
def test_the_states_of_a_series_follow_the_contract(
    bands: list[Band], hysteresis: float, series: list[int]
) -> None:
    before: tuple[str, ...] = ()
    for value in series:
        low = {band: float("-inf") if band.low is None else band.low for band in bands}
        high = {band: float("inf") if band.high is None else band.high for band in bands}
        expected = {band.name for band in bands if low[band] <= value <= high[band]} | {
            band.name
            for band in bands
            if band.name in before and low[band] - hysteresis <= value <= high[band] + hysteresis
        }
        before = states_of(bands, hysteresis, value, before)
        assert set(before) == expected
        assert len(before) == len(expected)


def test_without_hysteresis_the_event_before_does_not_matter() -> None:
    assert states_of(LOW_NORMAL_HIGH, 0, 29.9, ("high",)) == ("normal",)


def test_bands_come_back_from_their_documents() -> None:
    found = parse_bands([{"name": "high", "low": 30}, {"name": "one", "low": 1, "high": 1}])
    assert found == (Band("high", 30.0, None), Band("one", 1.0, 1.0))
    assert parse_bands([band.document() for band in found]) == found


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ({"name": "high"}, "bands is"),
        ([{"low": 3}], "a band is"),
        ([{"name": "x", "low": 1, "up": 2}], "a band is"),
        ([{"name": "", "low": 3}], "the name of a band is ''"),
        ([{"name": "\ufffe", "low": 3}], "in one line"),
        ([{"name": "x" * 201, "low": 3}], "1 to 200 characters"),
        ([{"name": "x"}], "the band 'x' has no bound"),
        ([{"name": "x", "low": 3, "high": 2}], "low 3 above high 2"),
        ([{"name": "x", "low": "3"}], "low of the band 'x' is '3'"),
        ([{"name": "x", "low": float("nan")}], "low of the band 'x' is nan"),
        ([{"name": "x", "low": 1}] * (MOST_BANDS + 1), "at most 100"),
    ],
)
def test_a_band_that_is_not_valid_is_refused_with_its_value(value: object, words: str) -> None:
    with pytest.raises(SensorRefused, match=words):
        parse_bands(value)


def test_as_many_bands_as_allowed_are_accepted() -> None:
    assert len(parse_bands([{"name": "x", "low": 1}] * MOST_BANDS)) == MOST_BANDS
