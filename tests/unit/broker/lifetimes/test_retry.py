import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpwsn.broker.lifetimes.retry import RetryPolicies, RetryPolicy
from hpwsn.broker.push.request import OutcomeKind

POLICY = RetryPolicy()


def test_pauses_double_from_the_first_to_the_maximum():
    steps = [POLICY.pause(attempt, 0.0) * 2 for attempt in range(9)]
    assert steps == [0.5, 1, 2, 4, 8, 16, 32, 60, 60]


@given(st.integers(0, 10**9), st.floats(0, 1, exclude_max=True))
def test_a_pause_is_between_half_and_all_of_its_step(attempt: int, random: float):
    step = min(60.0, 0.5 * 2.0 ** min(attempt, 100))
    assert step / 2 <= POLICY.pause(attempt, random) <= step


def test_the_random_number_spreads_the_pauses():
    assert POLICY.pause(3, 0.0) == 2
    assert POLICY.pause(3, 0.5) == 3


def test_a_consumer_that_asks_for_a_longer_pause_gets_it():
    assert POLICY.pause(0, 0.0, retry_after=120.0) == 120


def test_a_consumer_cannot_shorten_the_pause():
    assert POLICY.pause(7, 0.0, retry_after=1.0) == 30


def test_a_consumer_cannot_ask_for_more_than_the_whole_time():
    assert POLICY.pause(0, 0.0, retry_after=1e9) == 86400


def test_it_gives_up_when_the_time_since_the_first_failure_is_over():
    policy = RetryPolicy(give_up_after=10.0)
    assert not policy.exhausted(100.0, 109.9)
    assert policy.exhausted(100.0, 110.0)


def test_it_can_try_for_ever():
    assert not RetryPolicy(give_up_after=math.inf).exhausted(0.0, 1e12)


@pytest.mark.parametrize(
    "values",
    [
        {"first": 0.0},
        {"first": -1.0},
        {"first": 2.0, "maximum": 1.0},
        {"maximum": math.inf},
        {"first": math.nan},
        {"give_up_after": -1.0},
        {"give_up_after": math.nan},
    ],
)
def test_values_that_make_no_sense_are_refused_with_a_remedy(values: dict[str, float]):
    with pytest.raises(ValueError, match="give 0"):
        RetryPolicy(**values)


def test_an_attempt_before_the_first_is_refused():
    with pytest.raises(ValueError, match="attempt -1"):
        POLICY.pause(-1, 0.0)


def test_a_limit_of_attempts_ends_a_delivery_before_its_time():
    policy = RetryPolicy(attempts=3)
    assert [policy.exhausted(0.0, 1.0, attempt) for attempt in range(4)] == [False, False, True, True]


def test_each_class_of_error_has_its_own_policy_and_others_the_default():
    rare = RetryPolicy(first=5.0, maximum=600.0, attempts=7)
    policies = RetryPolicies(POLICY, {OutcomeKind.CLIENT_ERROR: rare})
    assert policies.of(OutcomeKind.CLIENT_ERROR) is rare
    assert policies.of(OutcomeKind.TIMEOUT) is POLICY
