"""The order of one origin: gaps, held events, and each event once whatever carriers do."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpwsn.dtn.bundles.bundle import CarriedEvent, Known, Origin
from hpwsn.dtn.carriers.origin_order import BETWEEN_PLACES, MOST_GAPS, OriginOrder, Verdict

VALLEY = Origin("valley", 1)
NEVER = -1.0


def event(number: int, previous: int) -> CarriedEvent:
    return CarriedEvent(VALLEY, number, previous, 0, None, b"")


def chain(numbers: list[int]) -> list[CarriedEvent]:
    """Events that follow one another."""
    return [event(number, before) for before, number in zip([0, *numbers], numbers, strict=False)]


class Receiver:
    """A node that takes events as bundles bring them, without a log."""

    def __init__(self) -> None:
        self.order = OriginOrder()
        self.published: list[int] = []

    def take(self, found: CarriedEvent, floor: int = 0, now: float = 0.0) -> Verdict:
        verdict = self.order.judge(found.number, found.previous, floor)
        if verdict is Verdict.PUBLISH:
            self._publish(found)
            self.release(NEVER)
        elif verdict is Verdict.HOLD:
            self.order.hold(found, now)
        return verdict

    def release(self, given_up: float) -> None:
        while (ready := self.order.ready(given_up)) is not None:
            self._publish(ready)

    def _publish(self, found: CarriedEvent) -> None:
        self.order.published(found.number, found.previous)
        self.published.append(found.number)


FIRST, SECOND, THIRD = chain([3, 8, 9])


@pytest.mark.parametrize(
    ("before", "then", "verdict", "published"),
    [
        ([], FIRST, Verdict.PUBLISH, [3]),
        ([], SECOND, Verdict.HOLD, []),
        ([FIRST], FIRST, Verdict.REPEATED, [3]),
        ([FIRST], THIRD, Verdict.HOLD, [3]),
        ([FIRST, THIRD], SECOND, Verdict.PUBLISH, [3, 8, 9]),
        ([FIRST, THIRD], THIRD, Verdict.HOLD, [3]),
        ([THIRD, SECOND], FIRST, Verdict.PUBLISH, [3, 8, 9]),
        ([FIRST, SECOND, THIRD], SECOND, Verdict.REPEATED, [3, 8, 9]),
    ],
)
def test_an_event_is_published_held_or_repeated(
    before: list[CarriedEvent], then: CarriedEvent, verdict: Verdict, published: list[int]
) -> None:
    receiver = Receiver()
    for each in before:
        receiver.take(each)
    assert receiver.take(then) is verdict
    assert receiver.published == published


def test_a_gap_that_was_given_up_is_known_and_can_still_be_filled() -> None:
    receiver = Receiver()
    first, second, third, fourth = chain([3, 8, 9, 12])
    receiver.take(first)
    receiver.take(fourth, now=100.0)
    receiver.release(given_up=99.0)
    assert receiver.published == [3]
    receiver.release(given_up=100.0)
    assert receiver.published == [3, 12]
    assert receiver.order.known == Known(12, ((3, 9),))
    assert receiver.take(third) is Verdict.PUBLISH
    assert receiver.order.known == Known(12, ((3, 8),))
    assert receiver.take(third) is Verdict.REPEATED
    assert receiver.take(second) is Verdict.PUBLISH
    assert receiver.order.known == Known(12)


def test_events_before_one_that_waited_long_enough_do_not_wait_either() -> None:
    receiver = Receiver()
    _, second, _, fourth = chain([3, 8, 9, 12])
    receiver.take(fourth, now=1.0)
    receiver.take(second, now=50.0)
    receiver.release(given_up=1.0)
    assert receiver.published == [8, 12]


def test_nothing_waits_for_what_the_maker_of_the_bundle_has_no_more() -> None:
    receiver = Receiver()
    assert receiver.take(SECOND, floor=2) is Verdict.HOLD
    assert receiver.take(SECOND, floor=3) is Verdict.PUBLISH
    assert receiver.order.known == Known(8, ((0, 3),))
    assert receiver.take(FIRST) is Verdict.PUBLISH


def test_what_could_not_be_stored_is_forgotten() -> None:
    order = OriginOrder()
    order.published(3, 0)
    order.hold(THIRD, 0.0)
    saved = order.saved()
    order.published(8, 3)
    order.published(9, 8)
    order.roll_back(saved)
    assert order.known == Known(3)
    assert order.judge(8, 3) is Verdict.PUBLISH
    assert list(order.held) == [9]


def test_held_events_that_are_in_the_log_are_held_no_more() -> None:
    order = OriginOrder(last=9)
    order.hold(THIRD, 0.0)
    assert order.published_meanwhile() == [THIRD]
    assert order.ready(0.0) is None


def test_of_too_many_gaps_the_oldest_is_given_up() -> None:
    order = OriginOrder()
    for number in range(2, 2 * MOST_GAPS + 2, 2):
        order.published(number, number - 1)
    assert (len(order.known.gaps), order.abandoned) == (MOST_GAPS, 0)
    order.published(2 * MOST_GAPS + 2, 2 * MOST_GAPS + 1)
    assert (len(order.known.gaps), order.abandoned) == (MOST_GAPS, 1)
    assert order.judge(1, 0) is Verdict.REPEATED


@given(st.integers(0, 3 * BETWEEN_PLACES))
def test_a_search_begins_at_or_before_the_first_event_that_is_lacking(complete: int) -> None:
    order = OriginOrder()
    for number in range(1, 3 * BETWEEN_PLACES):
        order.published(number, number - 1)
        order.stored(number, 10 + 2 * number)
    start = order.search_from(Known(complete))
    assert start <= 10 + 2 * (complete + 1)
    assert start >= 10 + 2 * (complete - BETWEEN_PLACES)


@given(st.data())
def test_any_order_and_repetition_publishes_each_event_once_and_in_order(data: st.DataObject) -> None:
    numbers = sorted(data.draw(st.sets(st.integers(1, 60), min_size=1, max_size=12)))
    events = chain(numbers)
    brought = data.draw(st.permutations(events * 2))
    receiver = Receiver()
    for each in brought:
        receiver.take(each)
    assert receiver.published == numbers
    assert not receiver.order.held
    assert receiver.order.known == Known(numbers[-1])


@given(st.data())
def test_lost_events_that_are_brought_later_are_published_once_although_the_wait_ended(
    data: st.DataObject,
) -> None:
    numbers = sorted(data.draw(st.sets(st.integers(1, 60), min_size=1, max_size=12)))
    events = chain(numbers)
    receiver = Receiver()
    for each in data.draw(st.permutations(events)):
        if data.draw(st.booleans()):
            receiver.take(each)
        if data.draw(st.booleans()):
            receiver.release(given_up=1.0)
    for each in data.draw(st.permutations(events)):
        receiver.take(each)
    receiver.release(given_up=1.0)
    assert sorted(receiver.published) == numbers
    assert receiver.order.known == Known(numbers[-1])
    assert all(receiver.order.judge(each.number, each.previous) is Verdict.REPEATED for each in events)


@given(st.data())
def test_what_is_known_is_what_was_published(data: st.DataObject) -> None:
    numbers = sorted(data.draw(st.sets(st.integers(1, 60), min_size=1, max_size=12)))
    receiver = Receiver()
    for each in data.draw(st.lists(st.sampled_from(chain(numbers)), max_size=15)):
        receiver.take(each)
        if data.draw(st.booleans()):
            receiver.release(given_up=1.0)
    known = receiver.order.known
    assert {number for number in numbers if known.has(number)} == set(receiver.published)
