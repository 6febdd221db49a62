"""A cursor gives every matching offset once, in order, whatever falls out of its window."""

from hypothesis import given
from hypothesis import strategies as st

from hpwsn.broker.subscriptions.cursor import Cursor


def test_it_holds_no_more_offsets_than_its_window() -> None:
    cursor = Cursor(0, window=3, head=0)
    for offset in range(1, 100):
        cursor.offer(offset)
    assert list(cursor.waiting) == [1, 2, 3]
    assert cursor.behind


def test_an_offset_that_was_seen_already_is_not_queued_twice() -> None:
    cursor = Cursor(0, window=10, head=5)
    cursor.refill([2, 4, 6], upto=6, head=5)
    for offset in (5, 6, 7):
        cursor.offer(offset)
    assert list(cursor.waiting) == [2, 4, 6, 7]


def test_a_rewound_cursor_reads_again_from_what_was_acknowledged() -> None:
    cursor = Cursor(0, window=10, head=0)
    for offset in (1, 2, 3):
        cursor.offer(offset)
    cursor.acknowledge(1)
    cursor.rewind(head=3)
    assert (cursor.behind, cursor.seen, list(cursor.waiting)) == (True, 1, [])
    cursor.rewind(head=1)
    assert not cursor.behind


def test_what_can_no_longer_be_had_is_passed_over() -> None:
    cursor = Cursor(0, window=10, head=0)
    for offset in (1, 2, 3):
        cursor.offer(offset)
    cursor.skip({1, 3})
    assert list(cursor.waiting) == [2]


@given(
    st.lists(st.booleans(), max_size=60),
    st.integers(1, 6),
    st.lists(st.sampled_from(["publish", "deliver", "scan"]), max_size=200),
)
def test_every_match_is_delivered_once_and_in_order(
    matching: list[bool], window: int, steps: list[str]
) -> None:
    log = dict(enumerate(matching, 1))
    cursor, head, delivered = Cursor(0, window=window, head=0), 0, []

    def scan() -> None:
        found = [o for o in range(cursor.seen + 1, head + 1) if log[o]][:window]
        cursor.refill(found, upto=found[-1] if len(found) == window else head, head=head)

    def deliver() -> None:
        batch = cursor.batch(2)
        if batch:
            delivered.extend(batch)
            cursor.acknowledge(batch[-1])

    for step in steps:
        if step == "publish" and head < len(log):
            head += 1
            if log[head]:
                cursor.offer(head)
        elif step == "scan" and cursor.behind and not cursor.waiting:
            scan()
        elif step == "deliver":
            deliver()
    while cursor.waiting or cursor.behind:
        deliver()
        if cursor.behind and not cursor.waiting:
            scan()
    assert delivered == [offset for offset in range(1, head + 1) if log[offset]]


def test_what_is_passed_over_while_nothing_waits_is_dealt_with_at_once() -> None:
    cursor = Cursor(0, window=3, head=0)
    assert cursor.pass_over(1)
    assert cursor.pass_over(4)
    assert (cursor.acknowledged, cursor.gaps) == (4, ())
    cursor.offer(5)
    assert (list(cursor.waiting), cursor.pass_over(6)) == ([5], False)
    assert cursor.acknowledged == 4


def test_a_gap_is_forgotten_when_the_next_is_passed_over_with_nothing_waiting() -> None:
    cursor = Cursor(0, window=2, head=0)
    cursor.offer(1)
    assert cursor.pass_over(2) is False
    cursor.acknowledge(1)
    assert (cursor.pass_over(3), cursor.acknowledged, cursor.gaps) == (True, 3, ())


@given(
    st.lists(st.booleans(), max_size=60),
    st.integers(1, 6),
    st.lists(st.sampled_from(["publish", "publish", "deliver", "scan", "rewind"]), max_size=200),
)
def test_what_was_passed_over_is_never_found_in_the_log_again(
    wanted: list[bool], window: int, steps: list[str]
) -> None:
    cursor, head, delivered = Cursor(0, window=window, head=0), 0, []

    def step_on(step: str) -> None:
        if step == "scan" and cursor.behind and not cursor.waiting:
            found = list(range(cursor.seen + 1, head + 1))[:window]
            cursor.refill(found, upto=found[-1] if len(found) == window else head, head=head)
        elif step == "rewind":
            cursor.rewind(head)
        elif step == "deliver" and (batch := cursor.batch(2)):
            delivered.extend(batch)
            cursor.acknowledge(batch[-1])

    for step in steps:
        if step == "publish" and head < len(wanted):
            head += 1
            (cursor.offer if wanted[head - 1] else cursor.pass_over)(head)
        else:
            step_on(step)
    while cursor.waiting or cursor.behind:
        step_on("deliver")
        step_on("scan")
    assert delivered == [offset for offset in range(1, head + 1) if wanted[offset - 1]]
    assert cursor.gaps == () or cursor.gaps[-1][1] > cursor.acknowledged


@given(
    st.integers(0, 5),
    st.integers(1, 6),
    st.lists(st.tuples(st.integers(0, 3), st.integers(1, 5)), max_size=8),
)
def test_offsets_that_follow_each_other_are_taken_together_as_one_by_one(
    acknowledged: int, window: int, runs: list[tuple[int, int]]
) -> None:
    together, single = (Cursor(acknowledged, window=window, head=acknowledged) for _ in range(2))
    at = 1
    for gap, size in runs:
        offsets = range(at + gap, at + gap + size)
        at = offsets.stop
        together.offer_run(offsets)
        for offset in offsets:
            single.offer(offset)
        assert list(together.waiting) == list(single.waiting)
        assert (together.seen, together.behind, together.beyond) == (
            single.seen,
            single.behind,
            single.beyond,
        )
