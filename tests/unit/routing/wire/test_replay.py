"""The window against replay: every counter is taken once, as a plain set would have it."""

from hypothesis import given
from hypothesis import strategies as st

from hpwsn.routing.wire.frames import ReplayWindow


@given(st.lists(st.integers(0, 60), max_size=80), st.integers(1, 20))
def test_the_window_takes_what_a_set_would_and_nothing_older_than_its_width(
    counters: list[int], width: int
) -> None:
    window, seen = ReplayWindow(width), set[int]()
    for counter in counters:
        expected = counter not in seen and counter > max(seen, default=-1) - width
        assert window.take(counter) is expected
        if expected:
            seen.add(counter)
    assert window.highest == max(seen, default=-1)


def test_a_far_jump_forgets_all_that_lies_below_the_window() -> None:
    window = ReplayWindow(8)
    assert window.take(1)
    assert window.take(10**12)
    assert not window.take(10**12)
    assert not window.take(1)
    assert window.take(10**12 - 7)
