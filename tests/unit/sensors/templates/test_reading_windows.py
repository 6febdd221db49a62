"""Windows hold the readings of their time, in whatever order they come, once, and until they close."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpwsn.sensors.templates.reading_windows import MADE_UP, ReadingWindows


def closed(windows: ReadingWindows, now: int) -> dict[int, dict[tuple[str, int], float]]:
    return {window.end: dict(window.readings) for window in windows.close(now)}


def test_a_reading_at_the_end_of_a_window_is_in_the_next_one() -> None:
    windows = ReadingWindows(1000, 0, 10_000, 100)
    for time in (10_000, 10_999, 11_000):
        windows.add("a", time, time)
    assert closed(windows, 11_000) == {11_000: {("a", 10_000): 10_000, ("a", 10_999): 10_999}}
    assert closed(windows, 12_000) == {12_000: {("a", 11_000): 11_000}}


def test_a_window_closes_lateness_after_its_end() -> None:
    windows = ReadingWindows(1000, 250, 10_000, 100)
    assert windows.due == 10_250
    list(windows.close(10_250))
    assert windows.due == 11_250
    assert closed(windows, 11_249) == {}
    assert closed(windows, 11_250) == {11_000: {}}


def test_a_window_that_ended_and_is_not_closed_is_open_at_the_begin() -> None:
    windows = ReadingWindows(1000, 500, 10_300, 100)
    windows.add("a", 9_500, 1.0)
    assert closed(windows, 10_500) == {10_000: {("a", 9_500): 1.0}}


def test_a_late_reading_is_counted_and_not_held() -> None:
    windows = ReadingWindows(1000, 0, 10_000, 100)
    windows.add("a", 9_999, 1.0)
    assert (len(windows), windows.late) == (0, 1)


def test_a_reading_that_comes_again_is_held_once() -> None:
    windows = ReadingWindows(1000, 0, 10_000, 100)
    windows.add("a", 10_000, 1.0)
    windows.add("a", 10_000, 2.0)
    assert closed(windows, 11_000) == {11_000: {("a", 10_000): 1.0}}


def test_readings_beyond_the_room_are_refused_until_a_window_closes() -> None:
    windows = ReadingWindows(1000, 0, 10_000, 2)
    for time in (10_000, 10_001, 10_002):
        windows.add("a", time, 1.0)
    assert (len(windows), windows.refused) == (2, 1)
    list(windows.close(11_000))
    windows.add("a", 11_000, 1.0)
    assert (len(windows), windows.refused) == (1, 1)


def test_windows_since_the_last_result_are_made_up() -> None:
    windows = ReadingWindows(1000, 0, 100_000, 100)
    windows.resume(97_000, 100_000, make_up=True)
    windows.add("a", 97_500, 1.0)
    assert list(closed(windows, 100_000)) == [98_000, 99_000, 100_000]


def test_windows_are_made_up_for_ten_minutes_at_most() -> None:
    now = 10 * MADE_UP
    windows = ReadingWindows(60_000, 0, now, 100)
    windows.resume(0, now, make_up=True)
    assert windows.begin == now - MADE_UP
    assert len(closed(windows, now)) == 10


def test_windows_are_not_made_up_for_who_did_not_wait() -> None:
    windows = ReadingWindows(1000, 0, 100_000, 100)
    windows.resume(97_000, 100_000, make_up=False)
    assert windows.begin == 100_000


def test_a_window_that_has_a_result_gets_no_second_one() -> None:
    windows = ReadingWindows(1000, 5000, 100_000, 100)
    windows.add("a", 95_500, 1.0)
    windows.add("a", 99_500, 1.0)
    windows.resume(98_000, 100_000, make_up=False)
    assert (windows.begin, len(windows)) == (98_000, 1)


@pytest.mark.parametrize("make_up", [False, True])
def test_a_result_from_the_future_stops_nothing(make_up: bool) -> None:
    windows = ReadingWindows(1000, 0, 100_000, 100)
    windows.resume(200_000, 100_000, make_up=make_up)
    assert windows.begin == 100_000


def test_after_a_long_suspension_only_recent_windows_are_closed() -> None:
    windows = ReadingWindows(1000, 0, 0, 100)
    windows.add("a", 1, 1.0)
    ends = list(closed(windows, 10 * MADE_UP))
    assert ends[0] == 9 * MADE_UP + 1000
    assert len(ends) == MADE_UP // 1000
    assert len(windows) == 0


def test_a_window_longer_than_ten_minutes_closes_when_it_is_due() -> None:
    day = 86_400_000
    windows = ReadingWindows(day, 1000, 10 * day + 5, 100)
    windows.add("a", 10 * day + 5, 1.0)
    assert closed(windows, 10 * day + 1000) == {10 * day: {}}
    assert closed(windows, 11 * day + 1000) == {11 * day: {("a", 10 * day + 5): 1.0}}


@pytest.mark.parametrize("make_up", [True, False])
def test_the_last_window_is_made_up_however_long_it_is(make_up: bool) -> None:
    day = 86_400_000
    now = 10 * day + 2 * MADE_UP
    windows = ReadingWindows(day, 1000, now, 100)
    windows.resume(5 * day, now, make_up=make_up)
    assert windows.begin == (9 if make_up else 10) * day
    windows.add("a", 10 * day - 1, 1.0)
    expected = {10 * day: {("a", 10 * day - 1): 1.0}} if make_up else {}
    assert closed(windows, now) == expected


def test_after_a_suspension_over_its_end_a_long_window_is_closed() -> None:
    day = 86_400_000
    windows = ReadingWindows(day, 1000, 10 * day, 100)
    windows.add("a", 10 * day, 1.0)
    assert closed(windows, 11 * day + 3 * MADE_UP) == {11 * day: {("a", 10 * day): 1.0}}
    assert windows.begin == 11 * day


def test_after_the_clock_was_set_back_windows_are_as_at_that_time() -> None:
    windows = ReadingWindows(1000, 500, 3_600_000, 10)
    windows.add("a", 3_600_100, 1.0)
    windows.go_back(7_200_000)
    assert windows.begin == 3_599_000
    windows.go_back(10_200)
    assert windows.begin == 9000
    windows.add("a", 9999, 2.0)
    assert closed(windows, 10_500) == {10_000: {("a", 9999): 2.0}}
    assert windows.late == 0


arrivals = st.lists(
    st.tuples(
        st.integers(0, 300), st.sampled_from(["a", "b", "c"]), st.integers(-2000, 2000), st.floats(-99, 99)
    ),
    max_size=60,
)


def plain(
    every: int, lateness: int, arrivals: Iterable[tuple[int, str, int, float]]
) -> dict[int, dict[tuple[str, int], float]]:
    """The windows by definition, from when each reading arrived."""
    found: dict[int, dict[tuple[str, int], float]] = {}
    for arrived, sensor, time, value in arrivals:
        end = (time // every + 1) * every
        if end + lateness > arrived:
            found.setdefault(end, {}).setdefault((sensor, time), value)
    return found


@pytest.mark.parametrize(("every", "lateness"), [(100, 0), (250, 70), (1000, 3000)])
@given(arrivals)
def test_windows_hold_what_the_definition_says_with_late_repeated_and_missing_readings(
    every: int, lateness: int, arrivals: list[tuple[int, str, int, float]]
) -> None:
    """Each reading arrives some time after the one before, and its time lies around its arrival."""
    begin = now = 100_000_000
    came = []
    windows = ReadingWindows(every, lateness, begin, 1000)
    first = windows.begin
    found = {}
    for pause, sensor, ahead, value in arrivals:
        now += pause
        found |= closed(windows, now)
        windows.add(sensor, now + ahead, value)
        came.append((now, sensor, now + ahead, value))
    found |= closed(windows, now + 10_000)
    expected = plain(every, lateness, came)
    assert {end: readings for end, readings in found.items() if readings} == expected
    assert list(found) == list(range(first + every, windows.begin + 1, every))
    assert windows.refused == 0
