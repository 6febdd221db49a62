"""The topics of a TopicSet document, ours and those that other brokers write."""

from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from hpwsn.topics.tree.declarations import Declaration
from hpwsn.topics.tree.topic_set import topic_set
from hpwsn.topics.tree.tree import TopicTree
from hpwsn_client.wsn import Topic, parse_topic_set
from hpwsn_client.wsn.soap.names import HPWSN, PREFIXES, WSTOP
from tests.unit.client.wsn import strategies

RESERVED = set(PREFIXES) - {HPWSN}


def namespaces(topic: Topic) -> set[str]:
    return {topic.namespace, *(step[1:].partition("}")[0] for step in topic.path if step.startswith("{"))}


@given(topics=st.lists(strategies.topics, max_size=8))
def test_the_topics_of_a_tree_come_back_from_its_document(topics: list[Topic]) -> None:
    kept = {topic for topic in topics if not namespaces(topic) & RESERVED}
    document = topic_set(TopicTree[str]([Declaration(topic) for topic in kept]).root)
    found = parse_topic_set(etree.fromstring(document))
    assert len(found) == len(set(found))
    assert set(found) == kept | {above for topic in kept for above in topic.ancestors()}


def test_what_is_no_topic_is_passed_over() -> None:
    document = (
        f'<s:TopicSet xmlns:s="{WSTOP}" xmlns:t="urn:t"><!-- ours --><none s:topic="true"/>'
        '<s:documentation>words</s:documentation><t:A><B s:topic="1"><s:extra s:topic="true"/></B>'
        '<t:C s:topic="true"/><D s:topic="false"/></t:A></s:TopicSet>'
    )
    topics = parse_topic_set(etree.fromstring(document))
    assert [str(topic) for topic in topics] == ["{urn:t}A:B", "{urn:t}A:C"]
