"""Duplicates are known in bounded memory."""

from hypothesis import given
from hypothesis import strategies as st

from hpwsn.routing.publications.duplicates import RecentNumbers, StoredNumbers
from hpwsn.routing.wire.router_messages import PublicationId


def one(number: int, origin: str = "o", epoch: int = 1) -> PublicationId:
    return PublicationId(origin, epoch, number)


@given(st.lists(st.integers(0, 300), max_size=60))
def test_within_the_window_each_number_is_new_once(numbers: list[int]) -> None:
    recent, seen = RecentNumbers(64, 10), set[int]()
    for number in numbers:
        known = number in seen or (bool(seen) and number <= max(seen) - 64)
        assert recent.is_new(one(number)) is not known
        seen.add(number)


def test_sources_are_told_apart_and_bounded() -> None:
    recent = RecentNumbers(64, 2)
    assert all(recent.is_new(one(1, origin, epoch)) for origin in "ab" for epoch in (1, 2))
    assert len(recent) == 2


def test_the_source_that_was_silent_longest_is_forgotten_first() -> None:
    recent, stored = RecentNumbers(64, 2), StoredNumbers(2)
    for number, origin in enumerate("abac"):
        assert recent.is_new(one(number, origin))
        stored.stored(one(number, origin))
    assert not recent.is_new(one(2, "a")) and stored.has(one(2, "a"))
    assert not stored.has(one(1, "b"))


def test_what_is_reliable_is_known_however_old_it_is() -> None:
    stored = StoredNumbers(10)
    for number in (5, 100_000, 7):
        assert stored.begin(one(number)) and not stored.begin(one(number))
        stored.stored(one(number))
    assert stored.has(one(5)) and not stored.begin(one(7)) and not stored.has(one(6))
    assert stored.begin(one(6))


def test_what_could_not_be_stored_may_come_again() -> None:
    stored = StoredNumbers(10)
    assert stored.begin(one(1))
    stored.refused(one(1))
    assert stored.begin(one(1)) and stored.storing == 1


def test_below_the_floor_all_is_known_and_nothing_is_kept() -> None:
    stored = StoredNumbers(10)
    for number in range(0, 20_000, 7):
        stored.stored(one(number))
    stored.raise_floor(one(0), 19_000)
    assert stored.has(one(1)) and not stored.begin(one(18_999)) and stored.begin(one(19_001))
    assert len(stored) <= 2 and list(stored.floors()) == [one(19_000)]
    stored.raise_floor(one(0), 3)
    assert list(stored.floors()) == [one(19_000)]
