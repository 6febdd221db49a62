"""ONVIF's ConcreteSet dialect: paths, unions of them, and subtrees; compared with a reading by hand."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpwsn_client.wsn.soap.faults import InvalidTopicExpressionFault
from hpwsn_client.wsn.soap.names import DIALECT_CONCRETE_SET, DIALECT_FULL, HPWSN_TOPICS, wsnt
from hpwsn_client.wsn.soap.xml import parse_xml
from hpwsn_client.wsn.topics.topic_expressions import Topic, encode_topic, parse_topic, parse_topic_expression

TNS1 = "http://www.onvif.org/ver10/topics"
SCOPE = {"tns1": TNS1, "tnsv": "urn:vendor"}
MOTION = Topic(TNS1, ("RuleEngine", "CellMotionDetector", "Motion"))

names = st.sampled_from(["A", "B", "C"])
paths = st.lists(names, min_size=1, max_size=3).map(tuple)
prefixes = st.sampled_from(["", "tns1:", "tnsv:"])
parts = st.tuples(prefixes, paths, st.booleans())
unions = st.lists(parts, min_size=1, max_size=4)
topics = st.builds(Topic, st.sampled_from([HPWSN_TOPICS, *SCOPE.values()]), paths)


def parse(text):
    return parse_topic_expression(text, DIALECT_CONCRETE_SET, SCOPE)


def written(union, joiner="|"):
    return joiner.join(prefix + "/".join(path) + "//." * subtree for prefix, path, subtree in union)


def named(union, topic):
    for prefix, path, subtree in union:
        namespace = SCOPE[prefix[:-1]] if prefix else HPWSN_TOPICS
        if namespace == topic.namespace and (topic.path[: len(path)] if subtree else topic.path) == path:
            return True
    return False


@given(unions, topics)
def test_it_names_what_a_reading_by_hand_names(union, topic):
    assert parse(written(union)).matches(topic) == named(union, topic)


@given(unions, st.sampled_from([" | ", "| ", "\n|", " |\t"]))
def test_blanks_around_the_bar_mean_nothing(union, joiner):
    assert parse(written(union, joiner)) == parse(written(union))


@given(unions, topics)
def test_it_means_what_full_means_by_the_same_text(union, topic):
    full = parse_topic_expression(written(union), DIALECT_FULL, SCOPE)
    assert full.matches(topic) == parse(written(union)).matches(topic)


@given(unions)
def test_it_comes_back_as_it_was_written(union):
    expression = parse(written(union))
    assert parse_topic(parse_xml(encode_topic(expression, wsnt("TopicExpression")))) == expression


@given(st.text("AB:/.|* tns1", max_size=12))
def test_any_other_text_is_refused_by_the_fault_of_the_standard(text):
    with contextlib.suppress(InvalidTopicExpressionFault):
        parse(text)


@pytest.mark.parametrize(
    ("text", "matches"),
    [
        ("tns1:RuleEngine/CellMotionDetector//.", True),
        ("tns1:RuleEngine//.", True),
        ("tns1:RuleEngine/CellMotionDetector/Motion//.", True),
        ("tns1:RuleEngine/CellMotionDetector/Motion", True),
        ("tns1:VideoSource//.|tns1:RuleEngine//.", True),
        ("tns1:RuleEngine/CellMotionDetector", False),
        ("tns1:VideoSource//.", False),
        ("tnsv:RuleEngine//.", False),
        ("RuleEngine//.", False),
    ],
)
def test_the_expressions_of_the_specification(text, matches):
    assert parse(text).matches(MOTION) is matches


@pytest.mark.parametrize(
    "text",
    [
        *("", "|", "tns1:A|", "tns1:A/*", "*", "//.", "tns1://A", "tns1:A//B", "tns1:A/.", "tns1:A//./B"),
        *("tns1:A//.//.", "tns1:A/", "unbound:A/B", "unbound:A//.", "|".join(["A"] * 65)),
    ],
)
def test_what_the_grammar_does_not_have_is_refused(text):
    with pytest.raises(InvalidTopicExpressionFault):
        parse(text)
