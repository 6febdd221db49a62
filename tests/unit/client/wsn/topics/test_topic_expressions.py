"""Topics and their expressions: every rule of how they are written, and which topics they name."""

import re
from collections.abc import Callable, Iterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from lxml import etree

from hpwsn_client.wsn.soap.faults import (
    InvalidTopicExpressionFault,
    SoapFault,
    TopicExpressionDialectUnknownFault,
)
from hpwsn_client.wsn.soap.names import (
    DIALECT_CONCRETE,
    DIALECT_FULL,
    DIALECT_SIMPLE,
    HPWSN_TOPICS,
    WSNT,
    WSTOP,
    XML_NS,
    wsnt,
)
from hpwsn_client.wsn.soap.version import SoapVersion, encode_envelope
from hpwsn_client.wsn.soap.xml import parse_xml
from hpwsn_client.wsn.topics import topic_expressions as module
from hpwsn_client.wsn.topics.topic_expressions import (
    Topic,
    TopicExpression,
    encode_topic,
    parse_topic,
    parse_topic_expression,
)
from tests.conftest import Oasis
from tests.unit.client.wsn import strategies

SCOPE = {"p": "urn:p", "q": "urn:q", None: "urn:default"}
DIALECTS = (DIALECT_SIMPLE, DIALECT_CONCRETE, DIALECT_FULL)


def ours(*path: str) -> Topic:
    return Topic(HPWSN_TOPICS, path)


def parse(text: str, dialect: str | None = None) -> TopicExpression:
    return parse_topic_expression(text, dialect, SCOPE)


# A topic by itself


@given(strategies.topics)
def test_a_topic_is_read_back_from_how_it_is_written(topic: Topic) -> None:
    assert Topic.parse(str(topic)) == topic


@pytest.mark.parametrize(
    ("text", "topic"),
    [
        ("A", ours("A")),
        ("A:B:C", ours("A", "B", "C")),
        ("A/B/C", ours("A", "B", "C")),
        (" A:B\n", ours("A", "B")),
        ("报警:火灾:一层", ours("报警", "火灾", "一层")),
        ("sensor.1:temp-2", ours("sensor.1", "temp-2")),
        ("{urn:p}A:B", Topic("urn:p", ("A", "B"))),
        ("{urn:hpwsn:topics}A:B", ours("A", "B")),
        ("{http://x/y:z}A/{urn:q}B", Topic("http://x/y:z", ("A", "{urn:q}B"))),
        ("{urn:p}A:{urn:p}B", Topic("urn:p", ("A", "B"))),
    ],
)
def test_a_topic_has_several_spellings(text: str, topic: Topic) -> None:
    assert Topic.parse(text) == topic


NO_TOPICS = [
    *(
        "",
        " ",
        ":",
        "A:",
        ":A",
        "A::B",
        "A:B/C",
        "/A",
        "A/",
        "A//B",
        "1A",
        "-a",
        ".",
        "A/.",
        "*",
        "A B",
        "A:B\0",
    ),
    *(
        "{}A",
        "{urn:p}",
        "{urn:p",
        "urn:p}A",
        "{a b}A",
        "{{a}}A",
        "A|B",
        "a\ud800",
        "{\ud800}a",
        "×",
        "{urn:京}A",
    ),
    f"{{{XML_NS}}}A",
]


@pytest.mark.parametrize("text", NO_TOPICS)
def test_what_is_no_topic_is_refused_as_the_standard_says(text: str) -> None:
    with pytest.raises(InvalidTopicExpressionFault):
        Topic.parse(text)


@pytest.mark.parametrize(
    ("namespace", "path"),
    [
        ("urn:p", ()),
        ("urn:p", ("A:B",)),
        ("urn:p", ("A", "")),
        ("", ("A",)),
        ("a b", ("A",)),
        ("urn:p", ("{urn:q}A",)),
    ],
)
def test_a_topic_cannot_be_built_that_could_not_be_written(namespace: str, path: tuple[str, ...]) -> None:
    with pytest.raises(InvalidTopicExpressionFault):
        Topic(namespace, path)


def test_the_error_shows_the_text_and_what_to_write_instead() -> None:
    with pytest.raises(InvalidTopicExpressionFault, match=r"'A::B' is not a topic .* such as A:B:C"):
        Topic.parse("A::B")


def test_a_topic_knows_its_name_its_parent_and_all_above_it() -> None:
    topic = Topic("urn:p", ("A", "B", "C"))
    assert topic.name == "C"
    assert topic.parent == Topic("urn:p", ("A", "B"))
    assert list(topic.ancestors()) == [Topic("urn:p", ("A", "B")), Topic("urn:p", ("A",))]
    assert Topic("urn:p", ("A",)).parent is None


def test_a_topic_covers_itself_and_what_is_below_in_its_own_namespace() -> None:
    topic = Topic("urn:p", ("A", "B"))
    assert topic.covers(topic)
    assert topic.covers(Topic("urn:p", ("A", "B", "C")))
    assert not topic.covers(Topic("urn:p", ("A",)))
    assert not topic.covers(Topic("urn:p", ("A", "BB")))
    assert not topic.covers(Topic("urn:q", ("A", "B")))


def test_a_topic_may_have_64_steps_and_4096_characters_and_no_more() -> None:
    assert len(Topic.parse(":".join("A" * 64)).path) == 64
    assert Topic.parse("A" * 4096).name == "A" * 4096
    for text in (":".join("A" * 65), "A" * 4097):
        with pytest.raises(InvalidTopicExpressionFault):
            Topic.parse(text)


# Which expression names which topic


@pytest.mark.parametrize("dialect", [None, *DIALECTS])
@pytest.mark.parametrize(
    ("text", "topic"),
    [
        ("A", ours("A")),
        ("A:B", ours("A", "B")),
        ("A:B:C", ours("A", "B", "C")),
        ("p:A", Topic("urn:p", ("A",))),
        ("p:A:B", Topic("urn:p", ("A", "B"))),
        ("报警:火灾", ours("报警", "火灾")),
        ("xml:A", ours("xml", "A")),
    ],
)
def test_a_colon_form_is_a_qname_where_its_prefix_is_bound_and_else_a_path_of_ours(
    text: str, dialect: str | None, topic: Topic
) -> None:
    assert parse(text, dialect).topic == topic


@pytest.mark.parametrize("dialect", [None, DIALECT_CONCRETE, DIALECT_FULL])
@pytest.mark.parametrize(
    ("text", "topic"),
    [
        ("A/B/C", ours("A", "B", "C")),
        ("p:A/B/C", Topic("urn:p", ("A", "B", "C"))),
        ("p:A/p:B", Topic("urn:p", ("A", "B"))),
        ("p:A/q:B/C", Topic("urn:p", ("A", "{urn:q}B", "C"))),
        ("A/q:B", ours("A", "{urn:q}B")),
    ],
)
def test_a_slash_path_is_the_standards(text: str, dialect: str | None, topic: Topic) -> None:
    assert parse(text, dialect).topic == topic


def test_colons_and_slashes_write_the_same_topic() -> None:
    assert parse("A:B").topic == parse("A/B").topic == ours("A", "B")


def test_a_default_namespace_does_not_apply_to_unprefixed_names() -> None:
    element = parse_xml(b'<Topic xmlns="urn:default">A/B</Topic>')
    assert parse_topic(element).topic == ours("A", "B")


@pytest.mark.parametrize("dialect", [None, DIALECT_CONCRETE, DIALECT_FULL])
@pytest.mark.parametrize("text", ["z:A/B", "A/z:B", "p:A/z:B"])
def test_an_unbound_prefix_in_a_slash_path_is_refused(text: str, dialect: str | None) -> None:
    with pytest.raises(InvalidTopicExpressionFault, match="'z' is not bound"):
        parse(text, dialect)


@pytest.mark.parametrize("text", ["z://A", "z:*", "z:A//*", "A|z:A/B", "z://*"])
def test_an_unbound_prefix_before_a_wildcard_is_refused(text: str) -> None:
    with pytest.raises(InvalidTopicExpressionFault, match="'z' is not bound"):
        parse(text)


@pytest.mark.parametrize(
    ("text", "dialect"),
    [("A", DIALECT_SIMPLE), ("A:B:C", DIALECT_SIMPLE), ("p:A", DIALECT_SIMPLE), ("sensor.1", DIALECT_SIMPLE)]
    + [("A/B", DIALECT_CONCRETE), ("p:A/B.x", DIALECT_CONCRETE), ("A/B./C", DIALECT_CONCRETE)]
    + [(text, DIALECT_FULL) for text in ("*", "p:A/*", "p:A//B", "p://A", "A|B", "A/.", "A/./B", "A//.")],
)
def test_without_a_dialect_the_form_tells_it(text: str, dialect: str) -> None:
    assert parse(text).dialect == parse(text, "").dialect == dialect


@pytest.mark.parametrize(
    ("dialect", "text"),
    [(DIALECT_SIMPLE, text) for text in ("A/B", "p:A/B", "*", "A|B", "A//B", "", "A:", "p:A:B/C")]
    + [
        (DIALECT_CONCRETE, text)
        for text in ("A/*", "A//B", "A|B", "/A", "A/", "A/.", "p:A:B/C", "p:q:A/B", "", "//A")
    ]
    + [
        (DIALECT_FULL, text)
        for text in ("", "|", "A|", "|A", "A||B", "/A", "A/", "A///B", "A//", "A/..", ".", "//.")
    ]
    + [
        (DIALECT_FULL, text)
        for text in ("p:", "p:/A", "p:A/p:*", "//p:A", "A /B", "A | B", "A/ B", "p:A:*", "**", "A*")
    ]
    + [(None, text) for text in ("", " ", ":", "A:B/C", "{urn:p}A", "A\n/B")],
)
def test_what_the_dialect_does_not_allow_is_refused(dialect: str | None, text: str) -> None:
    with pytest.raises(InvalidTopicExpressionFault):
        parse(text, dialect)


@pytest.mark.parametrize("dialect", ["urn:unknown", "Simple", DIALECT_FULL + "/", "\ud800", "x" * 5000])
def test_an_unknown_dialect_has_its_own_fault(dialect: str) -> None:
    with pytest.raises(TopicExpressionDialectUnknownFault):
        parse("A", dialect)


@pytest.mark.parametrize("uri", [XML_NS, "http://www.w3.org/2000/xmlns/", "a b", "{", "}", "x" * 4097, "\0"])
def test_a_namespace_that_no_topic_can_have_is_refused(uri: str) -> None:
    for text in ("z:A", "z:A/B", "z://*", "A/z:B"):
        with pytest.raises(InvalidTopicExpressionFault):
            parse_topic_expression(text, None, {"z": uri})


def test_a_prefix_without_a_namespace_is_not_bound() -> None:
    assert parse_topic_expression("z:A", None, {"z": ""}).topic == ours("z", "A")


@pytest.mark.parametrize("prefix", ["xml", "xmlns"])
def test_the_prefixes_of_xml_itself_are_names_like_any_other(prefix: str) -> None:
    assert parse_topic_expression(f"{prefix}:A", None, {prefix: "urn:x"}).topic == ours(prefix, "A")


def test_an_expression_may_have_4096_characters_64_steps_and_64_alternatives_and_no_more() -> None:
    assert parse("A" * 4096).topic == ours("A" * 4096)
    assert len(parse("/".join("A" * 64)).patterns[0].steps) == 64
    assert len(parse("|".join(f"A{n}" for n in range(64))).patterns) == 64
    for text in ("A" * 4097, "/".join("A" * 65), "//".join("A" * 65), "A" + "/." * 64):
        with pytest.raises(InvalidTopicExpressionFault, match=r"64|4096"):
            parse(text)
    with pytest.raises(InvalidTopicExpressionFault, match="64"):
        parse("|".join(f"A{n}" for n in range(65)))


@given(st.text(max_size=60), st.none() | st.sampled_from(DIALECTS) | st.text(max_size=9))
def test_any_text_is_an_expression_or_a_fault(text: str, dialect: str | None) -> None:
    try:
        parse(text, dialect)
    except SoapFault as fault:
        assert fault.reason


@given(st.text("AB:/*|.p{} \n", max_size=20), st.sampled_from([None, *DIALECTS]))
def test_any_text_of_the_grammars_own_characters_is_an_expression_or_a_fault(
    text: str, dialect: str | None
) -> None:
    try:
        expression = parse(text, dialect)
    except SoapFault:
        return
    assert expression.text == text.strip()


@pytest.mark.parametrize(
    "text", ["A" * 4095 + "!", "A:" * 2048, "A/" * 2048, "//A" * 1365, "p:" + "A" * 4093 + "/"]
)
def test_a_hostile_text_is_refused_at_once(text: str) -> None:
    with pytest.raises(InvalidTopicExpressionFault):
        parse(text)


# One topic, or several


@pytest.mark.parametrize(
    ("text", "topic"),
    [("A/.", ours("A")), ("A/./B", ours("A", "B")), ("A|A", ours("A")), ("A:B|A/B", ours("A", "B"))]
    + [(text, None) for text in ("*", "A/*", "A//B", "A//.", "//A", "A|B", "p://*", "A/*|A/*")],
)
def test_an_expression_tells_the_one_topic_that_it_names(text: str, topic: Topic | None) -> None:
    assert parse(text, DIALECT_FULL).topic == topic


def test_simple_covers_the_subtree_unless_told_otherwise() -> None:
    simple, concrete = parse("p:A", DIALECT_SIMPLE), parse("p:A", DIALECT_CONCRETE)
    below = Topic("urn:p", ("A", "B"))
    assert simple.subtree
    assert simple.matches(below)
    assert not simple.matches(below, simple_subtree=False)
    assert simple.matches(Topic("urn:p", ("A",)), simple_subtree=False)
    assert not concrete.subtree
    assert not concrete.matches(below)


EVERY = ["A", "C", "A/B", "A/C", "A/B/A", "A/B/A/B"]
FULL = [
    ("p:A", "A"),
    ("p:A/*", "A/B A/C"),
    ("p:A//*", "A/B A/C A/B/A A/B/A/B"),
    ("p:A//.", "A A/B A/C A/B/A A/B/A/B"),
    ("p:A/.", "A"),
    ("p:*", "A C"),
    ("p:*/*", "A/B A/C"),
    ("p://*", "A C A/B A/C A/B/A A/B/A/B"),
    ("p://B", "A/B A/B/A/B"),
    ("p://A/B", "A/B A/B/A/B"),
    ("p:A//B", "A/B A/B/A/B"),
    ("p:A//./B", "A/B A/B/A/B"),
    ("p:A/.//B/.", "A/B A/B/A/B"),
    ("p:A//A//.", "A/B/A A/B/A/B"),
    ("p:A/C|p:C", "A/C C"),
    ("q://*", ""),
    ("*", ""),
    ("//*", ""),
]


@pytest.mark.parametrize(("text", "expected"), FULL)
def test_full_means_what_the_standard_says(text: str, expected: str) -> None:
    tree = [Topic("urn:p", tuple(path.split("/"))) for path in EVERY]
    found = {"/".join(topic.path) for topic in tree if parse(text, DIALECT_FULL).matches(topic)}
    assert found == set(expected.split())


def test_a_star_stands_for_a_name_of_any_namespace_and_a_plain_name_for_one_of_the_roots() -> None:
    topic = Topic("urn:p", ("A", "{urn:q}B"))
    assert parse("p:A/*").matches(topic)
    assert parse("p:A//q:B").matches(topic)
    assert not parse("p:A//B").matches(topic)


Tree = dict[str, "Tree"]


def naive_select(
    nodes: Tree, path: tuple[str, ...], steps: list[tuple[str, str]]
) -> Iterator[tuple[str, ...]]:
    """The grammar, read aloud: each step goes on from every node that the steps before it found."""
    if not steps:
        yield path
        return
    (mark, name), rest = steps[0], steps[1:]
    if mark == "//":
        for child, below in nodes.items():
            yield from naive_select(below, (*path, child), steps)
    if name == ".":
        yield from naive_select(nodes, path, rest)
    else:
        for child, below in nodes.items():
            if name in ("*", child):
                yield from naive_select(below, (*path, child), rest)


def naive_topics(text: str, tree: Tree) -> set[tuple[str, ...]]:
    found: set[tuple[str, ...]] = set()
    for alternative in text.split("|"):
        assert alternative.startswith("p:")
        marked = re.findall(r"(//?|)([^/]+)", alternative.removeprefix("p:"))
        steps = [(mark, name.replace("q:", "{urn:q}").replace("p:", "")) for mark, name in marked]
        found.update(naive_select(tree, (), steps))
    return found


def paths_of(tree: Tree, above: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    for name, below in tree.items():
        yield (*above, name)
        yield from paths_of(below, (*above, name))


NODES = st.sampled_from(["A", "B", "{urn:q}A"])
TREES = st.dictionaries(
    st.sampled_from("AB"),
    st.recursive(st.just({}), lambda below: st.dictionaries(NODES, below, max_size=3), max_leaves=12),
    max_size=2,
)
ALTERNATIVES = st.builds(
    "p:{}{}{}".format,
    st.sampled_from(["", "//"]),
    st.sampled_from("AB*"),
    st.lists(
        st.builds(
            "{}{}".format, st.sampled_from(["/", "//"]), st.sampled_from(["A", "B", "q:A", "p:A", "*", "."])
        ),
        max_size=5,
    ).map("".join),
)


@given(TREES, st.lists(ALTERNATIVES, min_size=1, max_size=3).map("|".join))
def test_full_finds_in_any_tree_what_the_naive_reading_finds(tree: Tree, text: str) -> None:
    expression = parse(text, DIALECT_FULL)
    found = {path for path in paths_of(tree) if expression.matches(Topic("urn:p", path))}
    assert found == naive_topics(text, tree)
    assert not any(expression.matches(Topic("urn:q", path)) for path in paths_of(tree) if path[0] in "AB")


def test_no_pattern_takes_long_to_match() -> None:
    expression = parse("p:" + "//A" * 60 + "//B")
    assert not expression.matches(Topic("urn:p", ("A",) * 64))


# Between values and XML


def in_envelope(data: bytes) -> etree._Element:
    around = b'<wsnt:Notify xmlns:wsnt="%b" xmlns:wsa="urn:a" xmlns:hp="urn:b">%b</wsnt:Notify>' % (
        WSNT.encode(),
        data,
    )
    return parse_xml(encode_envelope(SoapVersion.SOAP12, around))[0][0][0]


@given(strategies.expressions(), st.sampled_from([wsnt("Topic"), "{urn:some&thing}Topic", "Topic"]))
def test_an_expression_is_read_back_from_its_element_alone_and_in_an_envelope(
    expression: TopicExpression, tag: str
) -> None:
    data = encode_topic(expression, tag)
    assert parse_xml(data).tag == tag
    assert parse_topic(parse_xml(data)) == expression
    assert parse_topic(in_envelope(data)) == expression


@given(strategies.topics, st.sampled_from([DIALECT_CONCRETE, DIALECT_FULL]))
def test_every_topic_has_an_expression_that_names_just_it(topic: Topic, dialect: str) -> None:
    expression = TopicExpression.of(topic, dialect)
    assert (expression.topic, expression.dialect) == (topic, dialect)
    assert parse_topic(in_envelope(encode_topic(expression, wsnt("Topic")))) == expression


@given(strategies.topics)
def test_a_topic_with_steps_of_other_namespaces_has_no_simple_expression(topic: Topic) -> None:
    if any(step.startswith("{") for step in topic.path):
        with pytest.raises(InvalidTopicExpressionFault, match="Concrete"):
            TopicExpression.of(topic, DIALECT_SIMPLE)
    else:
        expression = TopicExpression.of(topic, DIALECT_SIMPLE)
        assert expression.topic == topic
        assert parse_topic(in_envelope(encode_topic(expression, wsnt("Topic")))).topic == topic


def test_topics_are_written_as_clients_of_the_standard_read_them() -> None:
    topic = Topic("urn:p", ("A", "{urn:q}B", "C"))
    element = parse_xml(encode_topic(TopicExpression.of(topic), wsnt("Topic")))
    assert element.text == "t:A/t1:B/C"
    assert element.get("Dialect") == DIALECT_CONCRETE
    assert (element.nsmap["t"], element.nsmap["t1"]) == ("urn:p", "urn:q")
    assert TopicExpression.of(ours("A", "B")).text == "A/B"
    assert TopicExpression.of(ours("A", "B"), DIALECT_SIMPLE).text == "A:B"


def test_a_path_of_ours_that_begins_like_a_prefix_of_our_envelopes_keeps_its_meaning() -> None:
    expression = parse_topic_expression("wsnt:B|topics1:A", None, {})
    assert [pattern.topic for pattern in expression.patterns] == [ours("wsnt", "B"), ours("topics1", "A")]
    assert parse_topic(in_envelope(encode_topic(expression, wsnt("Topic")))) == expression


def test_only_the_prefixes_that_an_expression_uses_are_kept() -> None:
    scope = {"p": "urn:p", "q": "urn:q", "B": "urn:b", "unused": "urn:u"}
    assert parse_topic_expression("p:A/q:B", None, scope).namespaces == (("p", "urn:p"), ("q", "urn:q"))
    assert parse_topic_expression("p:B:C", None, scope).namespaces == (("p", "urn:p"),)


def test_an_element_is_read_with_the_prefixes_in_its_scope() -> None:
    data = b"""<s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/" xmlns:t="urn:outer"><s:Body>
        <n:Notify xmlns:n="http://docs.oasis-open.org/wsn/b-2" xmlns:t="urn:inner"><n:Topic>
          t:A/B
        </n:Topic></n:Notify></s:Body></s:Envelope>"""
    assert parse_topic(parse_xml(data)[0][0][0]).topic == Topic("urn:inner", ("A", "B"))


@pytest.mark.parametrize(
    "data", [b"<Topic/>", b"<Topic> </Topic>", b"<Topic>A<b/></Topic>", b"<Topic><A/></Topic>"]
)
def test_an_element_without_just_a_text_is_refused(data: bytes) -> None:
    with pytest.raises(InvalidTopicExpressionFault):
        parse_topic(parse_xml(data))


# The cache


def test_the_same_text_in_another_scope_is_another_expression() -> None:
    first = parse_topic_expression("p:A", None, {"p": "urn:1"})
    second = parse_topic_expression("p:A", None, {"p": "urn:2"})
    assert (first.topic, second.topic) == (Topic("urn:1", ("A",)), Topic("urn:2", ("A",)))
    assert parse_topic_expression("p:A", None, {}).topic == ours("p", "A")


def test_an_expression_is_parsed_once_whatever_else_is_in_scope() -> None:
    first = parse_topic_expression("p:A/B", None, {"p": "urn:p"})
    assert parse_topic_expression("p:A/B", None, {"p": "urn:p", "z": "urn:z"}) is first


def test_the_cache_keeps_a_bounded_number_of_short_expressions() -> None:
    for number in range(5000):
        parse(f"bounded:{number and 'x'}{number}" if number else "bounded")
    assert module._parse_cached.cache_info().currsize <= 4096
    before = module._parse_cached.cache_info()
    parse("A" * 4000)
    parse_topic_expression("z:A", None, {"z": "urn:" + "z" * 3000})
    assert module._parse_cached.cache_info() == before


# The schema


def is_concrete_by_the_schema(oasis: Oasis, text: str) -> bool:
    topic = f'<t:TopicNamespace xmlns:t="{WSTOP}" targetNamespace="urn:x"><t:Topic name="x" parent="{text}"/>'
    try:
        oasis.validate(f"{topic}</t:TopicNamespace>".encode())
    except AssertionError:
        return False
    return True


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(
    text=st.text("ABp:/.-", max_size=10)
    | st.from_regex(r"(p:)?[ABp.-]{1,3}(/(p:)?[AB.-]{1,3}){0,3}", fullmatch=True)
)
def test_concrete_is_read_as_the_schema_has_it(oasis: Oasis, text: str) -> None:
    try:
        parse(text, DIALECT_CONCRETE)
        accepted = True
    except InvalidTopicExpressionFault:
        accepted = False
    if "/" in text and accepted:
        assert is_concrete_by_the_schema(oasis, text)
    elif not accepted and set(re.findall("([^:/]*):", text)) <= {"p"}:
        assert not is_concrete_by_the_schema(oasis, text)


@given(strategies.topics, st.sampled_from(["B", "{urn:other}B", "bad name", "{}B", "x" * 5000]))
def test_a_topic_above_or_below_is_the_one_that_its_parts_would_make(topic: Topic, step: str) -> None:
    def outcome(make: Callable[[], Topic]) -> object:
        try:
            return make()
        except InvalidTopicExpressionFault as fault:
            return str(fault)

    path = (*topic.path, step)
    assert outcome(lambda: topic.child(step)) == outcome(lambda: Topic(topic.namespace, path))
    assert topic.child(f"{{{topic.namespace}}}B").parent == topic
    above = [Topic(topic.namespace, topic.path[:n]) for n in range(len(topic.path) - 1, 0, -1)]
    assert list(topic.ancestors()) == above
    assert topic.parent == (above[0] if above else None)
