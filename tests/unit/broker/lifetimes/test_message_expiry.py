"""What has waited longer than its subscriber wants: the arithmetic, at its edges."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpwsn.broker.lifetimes.message_expiry import has_expired, sort_out
from hpwsn.notification import Notification
from hpwsn_client.wsn.soap.times import Duration

YEAR_2024 = datetime(2024, 1, 31, tzinfo=UTC).timestamp()


def accepted(time: float) -> Notification:
    return Notification(None, b"<n/>", 0, 4, time)


@pytest.mark.parametrize(
    ("after", "waited", "expired"),
    [
        (Duration(seconds=60), 59, False),
        (Duration(seconds=60), 60, False),
        (Duration(seconds=60), 60.001, True),
        (Duration(seconds=0.5), 1, True),
        (Duration(seconds=60), -3600, False),
        (Duration(months=1), 29 * 86400, False),
        (Duration(months=1), 29 * 86400 + 1, True),
        (Duration(months=9998 * 12), 86400, False),
    ],
)
def test_it_has_expired_once_it_waited_longer(after: Duration, waited: float, expired: bool) -> None:
    assert has_expired(after, YEAR_2024, YEAR_2024 + waited) is expired


def test_done_is_the_last_before_the_first_that_may_still_go_out() -> None:
    times = [10.0, 11.0, 95.0, 12.0, 99.0]
    found = sort_out(Duration(seconds=50), range(1, 6), [accepted(time) for time in times], 100.0)
    assert (found.offsets, found.unsent, found.done) == ([3, 5], [1, 2, 4], 2)
    assert sort_out(Duration(seconds=50), [7], [accepted(99)], 100.0).done == 0
    assert sort_out(Duration(seconds=1), [7, 9], [accepted(9), accepted(8)], 100.0).done == 9


@given(st.lists(st.floats(0, 200), max_size=30), st.floats(0.1, 100))
def test_each_is_either_fresh_or_expired_and_in_order(times: list[float], seconds: float) -> None:
    offsets = list(range(3, 3 + len(times)))
    found = sort_out(Duration(seconds=seconds), offsets, [accepted(time) for time in times], 100.0)
    assert sorted(found.offsets + found.unsent) == offsets
    assert found.offsets == [o for o, time in zip(offsets, times, strict=True) if 100.0 - time <= seconds]
    assert [n.time for n in found.notifications] == [times[o - 3] for o in found.offsets]
    assert all(offset in found.unsent for offset in offsets if offset <= found.done)
