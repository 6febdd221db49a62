"""A ranked cursor gives every matching offset once, by rank, whatever is settled first, across restarts."""

from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st

from hpwsn.broker.queueing.cet_rules import CetRules
from hpwsn.broker.queueing.transmissions import Transmissions
from hpwsn.broker.subscriptions.ranked_cursor import RankedCursor
from hpwsn_client.wsn.soap.times import Duration


def cursor_at(
    acknowledged: int, known: Transmissions, *, window: int = 10, head: int = 0, ahead: tuple[int, ...] = ()
) -> RankedCursor:
    return RankedCursor(
        acknowledged, window=window, head=head, rules=CetRules(), transmissions=known, ahead=ahead
    )


def offer(cursor: RankedCursor, *offsets: int) -> None:
    cursor.expect({offset: (float(offset), 0) for offset in offsets})
    for offset in offsets:
        cursor.offer(offset)


def test_fewest_transmissions_come_first_and_then_the_youngest() -> None:
    known = Transmissions()
    cursor = cursor_at(0, known)
    offer(cursor, 1, 2, 3, 4)
    known.delivered([4, 2])
    known.carried([4])
    assert cursor.batch(10) == [3, 1, 2, 4]
    assert cursor.batch(2) == [3, 1]
    assert cursor.oldest(2) == [1, 2]


def test_age_is_the_time_of_acceptance_not_the_place_in_the_log() -> None:
    cursor = cursor_at(0, Transmissions())
    cursor.expect({1: (50.0, 0), 2: (10.0, 0), 3: (30.0, 0)})
    cursor.offer_run(range(1, 4))
    assert cursor.batch(3) == [1, 3, 2]


def test_what_is_done_with_out_of_order_is_ahead_until_the_cursor_passes_it() -> None:
    cursor = cursor_at(0, Transmissions())
    offer(cursor, 2, 4, 6, 8)
    assert cursor.passing([8, 4]) == (0, [8, 4])
    assert cursor.settle([8, 4]) == [8, 4]
    assert (cursor.acknowledged, cursor.ahead, cursor.backlog) == (0, {4, 8}, 2)
    assert [cursor.has(offset) for offset in (2, 4, 6, 8)] == [False, True, False, True]
    assert cursor.passing([2]) == (4, [])
    assert cursor.settle([2]) == []
    assert (cursor.acknowledged, cursor.ahead) == (4, {8})
    assert cursor.settle([6]) == []
    assert (cursor.acknowledged, cursor.ahead, list(cursor.waiting)) == (8, set(), [])


def test_the_oldest_may_leave_all_at_once() -> None:
    known = Transmissions()
    cursor = cursor_at(0, known)
    offer(cursor, 1, 2, 3, 4, 5)
    cursor.settle([4])
    cursor.acknowledge(3)
    assert (cursor.acknowledged, cursor.ahead, list(cursor.waiting)) == (4, set(), [5])
    assert list(known.watched) == [5]


def test_no_more_than_the_window_waits_or_is_ahead() -> None:
    known = Transmissions()
    cursor = cursor_at(0, known, window=3)
    offer(cursor, 1, 2)
    cursor.settle([2])
    offer(cursor, 3, 4, 5)
    assert (list(cursor.waiting), cursor.ahead, cursor.behind, cursor.backlog) == ([1, 3], {2}, True, 4)
    assert len(known.watched) == 2


def test_after_a_restart_what_is_ahead_is_not_found_again_and_not_counted() -> None:
    cursor = cursor_at(1, Transmissions(), window=3, head=9, ahead=(1, 3, 9))
    assert cursor.ahead == {3, 9}
    cursor.expect(dict.fromkeys((2, 3, 4), (0.0, 0)))
    cursor.refill([2, 3, 4], upto=4, head=9)
    cursor.count(5)  # 5 to 9
    assert (list(cursor.waiting), cursor.backlog) == ([2, 4], 6)
    cursor.settle([4, 2])
    assert (cursor.acknowledged, cursor.ahead) == (4, {9})


def test_a_rewound_or_ended_queue_keeps_no_counts() -> None:
    known = Transmissions()
    first, second = cursor_at(0, known), cursor_at(0, known)
    for cursor in (first, second):
        offer(cursor, 1, 2)
    first.rewind(head=2)
    assert [each.queues for each in known.watched.values()] == [1, 1]
    assert (first.backlog, first.behind) == (2, True)
    second.release()
    assert not known.watched


def test_stale_offsets_are_told_by_rule() -> None:
    known = Transmissions()
    cursor = RankedCursor(0, window=9, head=0, rules=CetRules(2, Duration(seconds=10)), transmissions=known)
    offer(cursor, 1, 2, 3)
    for _ in range(3):
        known.delivered([2])
    found = cursor.stale(11.5)
    assert [(list(each.offsets), each.reason) for each in found] == [
        ([2], "more than 2 transmissions"),
        ([1], "older than PT10S"),
    ]


@dataclass
class Node:
    """A log, a cursor, and what a journal would have stored of it."""

    matching: list[bool]
    window: int
    known: Transmissions = field(default_factory=Transmissions)
    head: int = 0
    stored: tuple[int, frozenset[int]] = (0, frozenset())
    delivered: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.start()

    def start(self) -> None:
        upto, ahead = self.stored
        self.known = Transmissions()
        self.cursor = cursor_at(upto, self.known, window=self.window, head=self.head, ahead=tuple(ahead))

    def publish(self) -> None:
        if self.head < len(self.matching):
            self.head += 1
            if self.matching[self.head - 1]:
                offer(self.cursor, self.head)

    def scan(self) -> None:
        if self.cursor.waiting or not self.cursor.behind:
            return
        found = [o for o in range(self.cursor.seen + 1, self.head + 1) if self.matching[o - 1]][: self.window]
        upto = found[-1] if len(found) == self.window else self.head
        self.cursor.expect({offset: (float(offset), 0) for offset in found})
        self.cursor.refill(found, upto=upto, head=self.head)

    def deliver(self) -> None:
        chosen = self.cursor.batch(2)
        assert chosen == sorted(self.cursor.waiting, reverse=True)[:2]
        if chosen:
            promised = self.cursor.passing(chosen)
            self.delivered += chosen
            ahead = self.cursor.settle(chosen)
            assert promised == (self.cursor.acknowledged, list(ahead))
            kept = {o for o in (*self.stored[1], *ahead) if o > self.cursor.acknowledged}
            self.stored = self.cursor.acknowledged, frozenset(kept)
        assert len(self.cursor.waiting) + len(self.cursor.ahead) <= self.window or self.cursor.behind
        assert set(self.known.watched) == set(self.cursor.waiting)


@given(
    st.lists(st.booleans(), max_size=60),
    st.integers(1, 6),
    st.lists(st.sampled_from(["publish", "deliver", "scan", "start"]), max_size=200),
)
def test_every_match_is_delivered_once_across_restarts(
    matching: list[bool], window: int, steps: list[str]
) -> None:
    node = Node(matching, window)
    for step in steps:
        getattr(node, step)()
    while node.head < len(matching):
        node.publish()
    while node.cursor.waiting or node.cursor.behind:
        node.scan()
        node.deliver()
    assert sorted(node.delivered) == [o for o, wanted in enumerate(matching, 1) if wanted]
    assert not node.cursor.ahead or max(node.cursor.ahead) > node.cursor.seen
    assert not node.known.watched
