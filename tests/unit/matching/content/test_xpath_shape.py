"""XPath of the shape of a predicate is indexed, and selects what XPath itself selects."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from lxml import etree

from hpwsn.matching.content.content_filters import ContentFilters
from hpwsn.matching.content.content_group import INDEX_ABOVE, ContentGroup
from hpwsn.matching.content.xpath_shape import MOST_DEPTH, shape_of
from hpwsn.matching.language.predicates import disjunction_holds
from hpwsn.node.content_engines import NEVER, BrokerEngines
from hpwsn_client.wsn.operations.filters import ContentFilter, compile_content
from hpwsn_client.wsn.soap.names import DIALECT_XPATH

NAMESPACES = (("x", "urn:x"), ("y", "urn:y"))
PATHS = [
    "a",
    "b",
    "a/b",
    "@k",
    "a/@k",
    "/r/a",
    "/r/x:c",
    "//b",
    "//@k",
    "//a/b",
    "/r",
    "x:c",
    "y:c",
    "//x:c/@x:k",
    "and",
]
NUMBERS = [
    "1",
    "-1",
    "0.1",
    "2.50",
    ".5",
    "- 3",
    "123456789.123456789",
    "0.3000000000000000001",
    "1" + "0" * 30,
]
TEXTS = ["'1'", '"a"', "''", "'é'", "' 2.5 '", '"it\'s"']
VALUES = [
    "1",
    "-1",
    "0.1",
    " 2.5 ",
    "1e2",
    "+1",
    "NaN",
    "",
    "a",
    "é",
    "1 2",
    "-0",
    "Infinity",
    "123456789.123456789",
    ".5",
]

comparisons = st.one_of(
    st.builds(
        "{} {} {}".format,
        st.sampled_from(PATHS),
        st.sampled_from(["<", "<=", ">", ">=", "="]),
        st.sampled_from(NUMBERS),
    ),
    st.builds(
        "{}{}{}".format,
        st.sampled_from(NUMBERS),
        st.sampled_from(["<", "<=", ">", ">=", "="]),
        st.sampled_from(PATHS),
    ),
    st.builds(
        "{} {} {}".format, st.sampled_from(PATHS), st.sampled_from(["=", "!="]), st.sampled_from(TEXTS)
    ),
)
expressions = st.recursive(
    comparisons,
    lambda inner: (
        st.builds("{} and {}".format, inner, inner)
        | st.builds("{} or {}".format, inner, inner)
        | st.builds("({})".format, inner)
    ),
    max_leaves=5,
)


@st.composite
def payloads(draw, depth=0):
    element = etree.Element("r" if not depth else draw(st.sampled_from(["a", "b", "{urn:x}c", "and"])))
    for name in draw(st.sets(st.sampled_from(["k", "{urn:x}k"]))):
        element.set(name, draw(st.sampled_from(VALUES)))
    element.text = draw(st.sampled_from(VALUES))
    if draw(st.integers(0, 9)) == 0:
        element.append(etree.Comment("5"))
    for _ in range(draw(st.integers(0, 3 if not depth else 1)) if depth < 3 else 0):
        element.append(draw(payloads(depth + 1)))
    return element


def xpath(expression):
    return ContentFilter(DIALECT_XPATH, expression, NAMESPACES)


def found_by_index(sources, payload):
    filters, group = ContentFilters(), ContentGroup(BrokerEngines(NEVER))
    for source in sources:
        filters.acquire((source,))
        group.add(source.expression, filters.find((source,)))
    return sorted(group.match([filters.evaluation(etree.tostring(payload))])[0])


@settings(max_examples=300, deadline=None)
@given(expressions, payloads())
@example("a < 1 and a > 5", etree.fromstring("<r><a>0</a><a>6</a></r>"))
@example("a != 'x'", etree.fromstring("<r/>"))
@example("a != 'x' and a = 'x'", etree.fromstring("<r><a>x</a><a>y</a></r>"))
def test_a_shape_means_what_xpath_means_or_says_that_it_cannot_tell(expression, payload):
    source = xpath(expression)
    shape = shape_of(source)
    assert shape is not None
    values = [ContentFilters().evaluation(etree.tostring(payload)).values(path) for path in shape.paths]
    if None not in values:
        event = {name: value for each in values for name, value in each.items()}
        again = etree.fromstring(etree.tostring(payload))
        assert disjunction_holds(shape.request, event) is compile_content(source)(again)


@settings(max_examples=40, deadline=None)
@given(st.lists(expressions, min_size=INDEX_ABOVE + 1, max_size=INDEX_ABOVE + 5, unique=True), payloads())
def test_many_of_them_select_together_what_each_selects_alone(texts, payload):
    again = etree.fromstring(etree.tostring(payload))
    expected = sorted(text for text in texts if compile_content(xpath(text))(again))
    assert found_by_index([xpath(text) for text in texts], payload) == expected


def test_of_several_nodes_each_comparison_may_take_another():
    texts = [f"a > {n} and a < {n - 4}" for n in range(INDEX_ABOVE + 8)]
    payload = etree.fromstring("<r><a>1</a><a>20</a></r>")
    assert found_by_index([xpath(text) for text in texts], payload) == sorted(
        f"a > {n} and a < {n - 4}" for n in range(6, 20)
    )


@pytest.mark.parametrize(
    "expression",
    [
        "a != 5", "a < 'x'", "a[1] > 5", "count(a) > 5", "not(a > 1)", "a", "a > b", "1 < 2", "* > 1",
        ". > 1", "../a > 1", "a < 5 < 6", "a + 1 > 5", "a - 1 > 5", "a/text() = 'x'", "child::a > 1",
        "a//b > 1", "a | b > 1", "xml:a > 1", "a = true()", "-a > 1", "a > --1", "a > 1 and b", "@* = 'x'",
        "(" * (MOST_DEPTH + 1) + "a > 1" + ")" * (MOST_DEPTH + 1),
        " and ".join(f"(a{n} > 1 or b{n} > 1)" for n in range(20)),
    ],
)  # fmt: skip
def test_what_has_another_shape_is_left_to_xpath(expression):
    assert shape_of(xpath(expression)) is None


def test_paths_are_the_same_where_their_names_are():
    one = shape_of(ContentFilter(DIALECT_XPATH, "p:a > 1", (("p", "urn:x"),)))
    other = shape_of(ContentFilter(DIALECT_XPATH, "q:a > 1", (("p", "urn:y"), ("q", "urn:x"))))
    assert one.request == other.request
    assert one.paths[0].key == other.paths[0].key
