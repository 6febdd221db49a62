"""Expressions that could match a topic in common: equal to trying every topic, and found by the index."""

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpwsn.topics.tree.overlap import OverlapIndex, overlap
from hpwsn_client.wsn.soap.names import DIALECT_FULL, DIALECT_SIMPLE, HPWSN_TOPICS
from hpwsn_client.wsn.topics.topic_expressions import Topic, TopicExpression, parse_topic_expression
from tests.unit.client.wsn import strategies

# A name that no pattern has stands for all the others; a witness is no longer than both patterns together.
NAMES = ("A", "B", "Z")
TOPICS = [Topic(HPWSN_TOPICS, path) for depth in range(1, 6) for path in product(NAMES, repeat=depth)]


@st.composite
def patterns(draw: st.DrawFn) -> str:
    text = draw(st.sampled_from(["", "//"])) + draw(st.sampled_from(["A", "B", "*"]))
    for _ in range(draw(st.integers(0, 1))):
        text += draw(st.sampled_from(["/", "//"])) + draw(st.sampled_from(["A", "B", "*"]))
    return text + draw(st.sampled_from(["", "", "//."]))


expressions = st.one_of(
    st.lists(patterns(), min_size=1, max_size=2).map(
        lambda texts: parse_topic_expression("|".join(texts), DIALECT_FULL, {})
    ),
    st.sampled_from(["A", "A:B", "B:A"]).map(lambda text: parse_topic_expression(text, DIALECT_SIMPLE, {})),
)


@given(expressions, expressions, st.booleans())
def test_two_expressions_overlap_where_a_topic_matches_both(
    one: TopicExpression, other: TopicExpression, subtree: bool
) -> None:
    common = any(one.matches(topic, subtree) and other.matches(topic, subtree) for topic in TOPICS)
    assert overlap(one, other, subtree) is common
    assert overlap(other, one, subtree) is common


@given(strategies.expressions(), strategies.topics, st.booleans())
def test_a_topic_that_an_expression_matches_overlaps_it(
    expression: TopicExpression, topic: Topic, subtree: bool
) -> None:
    named = TopicExpression.of(topic)
    assert overlap(expression, named, subtree) is expression.matches(topic, subtree)


@given(
    st.lists(expressions | strategies.expressions(), max_size=8),
    st.sets(st.integers(0, 7)),
    expressions | strategies.expressions(),
    st.booleans(),
)
def test_the_index_finds_every_expression_that_overlaps(
    held: list[TopicExpression], gone: set[int], wanted: TopicExpression, subtree: bool
) -> None:
    index: OverlapIndex[int] = OverlapIndex(subtree)
    for key, expression in enumerate(held):
        index.add(expression, key)
    for key in gone & set(range(len(held))):
        index.discard(held[key], key)
    left = {key for key in range(len(held)) if key not in gone}
    found = set(index.candidates(wanted))
    assert found <= left
    assert {key for key in left if overlap(held[key], wanted, subtree)} <= found


def test_an_index_that_lets_all_go_keeps_nothing() -> None:
    index: OverlapIndex[str] = OverlapIndex(True)
    expression = parse_topic_expression("A/B/C|D//.", None, {})
    index.add(expression, "key")
    index.discard(expression, "key")
    index.discard(expression, "unknown")
    assert index._roots == {}


@pytest.mark.parametrize("wanted", ["R:x7", "R:x7:deep"])
def test_neighbours_are_no_candidates(wanted: str) -> None:
    index: OverlapIndex[int] = OverlapIndex(True)
    for number in range(1000):
        index.add(parse_topic_expression(f"R:x{number}", None, {}), number)
    assert [*index.candidates(parse_topic_expression(wanted, None, {}))] == [7]
