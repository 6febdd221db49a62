"""The topic tree as TopicSet and TopicNamespace documents."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from hpwsn.topics.tree.declarations import Declaration
from hpwsn.topics.tree.topic_set import topic_expressions, topic_namespace, topic_set
from hpwsn.topics.tree.tree import TopicTree
from hpwsn_client.wsn.soap.names import DIALECT_SIMPLE, HPWSN, HPWSN_TOPICS, PREFIXES, WSTOP
from hpwsn_client.wsn.topics.topic_expressions import Topic, parse_topic, parse_topic_expression
from tests.unit.client.wsn import strategies

MARK = f"{{{WSTOP}}}topic"
RESERVED = set(PREFIXES) - {HPWSN}


def tree(*topics: str, fixed: bool = False) -> TopicTree[str]:
    return TopicTree([Declaration(Topic.parse(topic)) for topic in topics], fixed=fixed)


def marked(document: bytes) -> set[str]:
    """The paths of the elements that are topics."""
    found = set()
    for element in etree.fromstring(document).iter():
        if element.get(MARK) == "true":
            above = [e.tag for e in reversed([*element.iterancestors()])][1:]
            found.add("/".join([*above, element.tag]))
    return found


def test_roots_are_in_their_namespace_and_topics_below_in_none(oasis: Any) -> None:
    document = topic_set(tree("A:B", "{urn:x}A", "{urn:x}A:{urn:y}C").root)
    oasis.validate(document)
    ours = f"{{{HPWSN_TOPICS}}}A"
    assert marked(document) == {ours, f"{ours}/B", "{urn:x}A", "{urn:x}A/{urn:y}C"}


def test_a_topic_that_only_leads_to_others_is_not_marked() -> None:
    open_tree = tree()
    open_tree.publish(Topic.parse("A:B:C"))
    assert marked(topic_set(open_tree.root)) == {f"{{{HPWSN_TOPICS}}}A/B/C"}
    open_tree.subscribe((parse_topic_expression("A:B", DIALECT_SIMPLE, {}),), "somebody")
    open_tree.retain(Topic.parse("A"), 1)
    root = f"{{{HPWSN_TOPICS}}}A"
    assert marked(topic_set(open_tree.root)) == {root, f"{root}/B", f"{root}/B/C"}


def test_an_empty_tree_is_an_empty_set(oasis: Any) -> None:
    oasis.validate(topic_set(tree().root))
    assert marked(topic_set(tree().root)) == set()
    assert list(topic_expressions(tree().root)) == []


@given(topics=st.lists(strategies.topics, max_size=8))
def test_every_topic_is_in_the_set_and_the_set_is_valid(oasis: Any, topics: list[Topic]) -> None:
    every = TopicTree[str]([Declaration(topic) for topic in topics])
    document = topic_set(every.root)
    oasis.validate(document)
    wanted = set()
    for topic in every.topics():
        steps = [f"{{{topic.namespace}}}{topic.path[0]}", *topic.path[1:]]
        if not any(step[1:].rpartition("}")[0] in RESERVED for step in steps if step.startswith("{")):
            wanted.add("/".join(steps))
    assert marked(document) == wanted


@given(topics=st.lists(strategies.topics, max_size=8))
def test_the_expressions_name_exactly_the_topics_of_the_tree(oasis: Any, topics: list[Topic]) -> None:
    every = TopicTree[str]([Declaration(topic) for topic in topics])
    written = list(topic_expressions(every.root))
    for data in written:
        oasis.validate(data)
    expressions = [parse_topic(etree.fromstring(data)) for data in written]
    found = {topic for expression in expressions for topic in every.concrete(expression)}
    assert found == set(every.topics())


@given(topics=st.lists(strategies.topics, max_size=8))
def test_a_topic_namespace_is_valid_for_every_namespace(oasis: Any, topics: list[Topic]) -> None:
    every = TopicTree[str]([Declaration(topic) for topic in topics])
    for namespace in {topic.namespace for topic in topics}:
        document = topic_namespace(every.root, namespace)
        assert document is not None
        oasis.validate(document)


def test_a_topic_namespace_has_the_descriptions_of_its_topics() -> None:
    described = TopicTree[str]([Declaration(Topic.parse("A:B"), description="hot & cold")])
    document = topic_namespace(described.root, HPWSN_TOPICS)
    assert document is not None
    assert etree.fromstring(document).findtext("{*}Topic/{*}Topic/{*}documentation") == "hot & cold"
    assert topic_namespace(described.root, "urn:none") is None


def test_a_thread_can_write_the_set_while_topics_come_and_go() -> None:
    changing = tree(*(f"Stays:n{number}" for number in range(200)))
    with ThreadPoolExecutor(1) as threads:
        for round_ in range(20):
            writing = threads.submit(topic_set, changing.root)
            for number in range(200):
                topic = Topic.parse(f"Goes{number % 7}:n{number}")
                changing.publish(topic)
                changing.retain(topic, round_ + 1)
                changing.release(topic)
            stays = {path for path in marked(writing.result(10)) if "Stays/" in path}
            assert len(stays) == 200
