"""The text of a topic file."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpwsn.topics.tree.declarations import Declaration, with_parents
from hpwsn.topics.tree.topic_toml import Document, DocumentError, encode_document, parse_document
from hpwsn_client.wsn.soap.names import HPWSN_TOPICS
from hpwsn_client.wsn.topics.topic_expressions import Topic

EXAMPLE = """
[topics.ALL]
description = "Everything"

[topics.ALL.ALARM.FIRE]
routing = "tcp"

[topics."ALL:description"]

[topics.ALL."{urn:x}Extra"]

[[namespaces]]
uri = "http://example.com/weather"
[namespaces.topics.Storm]
"""


def test_file_is_read_breadth_first_with_its_parents_and_namespaces() -> None:
    declarations = parse_document(EXAMPLE).declarations
    assert [str(each.topic) for each in declarations] == [
        "ALL",
        "{http://example.com/weather}Storm",
        "ALL:description",
        "ALL:ALARM",
        "ALL:{urn:x}Extra",
        "ALL:ALARM:FIRE",
    ]
    assert declarations[0].description == "Everything"
    assert declarations[-1].routing == "tcp"


def test_topics_of_the_file_are_in_its_namespace() -> None:
    document = parse_document('namespace = "urn:mine"\n[topics.A]')
    assert [each.topic for each in document.declarations] == [Topic("urn:mine", ("A",))]
    assert parse_document(encode_document(document)) == document


def test_empty_file_has_no_topics() -> None:
    assert parse_document("") == Document(())


def test_subtopics_may_be_called_like_the_keys_of_a_topic() -> None:
    document = parse_document("[topics.A.description.routing]\n[topics.A.routing]\ndescription = 'x'")
    assert [str(each.topic) for each in document.declarations] == [
        "A",
        "A:description",
        "A:routing",
        "A:description:routing",
    ]
    assert parse_document(encode_document(document)).declarations == document.declarations


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[topics", "not valid TOML"),
        ("[topic.A]", "topic: unknown key; known here are namespace, topics, namespaces"),
        ("topics = 3", "topics = 3: it must be a table"),
        ("[topics]\nA = 'x'", r"topics.A: a topic is a table, so write \[topics.A\]"),
        (
            "[topics.A]\ndescripton = 'x'",
            r"topics.A.descripton: .*keys of a topic are description, routing, visibility",
        ),
        ("[topics.A]\ndescription = 3", "topics.A.description = 3: it must be a text"),
        ("[topics.A]\nrouting = 'smtp'", 'topics.A.routing = \'smtp\': it must be "udp", "tcp" or left out'),
        ("[topics.A]\nrouting = ['udp']", r"topics.A.routing = \['udp'\]: it must be"),
        ("[topics.'1 2']", "topics.\"1 2\": '1 2' is not a topic name"),
        ("[topics.'A::B']", "topics.\"A::B\": 'A::B' is not a topic name"),
        ("[topics.'{urn:x}A']", 'topics."{urn:x}A": .*not in the topic'),
        ("[topics.A.B]\n[topics.'A:B']", r"topic A:B is declared at topics."),
        ("namespaces = 3", r"each written as \[\[namespaces\]\]"),
        ("namespaces = [3]", r"namespaces\[0\] = 3: it must be a table"),
        ("[[namespaces]]", r"namespaces\[0\].uri = None: it must be a URI"),
        ("[[namespaces]]\nuri = 'x'\ntopic = 3", r"namespaces\[0\].topic: unknown key"),
        ("namespace = 'a b'", "namespace = 'a b': it must be a URI"),
        (f"a = {'[' * 5000}{']' * 5000}", "nested too deeply|not valid TOML"),
        (f"[topics.{'.'.join('A' * 65)}]", "65 steps; use 1 to 64"),
    ],
)
def test_mistake_is_named_with_its_key_and_its_remedy(text: str, words: str) -> None:
    with pytest.raises(DocumentError, match=words):
        parse_document(text)


STEPS = st.sampled_from(["A", "B.C", "Straße", "description", "routing", "{urn:x}A", "{urn:y}Z", "a-b_c"])
ROOTS = st.sampled_from(["A", "Straße", "description", "routing", "topics"])
TOPICS = st.builds(
    lambda namespace, root, rest: Topic(namespace, (root, *rest)),
    st.sampled_from([HPWSN_TOPICS, "urn:x", "http://example.com/a?b=1&c"]),
    ROOTS,
    st.lists(STEPS, max_size=3),
)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]))
DECLARATIONS = st.builds(Declaration, TOPICS, TEXTS, st.sampled_from([None, "udp", "tcp"]))


@given(st.lists(DECLARATIONS), st.sampled_from([HPWSN_TOPICS, "urn:x"]))
def test_what_is_written_reads_as_the_same(declarations: list[Declaration], namespace: str) -> None:
    document = Document(tuple(with_parents(declarations)), namespace)
    read = parse_document(encode_document(document))
    assert set(read.declarations) == set(document.declarations)
    assert read.namespace == namespace


@given(st.text())
def test_garbage_gives_nothing_but_a_document_error(text: str) -> None:
    try:
        parse_document(text)
    except DocumentError as error:
        assert str(error)
