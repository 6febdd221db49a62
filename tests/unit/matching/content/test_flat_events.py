"""Ordinary payloads as events, without a parser: the same as with one, or nothing."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from hpwsn.matching.content.attributes import MAX_FLAT_BYTES, MAX_HEAD, event_of, flat_event
from hpwsn_client.wsn.formats.json_events import encode_event
from hpwsn_client.wsn.soap.xml import STORED_LIMITS, encode_element, parse_xml

HP = "urn:hpwsn:1"


@pytest.mark.parametrize(
    "xml",
    [
        "<r><speed>61.5</speed><vid>京B34C91</vid></r>",
        '<r xmlns="urn:x" xmlns:y = \'urn:y\'>\n <a>-1</a>\n <b>+2.</b><c>1e3</c><d>1e999</d><e>٣</e> </r>',
        "<p:r xmlns:p='urn:p'><a></a><b> true </b><c> 7 </c><d>1.2.3</d><e>></e></p:r>",
        f"<r><a>{'9' * 99}</a><b>{'9' * 400}</b></r>",
    ],
)  # fmt: skip
def test_a_flat_payload_is_read_as_the_parser_reads_it(xml: str) -> None:
    found = flat_event(xml.encode())
    assert found is not None
    assert found == event_of(parse_xml(xml.encode()))


def test_a_json_event_of_plain_fields_is_flat() -> None:
    posted = {"cid": "cam-1", "flow": 26, "on": True, "time": "2024-03-04T06:00:00Z"}
    assert flat_event(encode_event(posted)) == {**posted, "flow": 26.0}


@pytest.mark.parametrize(
    "xml",
    [
        "<a>1</a>",
        "<r>text</r>",
        "<r/>",
        "<r><a>1</a><a>2</a></r>",
        "<r><a>1</a><b/></r>",
        "<r><a x='1'>1</a></r>",
        "<r x='1'><a>1</a></r>",
        "<r x='>'><a>1</a></r>",
        "<r><a>1</a><b><c>1</c></b></r>",
        "<r><a>1</a><!--<b>2</b>--></r>",
        "<r><a>1</a><![CDATA[<b>2</b>]]></r>",
        "<r><a>1</a><b>&lt;</b></r>",
        "<r><a>1</a><b>x\r\ny</b></r>",
        "<r xmlns:p='urn:p'><p:a>1</p:a></r>",
        f"<r xmlns='{HP}'><field>1</field></r>",
        f"<hp:text xmlns:hp='{HP}'><a>1</a></hp:text>",
        f"<r xmlns:long='{'x' * MAX_HEAD}'><a>1</a></r>",
        f"<r><a>{'x' * MAX_FLAT_BYTES}</a></r>",
    ],
)
def test_whatever_is_unusual_is_left_to_the_parser(xml: str) -> None:
    assert flat_event(xml.encode()) is None


NAMES = st.sampled_from(
    ["a", "b", "ü", "field", "item", "text", "{urn:p}a", f"{{{HP}}}field", f"{{{HP}}}text"]
)
TEXTS = st.sampled_from(["", "1", "-2.5", "1e2", "true", " x ", "<", "&", ">", "]]>", "\r", "nan"]) | st.text(
    st.characters(min_codepoint=32, exclude_categories=("Cs", "Cn"), exclude_characters="\ufffe\uffff"),
    max_size=5,
)
ATTRIBUTES = st.dictionaries(NAMES, TEXTS, max_size=1)
TREES = st.recursive(
    st.tuples(NAMES, ATTRIBUTES, TEXTS, st.just([])),
    lambda inner: st.tuples(NAMES, ATTRIBUTES, TEXTS, st.lists(inner, max_size=4)),
    max_leaves=6,
)


@given(TREES)
def test_what_is_read_without_a_parser_is_what_the_parser_reads(tree: tuple) -> None:
    payload = encode_element(_element(tree))
    found = flat_event(payload)
    assert found is None or found == event_of(parse_xml(payload, STORED_LIMITS))


def _element(tree: tuple) -> etree._Element:
    name, attributes, text, children = tree
    element = etree.Element(name, attributes)
    element.text = text
    element.extend(map(_element, children))
    return element


FLAT = "<r>{}<a>1{}</a>{}<b>x{}</b>{}</r>"
REMARKS = st.sampled_from(
    ["", "", "", "<!---->", "<!--<c>2</c>-->", "<!-- < <c>2</c> -->", "<?p <c>2</c>?>", "<!--></b><b>-->"]
)


@given(st.tuples(*[REMARKS] * 5))
def test_comments_and_instructions_are_no_part_of_an_event(remarks: tuple[str, ...]) -> None:
    payload = FLAT.format(*remarks).encode()
    found = flat_event(payload)
    assert (found is None) == any(remarks)
    assert event_of(parse_xml(payload)) == {"a": 1.0, "b": "x"}
