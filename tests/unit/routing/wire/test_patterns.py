"""Patterns as texts, and which covers which."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpwsn.routing.interest.interest_sets import MergedPatterns, PatternTable
from hpwsn.routing.wire.binary import MalformedMessage
from hpwsn.routing.wire.patterns import (
    EVERYTHING,
    coarsen,
    covers,
    encode_pattern,
    expressions_of,
    parse_pattern,
    patterns_of,
)
from hpwsn_client.wsn.soap.names import HPWSN_TOPICS
from hpwsn_client.wsn.topics.topic_expressions import Step, Topic, TopicPattern, parse_topic_expression

steps = st.lists(st.builds(Step, st.booleans(), st.sampled_from("ab*")), min_size=1, max_size=4).map(tuple)
some_patterns = st.builds(TopicPattern, st.sampled_from((HPWSN_TOPICS, "urn:x")), steps, st.booleans())
texts = some_patterns.map(encode_pattern)
paths = st.lists(st.sampled_from("abc"), min_size=1, max_size=6).map(tuple)
topics = st.builds(Topic, st.sampled_from((HPWSN_TOPICS, "urn:x")), paths)


@given(some_patterns)
def test_a_pattern_is_read_as_it_was_written(pattern: TopicPattern) -> None:
    assert parse_pattern(encode_pattern(pattern)) == pattern


@pytest.mark.parametrize("text", ["A", "{urn:x}", "/A///B", "/", "/A/", "{}/A", "/" + "A" * 9000])
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(MalformedMessage):
        parse_pattern(text)


@given(some_patterns, some_patterns, topics)
def test_what_is_covered_matches_nothing_more(one: TopicPattern, other: TopicPattern, topic: Topic) -> None:
    if covers(one, other) and other.matches(topic):
        assert one.matches(topic)


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("/A//.", "/A", True),
        ("/A//.", "/A/B/*//.", True),
        ("/A//.", "/*/B", False),
        ("/A/*", "/A/B", True),
        ("/A/*", "/A/*/C", False),
        ("//*", "/A//B", True),
        ("/A//*", "/A/*//*", True),
        ("/A/*//*", "/A//*", False),
        ("//B//.", "/A/*/B", True),
        ("/A//.", "{urn:x}/A", False),
        ("/A", "/A//.", False),
    ],
)
def test_covering_is_known_for_wildcards_too(one: str, other: str, expected: bool) -> None:
    assert covers(parse_pattern(one), parse_pattern(other)) is expected


def test_patterns_that_would_take_long_to_compare_count_as_different() -> None:
    long = "//a" + "/*" * 40
    assert not covers(parse_pattern(long + "//a"), parse_pattern(long + "//b"))


@given(st.lists(texts | st.just(EVERYTHING), max_size=12), st.integers(1, 6), topics)
def test_coarsening_loses_nothing_and_keeps_its_bound(some: list[str], most: int, topic: Topic) -> None:
    coarse = coarsen(set(some), most)
    assert len(coarse) <= most
    if PatternTable(some).wants(topic):
        assert PatternTable(coarse).wants(topic)


def test_neighbours_are_merged_into_their_parent() -> None:
    leaves = [f"/A/B/l{number}" for number in range(10)] + ["/C"]
    assert coarsen(leaves, 5) == {"/A/B//.", "/C"}
    assert coarsen([f"/t{number}" for number in range(10)], 5) == {"//."}
    assert coarsen([f"{{urn:{number}}}/t" for number in range(10)], 5) == {EVERYTHING}


def test_expressions_become_patterns_as_the_node_reads_them() -> None:
    simple = parse_topic_expression("A:B", None, {})
    full = parse_topic_expression("p:A//*|C", None, {"p": "urn:x"})
    assert patterns_of((simple,), True) == ("/A/B//.",)
    assert patterns_of((simple,), False) == ("/A/B",)
    assert patterns_of((full,), True) == ("{urn:x}/A//*", "/C")
    assert patterns_of((full, simple), True) == ("/A/B//.",)
    assert patterns_of((), True) == (EVERYTHING,)


@given(
    st.lists(st.tuples(st.booleans(), texts | st.just(EVERYTHING)), max_size=30), st.lists(topics, max_size=5)
)
def test_merging_keeps_what_is_wanted_whatever_comes_and_goes(
    changes: list[tuple[bool, str]], some: list[Topic]
) -> None:
    merged, held = MergedPatterns(), []
    for add, text in changes:
        if add:
            merged.add(text)
            held.append(text)
        elif text in held:
            merged.discard(text)
            held.remove(text)
        outermost = PatternTable(merged.outermost)
        assert merged.outermost <= set(held)
        assert all(outermost.wants(topic) == PatternTable(held).wants(topic) for topic in some)
    assert not any(
        covers(parse_pattern(one), parse_pattern(other))
        for one in merged.outermost - {EVERYTHING}
        for other in merged.outermost - {EVERYTHING, one}
    )


@given(st.lists(texts | st.just(EVERYTHING), max_size=12), topics)
def test_a_table_answers_as_its_patterns_do(some: list[str], topic: Topic) -> None:
    table = PatternTable(some)
    expected = EVERYTHING in some or any(parse_pattern(text).matches(topic) for text in some if text)
    assert table.wants(topic) == expected
    for text in some:
        table.discard(text)
    assert not table.wants(topic) and not table.texts


@given(texts | st.just(EVERYTHING), st.booleans())
def test_a_pattern_as_expressions_wants_just_that_pattern(text: str, simple_subtree: bool) -> None:
    assert patterns_of(expressions_of(text), simple_subtree) == (text,)
