"""The newest notifications in memory, and no more bytes of them than allowed."""

from hpwsn.broker.delivery.backlog import OVERHEAD, Recent
from hpwsn.notification import Notification


def _notification(size: int) -> Notification:
    return Notification(None, b"x" * size, 0, size, 0.0)


def test_the_oldest_go_when_the_bytes_are_used_up() -> None:
    each = 40 + OVERHEAD
    recent = Recent(2 * each)
    for offset in range(1, 6):
        recent.put(offset, [_notification(40)])
    assert [offset for offset in range(1, 6) if recent.get(offset)] == [4, 5]
    assert recent.size == 2 * each


def test_one_that_is_larger_than_the_limit_is_kept_until_the_next() -> None:
    recent = Recent(10 + OVERHEAD)
    recent.put(1, [_notification(11)])
    assert (recent.get(1), len(recent)) == (_notification(11), 1)
    recent.put(2, [_notification(5)])
    assert (recent.get(1), len(recent), recent.size) == (None, 1, 5 + OVERHEAD)


def test_without_room_none_is_kept() -> None:
    recent = Recent(0)
    recent.put(1, [_notification(11)])
    assert (recent.get(1), len(recent), recent.size) == (None, 0, 0)


def test_the_same_offset_counts_once() -> None:
    recent = Recent(10_000)
    recent.put(1, [_notification(40)])
    recent.put(1, [_notification(40)])
    assert recent.size == 40 + OVERHEAD
