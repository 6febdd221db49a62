"""Internal topics of the tree: what is below them, what subscribers may ask for, and what changes."""

import pytest

from hpwsn.topics.ldap.entries.ldif import encode_ldif, parse_ldif
from hpwsn.topics.tree.declarations import Declaration
from hpwsn.topics.tree.internal_topics import InternalTopic
from hpwsn.topics.tree.topic_toml import Document, DocumentError, encode_document, parse_document
from hpwsn.topics.tree.tree import TopicTree
from hpwsn_client.wsn.soap.names import DIALECT_CONCRETE, DIALECT_FULL, DIALECT_SIMPLE
from hpwsn_client.wsn.topics.topic_expressions import Topic, TopicExpression, parse_topic_expression

T = Topic.parse
SCOPE = {"t": "urn:hpwsn:topics"}


def tree(*topics: str, internal: tuple[str, ...] = ("traffic:anpr",)) -> TopicTree[str]:
    declared = [Declaration(T(each)) for each in ("traffic:flow", "other", *topics)]
    declared += [Declaration(T(each), visibility="internal") for each in internal]
    return TopicTree(declared, fixed=True)


def expression(text: str, dialect: str = DIALECT_SIMPLE) -> tuple[TopicExpression, ...]:
    return (parse_topic_expression(text, dialect, SCOPE),)


def test_a_topic_is_internal_with_all_below_it_also_those_that_come_later() -> None:
    topics = tree()
    topics.add(T("traffic:anpr:lane:one"))
    found = {str(each.topic) for each in topics.nodes() if each.internal}
    assert found == {"traffic:anpr", "traffic:anpr:lane", "traffic:anpr:lane:one"}
    assert topics.is_internal(T("traffic:anpr:never:seen"))
    assert not topics.is_internal(T("traffic:never"))
    assert not topics.is_internal(T("unknown"))


def test_a_topic_and_all_below_it_change_sides_at_once() -> None:
    topics = tree("traffic:anpr:lane", internal=("traffic:anpr", "traffic:anpr:secret"))
    version = topics.version
    topics.add(T("traffic:anpr"), visibility="public")
    assert topics.version > version
    assert [str(each.topic) for each in topics.nodes() if each.internal] == ["traffic:anpr:secret"]
    topics.add(T("traffic"), visibility="internal")
    assert [str(each.topic) for each in topics.nodes() if not each.internal] == ["other"]


def test_a_publication_on_an_internal_topic_has_no_subscribers() -> None:
    topics = tree()
    topics.subscribe((), "all")
    topics.subscribe(expression("traffic"), "above")
    topics.subscribe(expression("t:traffic//.", DIALECT_FULL), "wild")
    assert list(topics.match(T("traffic:anpr"))) == []
    assert list(topics.match(T("traffic:anpr:removed"), accepted=True)) == []
    assert list(topics.match(T("traffic:flow"))) == ["all", "above", "wild"]
    topics.add(T("traffic:anpr"))
    assert list(topics.match(T("traffic:anpr"))) == ["all", "above", "wild"]


@pytest.mark.parametrize(
    ("text", "dialect"),
    [
        ("traffic:anpr", DIALECT_SIMPLE),
        ("t:traffic/anpr", DIALECT_CONCRETE),
        ("t:traffic/anpr//*", DIALECT_FULL),
        ("t:traffic/anpr/new|t:traffic/anpr", DIALECT_FULL),
    ],
)
def test_expressions_that_name_only_internal_topics_are_refused(text: str, dialect: str) -> None:
    topics = tree()
    with pytest.raises(InternalTopic, match="is internal: only jobs read it"):
        topics.subscribe(expression(text, dialect), "me")
    topics.subscribe(expression(text, dialect), "me", restore=True)
    assert list(topics.match(T("traffic:anpr"))) == []


@pytest.mark.parametrize("text", ["t:traffic//.", "t:traffic/*", "t:*", "t:traffic/anpr|t:traffic/flow"])
def test_expressions_that_can_match_a_public_topic_are_accepted(text: str) -> None:
    tree().subscribe(expression(text, DIALECT_FULL), "me")


def test_one_of_several_expressions_that_is_internal_refuses_all() -> None:
    with pytest.raises(InternalTopic):
        tree().subscribe((*expression("traffic"), *expression("traffic:anpr")), "me")


def test_keys_have_internal_topics_only_for_who_may_read_them() -> None:
    topics = tree()
    assert topics.keys(expression("traffic")) == {"traffic", "traffic:flow"}
    assert topics.keys(expression("traffic"), internal=True) == {"traffic", "traffic:flow", "traffic:anpr"}
    assert topics.keys(expression("traffic:anpr")) == frozenset()
    assert {str(each.topic) for each in topics.matching(())} == {"traffic", "traffic:flow", "other"}
    topics.add(T("traffic:anpr"))
    assert topics.keys(expression("traffic")) == {"traffic", "traffic:flow", "traffic:anpr"}


def test_a_moved_topic_keeps_its_visibility() -> None:
    topics = tree()
    topics.move(T("traffic:anpr"), T("other:plates"))
    assert topics.is_internal(T("other:plates"))


def test_both_texts_keep_the_visibility() -> None:
    text = '[topics.A]\nvisibility = "internal"\n[topics.A.B]\n[topics.C]\nvisibility = "public"\n'
    found = parse_document(text).declarations
    assert [each.visibility for each in found] == ["internal", "public", None]
    assert parse_document(encode_document(Document(found))).declarations == found
    again = parse_ldif(encode_ldif(found))
    assert [(each.topic, each.visibility) for each in again] == [(e.topic, e.visibility) for e in found]


def test_a_topic_can_be_called_visibility() -> None:
    declared = (Declaration(T("A"), visibility="internal"), Declaration(T("A:visibility")))
    assert parse_document(encode_document(Document(declared))).declarations == declared
    (_, below) = parse_document("[topics.A.visibility]\n").declarations
    assert str(below.topic) == "A:visibility"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "[topics.A]\nvisibility = 'secret'",
            'topics.A.visibility = \'secret\': it must be "internal", "public"',
        ),
        ("[topics.A]\nvisibility = 3", "topics.A.visibility = 3"),
        (
            "[topics.A]\nvisibility = 'internal'\n[topics.A.B.C]\nvisibility = 'public'",
            "topic A:B:C cannot be public, since A:B above it is internal; leave its visibility out",
        ),
    ],
)
def test_a_mistake_in_the_file_is_named(text: str, words: str) -> None:
    with pytest.raises(DocumentError, match=words):
        parse_document(text)


@pytest.mark.parametrize("value", ["secret", ""])
def test_a_mistake_in_ldif_is_named(value: str) -> None:
    text = encode_ldif([Declaration(T("A"), visibility="internal")]).replace(": internal", f": {value}")
    with pytest.raises(DocumentError, match=r"hpwsnVisibility is .*; it must be public or internal"):
        parse_ldif(text)
