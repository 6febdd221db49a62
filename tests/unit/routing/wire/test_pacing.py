"""Pacing: never more under way than the receiver allows, slower where much is lost, and never stuck."""

from hypothesis import given
from hypothesis import strategies as st

from hpwsn.routing.wire.pacing import ADJUST_INTERVAL, FIRST_WINDOW, MAX_STALLS, SMALLEST_WINDOW, Pacer, cost

MUCH = 1 << 30


def test_what_is_under_way_stays_within_the_window_and_goes_on_as_the_receiver_reports() -> None:
    pacer = Pacer()
    counter = 0
    while pacer.may_send():
        pacer.sent(counter, 8000)
        counter += 1
    assert FIRST_WINDOW <= pacer.in_flight < FIRST_WINDOW + cost(8000)
    pacer.feedback(0, 1, MUCH)
    assert pacer.in_flight == (counter - 1) * cost(8000)


@given(st.lists(st.integers(-1, 100)), st.integers(0, MUCH))
def test_reports_in_any_order_leave_what_lies_beyond_the_highest(reports: list[int], allowed: int) -> None:
    pacer = Pacer()
    for counter in range(50):
        pacer.sent(counter, 100)
    for highest in reports:
        pacer.feedback(highest, highest + 1, allowed)
    beyond = 49 - max(reports, default=-1)
    assert pacer.in_flight == max(beyond, 0) * cost(100)
    assert pacer.window >= SMALLEST_WINDOW


def test_the_window_doubles_while_nearly_all_arrives_up_to_what_the_receiver_allows() -> None:
    pacer = Pacer()
    allowed = 5 * FIRST_WINDOW
    windows = []
    for turn in range(1, 5):
        pacer.feedback(turn * ADJUST_INTERVAL - 1, turn * (ADJUST_INTERVAL - 1), allowed)
        windows.append(pacer.window)
    assert windows == [2 * FIRST_WINDOW, 4 * FIRST_WINDOW, allowed, allowed]


def test_the_window_halves_where_much_is_lost_and_never_goes_below_the_smallest() -> None:
    pacer = Pacer()
    for turn in range(1, 10):
        pacer.feedback(turn * ADJUST_INTERVAL - 1, turn * ADJUST_INTERVAL * 2 // 3, MUCH)
    assert pacer.window == SMALLEST_WINDOW


def test_silence_halves_the_window_and_after_some_turns_a_new_greeting_is_due() -> None:
    pacer = Pacer()
    for turn in range(1, MAX_STALLS + 1):
        pacer.sent(turn, 8000)
        assert pacer.stalled() is (turn < MAX_STALLS)
        assert pacer.may_send()
    pacer.feedback(MAX_STALLS, MAX_STALLS + 1, 0)
    assert pacer.stalls == 0
    pacer.sent(MAX_STALLS + 1, SMALLEST_WINDOW)
    assert not pacer.may_send()
