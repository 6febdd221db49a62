"""LDIF of topics: written, read back, and refused where it says something else."""

import io

import ldif
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpwsn.topics.ldap.entries.ldif import encode_ldif, parse_ldif
from hpwsn.topics.tree.declarations import Declaration, with_parents
from hpwsn.topics.tree.topic_toml import DocumentError
from hpwsn_client.wsn.topics.topic_expressions import Topic
from tests.harness import ROOT

STEPS = st.sampled_from(["A", "a", "Straße", "京", "{urn:y}B", "x.y-z", "longName" * 20])
TOPICS = st.builds(
    lambda namespace, root, rest: Topic(namespace, (root, *rest)),
    st.sampled_from(["urn:hpwsn:topics", "urn:x", "http://example.com/a,b+c#d"]),
    st.sampled_from(["A", "a", "B"]),
    st.lists(STEPS, max_size=4),
)
DECLARATIONS = st.builds(
    Declaration,
    TOPICS,
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=100),
    st.sampled_from([None, "udp", "tcp"]),
)


def without_paths(declarations: list[Declaration]) -> set[tuple[Topic, str, str | None]]:
    return {(each.topic, each.description, each.routing) for each in declarations}


@given(st.lists(DECLARATIONS, max_size=10))
def test_what_is_written_is_read_back_and_python_ldap_reads_the_same_entries(
    given_: list[Declaration],
) -> None:
    declarations = with_parents(given_)
    text = encode_ldif(declarations, "ou=my topics,dc=example")
    assert without_paths(parse_ldif(text)) == without_paths(declarations)
    assert all(len(line) <= 76 or line.startswith("#") for line in text.split("\n"))
    theirs = ldif.LDIFRecordList(io.BytesIO(text.encode()))
    theirs.parse()
    assert len(theirs.all_records) == len(declarations)


def test_the_example_tree_is_read_with_the_entries_above_it_passed_over() -> None:
    text = "".join((ROOT / "ldap_schema" / name).read_text() for name in ("base.ldif", "example.ldif"))
    found = [str(each.topic) for each in parse_ldif(text)]
    assert found[:3] == ["ALL", "{urn:example:weather}Storm", "ALL:ALARM"]
    assert len(found) == 6


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("what\n", "line 1: 'what' is not valid LDIF"),
        ("dn: cn=A,dc=x\nchangetype: delete\n", "line 2: a change record"),
        ("objectClass: hpwsnTopic\n", "before line 2: a record must have one dn"),
        ("dn: cn=A\ncn:: %%%\n", "line 2: the value of cn is not base64"),
        ("dn: cn=A\njpegPhoto:< file:///x\n", "line 2: .* is not valid LDIF"),
        ("dn: cn=A b,dc=x\nobjectClass: hpwsnTopic\n", "cn=A b,dc=x: "),
        ("dn: nonsense,dc=x\nobjectClass: hpwsnTopic\n", "not a distinguished name"),
        (
            "dn: cn=A,dc=x\nobjectClass: hpwsnTopic\n\ndn: cn=a,dc=x\nobjectClass: hpwsnTopic\n",
            "two entries have the same name",
        ),
        (
            "dn: cn=A,dc=x\nobjectClass: hpwsnTopic\n\ndn: cn=C,cn=B,dc=x\nobjectClass: hpwsnTopic\n",
            "the entry above it is not a topic",
        ),
        ("dn: cn=A,dc=x\ncn: A\n", "cn=A,dc=x': the entry has no objectClass; that of a topic is hpwsnTopic"),
        ("dn: cn=A,dc=x\nobjectClass: hpwsnTopic\ncn:: ////\n", "cn=A,dc=x': its cn is not UTF-8"),
        (
            f"dn: {','.join(['cn=A'] * 65)}\nobjectClass: hpwsnTopic\n",
            "the topmost topic has 65 RDNs; 64 are allowed",
        ),
    ],
)
def test_text_that_is_something_else_is_refused_with_its_place(text: str, words: str) -> None:
    with pytest.raises(DocumentError, match=words):
        parse_ldif(text)


def test_the_base_may_be_as_deep_as_a_topic_and_topics_are_counted_at_the_edge() -> None:
    text = f"dn: {','.join(['cn=A'] * 64)}\nobjectClass: hpwsnTopic\n"
    assert [str(each.topic) for each in parse_ldif(text, 1)] == ["A"]
    with pytest.raises(DocumentError, match="it has more than 1 topics"):
        parse_ldif(f"{text}\n{text.replace('dn: ', 'dn: cn=B,')}", 1)


@given(st.text(max_size=200))
def test_any_text_is_read_or_refused_in_words(text: str) -> None:
    try:
        parse_ldif(text)
    except DocumentError as error:
        assert str(error)
