"""Histograms of durations: counts over fixed bounds, and percentiles from them."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpwsn.histogram import SHORT, WINDOW, Histogram, Timings


def test_each_bucket_counts_up_to_its_bound_inclusive() -> None:
    histogram = Histogram((1.0, 2.0))
    for seconds in (0.5, 1.0, 1.5, 2.0, 2.5):
        histogram.observe(seconds)
    assert histogram.counts == [2, 2, 1]
    assert histogram.cumulative() == [(1.0, 2), (2.0, 4), (math.inf, 5)]
    assert histogram.total == 7.5


def test_observations_of_a_batch_count_as_many_as_it_has() -> None:
    histogram = Histogram((1.0, 2.0))
    histogram.observe(1.5, 100)
    assert (histogram.counts, histogram.total) == ([0, 100, 0], 150.0)


def test_a_clock_that_went_back_counts_as_no_time() -> None:
    histogram = Histogram((1.0,))
    histogram.observe(-3600.0)
    assert (histogram.counts, histogram.total) == ([1, 0], 0.0)


def test_a_percentile_is_interpolated_between_two_bounds() -> None:
    histogram = Histogram((1.0, 2.0))
    histogram.observe(1.5, 100)
    assert histogram.percentile(0.5) == 1.5
    assert histogram.percentile(0.99) == pytest.approx(1.99)


def test_beyond_the_last_bound_a_percentile_is_the_last_bound() -> None:
    histogram = Histogram((1.0, 2.0))
    histogram.observe(5.0)
    assert histogram.percentile(0.5) == 2.0


def test_without_observations_there_is_no_percentile() -> None:
    assert Histogram().percentile(0.99) is None


@given(st.lists(st.floats(0, 100), min_size=1), st.sampled_from([0.01, 0.5, 0.99, 1.0]))
def test_a_percentile_lies_in_the_bucket_of_the_true_one(durations: list[float], share: float) -> None:
    histogram = Histogram(SHORT)
    for seconds in durations:
        histogram.observe(seconds)
    true = sorted(durations)[math.ceil(share * len(durations)) - 1]
    bounds = (0.0, *SHORT)
    found = histogram.percentile(share)
    assert found is not None
    upper = next((bound for bound in SHORT if true <= bound), SHORT[-1])
    lower = bounds[bounds.index(upper) - 1]
    if true <= SHORT[-1]:
        assert lower <= found <= upper
    else:
        assert found == SHORT[-1]


def test_the_latest_percentiles_are_those_since_the_last_sample() -> None:
    timings = Timings()
    assert timings.latest == {name: {"p50": None, "p99": None} for name in ("accept", "deliver")}
    timings.accept.observe(0.003, 10)
    timings.sample()
    accept = timings.latest["accept"]
    assert accept["p50"] is not None
    assert 0.0025 <= accept["p50"] <= 0.005
    timings.delivery.observe(0.03)
    timings.sample()
    assert timings.latest["accept"] == {"p50": None, "p99": None}
    deliver = timings.latest["deliver"]
    assert deliver["p99"] is not None
    assert 0.025 <= deliver["p99"] <= 0.05


def test_latency_is_that_of_the_last_ten_seconds() -> None:
    timings = Timings()
    nothing = {"p50": None, "p99": None}
    assert timings.latency() == {"accept": nothing, "deliver": nothing}
    timings.accept.observe(0.003, 10)
    for _ in range(WINDOW):
        found = timings.latency()
        assert found["accept"]["p50"] == pytest.approx(0.00375)
        assert found["deliver"] == nothing
        timings.sample()
    assert timings.latency()["accept"] == nothing
