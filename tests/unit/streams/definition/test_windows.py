"""Windows of tuples and of time."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpwsn.streams.definition.windows import RowWindow, TimeWindow, WindowError, parse_window

SECOND = 1_000_000


@pytest.mark.parametrize(
    ("window", "slide", "meant"),
    [
        ("100 rows", "", RowWindow(100, 100)),
        ("1 row", "", RowWindow(1, 1)),
        ("10 rows", "3 rows", RowWindow(10, 3)),
        ("60 s", "", TimeWindow(60 * SECOND, 60 * SECOND)),
        ("1 min", "500 ms", TimeWindow(60 * SECOND, SECOND // 2)),
        ("PT1H", "10 min", TimeWindow(3600 * SECOND, 600 * SECOND)),
    ],
)
def test_a_window_is_of_rows_or_of_time(window: str, slide: str, meant: RowWindow | TimeWindow) -> None:
    assert parse_window(window, slide) == meant


@pytest.mark.parametrize(
    ("window", "slide", "key"),
    [
        ("0 rows", "", "window"),
        ("1000001 rows", "", "window"),
        ("many rows", "", "window"),
        ("0 s", "", "window"),
        ("367 d", "", "window"),
        ("10 rows", "5 s", "slide"),
        ("10 s", "11 s", "slide"),
        ("1001 s", "1 s", "slide"),
    ],
)
def test_a_window_that_cannot_be_names_its_key(window: str, slide: str, key: str) -> None:
    with pytest.raises(WindowError) as caught:
        parse_window(window, slide)
    assert caught.value.key == key


def test_the_largest_windows_are_taken() -> None:
    assert parse_window("1000000 rows") == RowWindow(1_000_000, 1_000_000)
    assert parse_window("1000 s", "1 s") == TimeWindow(1000 * SECOND, SECOND)


@given(
    st.datetimes(datetime(1960, 1, 1), datetime(2060, 1, 1)),
    st.integers(1, 10**9),
    st.integers(1, 20),
    st.integers(0, 10**9),
)
def test_a_moment_is_in_exactly_the_windows_that_hold_it(
    naive: datetime, slide: int, times: int, more: int
) -> None:
    moment, span = naive.replace(tzinfo=UTC), TimeWindow(slide * times + more % slide, slide)
    starts = span.starts(moment)
    assert all(start <= moment < span.end(start) for start in starts)
    step = timedelta(microseconds=slide)
    assert moment < max(starts) + step
    assert span.end(min(starts) - step) <= moment
    assert len(starts) == (max(starts) - min(starts)) // step + 1
