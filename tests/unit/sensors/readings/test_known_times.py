"""The known times of readings: equal to a set of all, or the question is left to the history."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpwsn.sensors.readings import known_times
from hpwsn.sensors.readings.known_times import KEPT, MOST_LATE, STORED, KnownTimes

STEPS = st.lists(
    st.tuples(st.sampled_from(["note", "note", "note", "forget", "restart"]), st.integers(0, 60)), max_size=80
)


@contextmanager
def few() -> Iterator[None]:
    """Limits that a short test reaches."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(known_times, "KEPT", 4)
        patch.setattr(known_times, "STORED", 2)
        patch.setattr(known_times, "MOST_LATE", 3)
        yield


def restarted(times: KnownTimes) -> KnownTimes:
    found = KnownTimes(times.complete_from)
    found.restore(b"".join(times.pieces()))
    return found


def test_a_time_is_known_once_it_was_noted() -> None:
    times = KnownTimes()
    assert times.has("s1", 5) is False
    times.note("s1", 5)
    assert (times.has("s1", 5), times.has("s1", 4), times.has("s1", 6)) == (True, False, False)
    assert times.has("s2", 5) is False
    assert len(times) == 1


def test_the_newest_times_are_kept_and_older_ones_are_left_to_the_history() -> None:
    times = KnownTimes()
    for time in range(2 * KEPT):
        assert times.has("s1", 0) is (time > 0)
        times.note("s1", 10 * time)
    kept = range(10 * KEPT, 20 * KEPT, 10)
    assert len(kept) == KEPT
    assert all(times.has("s1", time) for time in kept)
    assert times.has("s1", kept[0] + 5) is False
    assert times.has("s1", kept[0] - 10) is None
    assert times.has("s1", kept[0] - 5) is None


def test_as_many_times_as_stored_survive_a_restart() -> None:
    times = KnownTimes()
    for time in range(STORED + 1):
        times.note("s1", time)
    again = restarted(times)
    assert [again.has("s1", time) for time in range(STORED + 1)] == [None] + [True] * STORED
    assert again.has("s1", STORED + 1) is False


def test_older_times_are_remembered_until_there_are_too_many() -> None:
    times = KnownTimes()
    times.complete_from = 10 * MOST_LATE
    times.note("s1", 20 * MOST_LATE)
    for time in range(MOST_LATE):
        times.note("s1", time)
    assert times.has("s1", 0) is True
    times.note("s1", MOST_LATE)
    assert times.has("s1", 0) is None
    assert times.has("s1", 1) is True


def test_the_times_of_a_removed_sensor_are_left_to_the_history() -> None:
    times = KnownTimes()
    times.note("s1", 5)
    times.forget("s1")
    times.forget("nobody")
    assert (times.has("s1", 5), times.has("s1", 6), len(times)) == (None, False, 0)


@given(STEPS)
def test_every_answer_is_right_or_left_to_the_history(steps: list[tuple[str, int]]) -> None:
    times = KnownTimes()
    noted: set[int] = set()
    with few():
        for step, time in steps:
            if step == "note":
                times.note("s1", time)
                noted.add(time)
            elif step == "forget":
                times.forget("s1")
            else:
                times = restarted(times)
            for each in range(62):
                found = times.has("s1", each)
                assert found is None or found == (each in noted), (each, found)
            if noted:
                assert times.has("s1", max(noted) + 1) is False


@given(STEPS)
def test_repeated_and_late_times_are_known_at_once(steps: list[tuple[str, int]]) -> None:
    times = KnownTimes()
    for _, time in steps:
        times.note("s1", time)
        assert times.has("s1", time) is True


def stored(*sensors: str) -> bytes:
    times = KnownTimes()
    for sensor in sensors:
        for time in (3, 5, 8):
            times.note(sensor, time)
    return b"".join(times.pieces())


def test_damaged_pieces_change_nothing() -> None:
    whole = stored("s1", "Ωmega")
    one = len(stored("s1"))
    for end in range(1, len(whole)):
        if end != one:
            times = KnownTimes()
            with pytest.raises(ValueError):
                times.restore(whole[:end])
            assert len(times) == 0
    times = KnownTimes()
    times.restore(whole)
    assert times.has("Ωmega", 8) is True
    for wrong in (
        whole[:-8] + bytes(8),  # not in order
        b"\x02\x00\x00\x00" + bytes(8) + b"s1",  # no times
        b"\x01\x00\x01\x00" + bytes(8) + b"\xff" + bytes(8),  # no text
        b"\x01\x00\x01\x00" + bytes([9] + 7 * [0]) + b"s" + bytes(8),  # earlier than it may be
    ):
        with pytest.raises(ValueError):
            times.restore(wrong)
    assert times.has("s1", 8) is True


@given(st.binary(max_size=60))
def test_any_bytes_are_times_or_refused(data: bytes) -> None:
    times = KnownTimes()
    try:
        times.restore(data)
    except ValueError:
        assert len(times) == 0
