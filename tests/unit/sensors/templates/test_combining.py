"""Values of windows equal a plain computation over the same readings."""

from __future__ import annotations

import math
import statistics
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpwsn.sensors.templates.combining import COMBINATIONS, combine, sensors_in, without_outliers

sensors = st.sampled_from(["a", "b", "c", "d"])
values = st.floats(-1e9, 1e9)
readings = st.dictionaries(st.tuples(sensors, st.integers(0, 20)), values, min_size=1, max_size=40)

PLAIN = {
    "mean": statistics.fmean,
    "median": statistics.median,
    "min": min,
    "max": max,
    "sum": math.fsum,
    "count": len,
}


@pytest.mark.parametrize("how", sorted(PLAIN))
@given(readings)
def test_a_combination_is_the_plain_computation(how: str, found: dict[tuple[str, int], float]) -> None:
    assert combine(how, found) == PLAIN[how](list(found.values()))


@given(readings)
def test_the_last_reading_is_the_one_with_the_latest_time(found: dict[tuple[str, int], float]) -> None:
    latest = max(time for _, time in found)
    assert combine("last", found) == found[max(key for key in found if key[1] == latest)]


@given(readings, st.randoms())
def test_the_order_in_which_readings_came_does_not_matter(
    found: dict[tuple[str, int], float], random: object
) -> None:
    keys = list(found)
    random.shuffle(keys)  # type: ignore[attr-defined]
    for how in COMBINATIONS:
        assert combine(how, {key: found[key] for key in keys}) == combine(how, found)


@pytest.mark.parametrize("how", ["mean", "median"])
@pytest.mark.parametrize("value", [1e308, sys.float_info.max, -sys.float_info.max])
@pytest.mark.parametrize("number", [2, 3, 10])
def test_numbers_whose_sum_is_too_large_have_a_mean_and_a_median(how: str, value: float, number: int) -> None:
    assert combine(how, {("a", time): value for time in range(number)}) == value


def test_a_sum_that_no_number_can_hold_is_no_value() -> None:
    assert combine("sum", {("a", 1): 1e308, ("b", 1): 1e308}) is None


@given(readings, st.floats(0, 10))
def test_outliers_are_those_beyond_so_many_median_absolute_deviations(
    found: dict[tuple[str, int], float], most: float
) -> None:
    middle = statistics.median(found.values())
    deviation = statistics.median(abs(value - middle) for value in found.values())
    plain = {key: value for key, value in found.items() if abs(value - middle) <= most * deviation}
    assert without_outliers(found, most) == plain


def test_a_spike_among_equal_readings_is_an_outlier() -> None:
    found = {("a", 1): 20.0, ("b", 1): 20.0, ("c", 1): 20.0, ("d", 1): 500.0}
    assert combine("mean", without_outliers(found, 3)) == 20.0


def test_no_readings_have_no_outliers() -> None:
    assert without_outliers({}, 3) == {}


def test_a_sensor_with_several_readings_counts_once() -> None:
    assert sensors_in({("a", 1): 1.0, ("a", 2): 1.0, ("b", 1): 1.0}) == 2
