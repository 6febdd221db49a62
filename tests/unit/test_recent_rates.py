"""Rates of the last seconds: exact means, and nothing kept for keys that rest."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from hpwsn.recent_rates import WINDOW, RecentRates


def test_a_rate_is_the_mean_over_the_window() -> None:
    rates: RecentRates[str] = RecentRates()
    assert rates.rate("a") == 0.0
    rates.new["a"] += 6
    assert rates.rate("a") == 0.0  # counted with the next sample
    rates.sample(2.0)
    assert rates.rate("a") == 3.0
    rates.new["b"] += 3
    rates.sample(1.0)
    assert (rates.rate("a"), rates.rate("b"), rates.seconds) == (2.0, 1.0, 3.0)


@given(st.lists(st.dictionaries(st.sampled_from("abc"), st.integers(1, 9)), max_size=3 * WINDOW))
def test_only_the_last_seconds_count(seconds: list[dict[str, int]]) -> None:
    rates: RecentRates[str] = RecentRates()
    for counts in seconds:
        rates.new.update(counts)
        rates.sample(1.0)
    expected: Counter[str] = Counter()
    for counts in seconds[-WINDOW:]:
        expected.update(counts)
    assert rates.counts == expected


def test_a_key_that_rests_is_forgotten() -> None:
    rates: RecentRates[str] = RecentRates()
    rates.new["a"] += 1
    for _ in range(WINDOW + 1):
        rates.sample(1.0)
    assert (rates.counts, rates.rate("a")) == ({}, 0.0)
