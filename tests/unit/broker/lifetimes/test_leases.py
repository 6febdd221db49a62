import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpwsn.broker.lifetimes.leases import Lifetimes


def test_keys_come_out_in_the_order_of_their_times():
    lifetimes: Lifetimes[str] = Lifetimes()
    lifetimes.set("late", 3.0)
    lifetimes.set("early", 1.0)
    lifetimes.set("later", 4.0)
    assert lifetimes.due(3.0) == ["early", "late"]
    assert lifetimes.due(3.0) == []
    assert lifetimes.next_due() == 4.0


def test_keys_of_the_same_time_come_out_in_the_order_they_were_set():
    lifetimes: Lifetimes[str] = Lifetimes()
    for key in "cab":
        lifetimes.set(key, 1.0)
    assert lifetimes.due(1.0) == ["c", "a", "b"]


def test_a_renewed_key_ends_only_at_its_new_time():
    lifetimes: Lifetimes[str] = Lifetimes()
    lifetimes.set("a", 1.0)
    lifetimes.set("a", 5.0)
    assert lifetimes.next_due() == 5.0
    assert lifetimes.due(4.9) == []
    assert lifetimes.due(5.0) == ["a"]


def test_a_shortened_key_ends_once():
    lifetimes: Lifetimes[str] = Lifetimes()
    lifetimes.set("a", 5.0)
    lifetimes.set("a", 1.0)
    assert lifetimes.due(10.0) == ["a"]


def test_a_key_that_ended_and_is_set_again_ends_again():
    lifetimes: Lifetimes[str] = Lifetimes()
    lifetimes.set("a", 1.0)
    assert lifetimes.due(1.0) == ["a"]
    lifetimes.set("a", 1.0)
    assert lifetimes.due(1.0) == ["a"]


def test_a_discarded_key_and_one_for_ever_never_end():
    lifetimes: Lifetimes[str] = Lifetimes()
    lifetimes.set("a", 1.0)
    lifetimes.set("b", 1.0)
    lifetimes.discard("a")
    lifetimes.discard("unknown")
    lifetimes.set("b", None)
    assert lifetimes.next_due() is None
    assert lifetimes.due(math.inf) == []
    assert len(lifetimes) == 0


def test_a_time_that_is_not_a_number_is_refused():
    with pytest.raises(ValueError, match="'a' cannot end at nan"):
        Lifetimes[str]().set("a", math.nan)


def test_keys_need_no_order():
    lifetimes: Lifetimes[object] = Lifetimes()
    first, second = object(), object()
    lifetimes.set(first, 1.0)
    lifetimes.set(second, 1.0)
    assert lifetimes.due(1.0) == [first, second]


def test_ten_thousand_rounds_leave_nothing_behind():
    lifetimes: Lifetimes[int] = Lifetimes()
    for key in range(10_000):
        lifetimes.set(key, 1e9 + key)
        lifetimes.discard(key)
        assert entries(lifetimes) <= 64
    assert len(lifetimes) == 0


def test_ten_thousand_renewals_leave_a_heap_bounded_by_the_live_keys():
    lifetimes: Lifetimes[int] = Lifetimes()
    for moment in range(10_000):
        lifetimes.set(moment % 100, 1e9 + moment)
        assert entries(lifetimes) <= 2 * 100 + 64
    assert len(lifetimes.due(math.inf)) == 100


def entries(lifetimes: Lifetimes[int]) -> int:
    return len(lifetimes._heap)


KEYS = st.integers(0, 5)
TIMES = st.integers(0, 10).map(float)
STEPS = st.one_of(
    st.tuples(st.just("set"), KEYS, st.none() | TIMES),
    st.tuples(st.just("discard"), KEYS),
    st.tuples(st.just("due"), TIMES),
)


@given(st.lists(STEPS, max_size=200))
def test_it_equals_a_naive_list(steps: list[tuple]):
    lifetimes: Lifetimes[int] = Lifetimes()
    naive: list[tuple[float, int]] = []
    for step in steps:
        match step:
            case ("set", key, when):
                lifetimes.set(key, when)
                naive = [entry for entry in naive if entry[1] != key]
                if when is not None:
                    naive.append((when, key))
            case ("discard", key):
                lifetimes.discard(key)
                naive = [entry for entry in naive if entry[1] != key]
            case ("due", now):
                ended = sorted((entry for entry in naive if entry[0] <= now), key=lambda entry: entry[0])
                assert lifetimes.due(now) == [key for _, key in ended]
                naive = [entry for entry in naive if entry[0] > now]
        assert lifetimes.next_due() == min((when for when, _ in naive), default=None)
        assert len(lifetimes) == len(naive)
