"""Interests and targets: after any changes each target is wanted exactly where an interest overlaps it."""

from __future__ import annotations

from collections.abc import Iterator

from hypothesis import given
from hypothesis import strategies as st

from hpwsn.broker.registrations.demand_interest import Expressions, Interests
from hpwsn.topics.tree.overlap import OverlapIndex, overlap
from hpwsn_client.wsn.soap.names import DIALECT_FULL
from hpwsn_client.wsn.topics.topic_expressions import TopicExpression, parse_topic_expression

texts = ["A", "A:B", "A:B:C", "B", "A//.", "A/*", "*", "//C", "A/B|C", "B//C"]
expressions = st.sampled_from([parse_topic_expression(text, None, {}) for text in texts])
interests = st.lists(expressions, max_size=2).map(tuple)
targets = st.tuples(st.integers(0, 5), st.none() | expressions)
changes = st.lists(
    st.one_of(
        st.tuples(st.just("want"), interests),
        st.tuples(st.just("release"), st.integers(0, 99)),
        st.tuples(st.just("add"), targets),
        st.tuples(st.just("discard"), st.integers(0, 5)),
    ),
    max_size=30,
)


def naively_wanted(held: list[Expressions], target: TopicExpression | None, subtree: bool) -> bool:
    return any(target is None or all(overlap(e, target, subtree) for e in wanted) for wanted in held)


@given(changes, st.booleans())
def test_targets_are_wanted_where_an_interest_overlaps_and_every_change_is_told(
    steps: list[tuple[str, object]], subtree: bool
) -> None:
    told: set[int] = set()
    index: Interests[int] = Interests(told.add, subtree)
    held: list[Expressions] = []
    known: dict[int, TopicExpression | None] = {}
    for step in steps:
        before = {target: naively_wanted(held, known[target], subtree) for target in known}
        told.clear()
        match step:
            case "want", tuple() as wanted:
                held.append(wanted)
                index.want(wanted)
            case "release", int(place) if held:
                index.release(held.pop(place % len(held)))
            case "add", (int(target), expression) if target not in known:
                known[target] = expression
                index.add(target, expression)
            case "discard", int(target):
                known.pop(target, None)
                index.discard(target)
        after = {target: naively_wanted(held, known[target], subtree) for target in known}
        assert {target: index.wanted(target) for target in known} == after
        changed = {target for target in before if target in after and before[target] != after[target]}
        assert changed == told


class Counted(OverlapIndex[int]):
    """An index that counts what it lets through to the exact comparison."""

    found = 0

    def candidates(self, expression: TopicExpression) -> Iterator[int]:
        found = list(super().candidates(expression))
        self.found += len(found)
        return iter(found)


def test_many_interests_and_many_targets_are_not_compared_each_with_each() -> None:
    index: Interests[int] = Interests(lambda target: None, True)
    counted = Counted(True)
    index._target_index = counted
    for number in range(2000):
        index.add(number, parse_topic_expression(f"R:p{number}:x", None, {}))
    for number in range(2000):
        index.want((parse_topic_expression(f"R/p{number}//.", DIALECT_FULL, {}),))
    assert counted.found == 2000
    assert all(index.wanted(number) for number in range(2000))
