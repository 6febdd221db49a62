"""The mapping between JSON events and XML payloads: as documented, and there and back without a loss."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpwsn_client.wsn.formats.json_events import decode_event, encode_event
from hpwsn_client.wsn.formats.json_text import MalformedJson, parse_event_lines, parse_events
from hpwsn_client.wsn.operations.notifications import text_payload
from hpwsn_client.wsn.soap.soap_faults import InvalidMessage, TooLarge
from hpwsn_client.wsn.soap.xml import Limits, parse_xml

HP = 'xmlns:hp="urn:hpwsn:1"'

texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="￾￿", min_codepoint=32))
names = st.one_of(st.sampled_from(["a", "b", "Name", "xml", "xmlns", "name", "item", "1", ""]), texts)
scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False, allow_infinity=False),
    texts,
    st.sampled_from(["21", " 21.5 ", "true", "false", "null", "1e5", "-0", "", " ", "\t\r\n", "007", "<&>"]),
)
values = st.recursive(
    scalars, lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(names, inner, max_size=4))
)
events = st.dictionaries(names, values, max_size=5)


@given(events)
def test_an_object_comes_back_from_its_xml_as_it_was(event):
    payload = encode_event(event)
    back = decode_event(payload)
    assert back == event
    assert json.dumps(back, sort_keys=True) == json.dumps(event, sort_keys=True), "1 is not 1.0, nor true"


def test_an_integer_beyond_the_range_of_floats_comes_back():
    assert decode_event(encode_event({"x": -(10**400)})) == {"x": -(10**400)}


@given(events)
def test_the_xml_of_an_event_has_a_child_for_each_field_by_its_name(event):
    root = parse_xml(encode_event(event))
    assert root.tag == "{urn:hpwsn:1}event"
    found = {c.get("name") if c.tag == "{urn:hpwsn:1}field" else c.tag for c in root}
    assert found == set(event)


@given(st.lists(events, min_size=1, max_size=5))
def test_json_and_ndjson_of_the_same_events_are_the_same(objects):
    lines = "\r\n\n".join(json.dumps(one) for one in objects).encode()
    assert parse_event_lines(lines) == parse_events(json.dumps(objects).encode()) == objects


@given(st.binary(max_size=40))
def test_garbage_is_refused_in_our_own_words(data):
    for parse in (parse_events, parse_event_lines):
        try:
            parse(data)
        except MalformedJson as error:
            assert error.status == 400


@pytest.mark.parametrize(
    ("event", "xml"),
    [
        ({"speed": 61.5, "vid": "京B34C91"}, "<speed>61.5</speed><vid>京B34C91</vid>"),
        ({"keywords": ["fire", "smoke"]}, "<keywords>fire</keywords><keywords>smoke</keywords>"),
        ({"place": {"x": 1, "y": -2}}, "<place><x>1</x><y>-2</y></place>"),
        ({"wind speed": 3}, '<hp:field name="wind speed">3</hp:field>'),
        ({"a:b": "<&>"}, '<hp:field name="a:b">&lt;&amp;&gt;</hp:field>'),
        ({"on": True}, "<on>true</on>"),
        ({"none": None}, '<none hp:type="null"/>'),
        ({"plate": "21"}, '<plate hp:type="string">21</plate>'),
        ({"one": ["fire"]}, '<one hp:array="true">fire</one>'),
        ({"no": [], "void": {}}, '<no hp:type="array"/><void hp:type="object"/>'),
        ({"m": [[1, 2], [3]]}, "<m><hp:item>1</hp:item><hp:item>2</hp:item></m><m><hp:item>3</hp:item></m>"),
    ],
)
def test_an_event_is_written_as_the_contract_says(event, xml):
    assert encode_event(event).decode() == f"<hp:event {HP}>{xml}</hp:event>"


@pytest.mark.parametrize(
    ("xml", "data"),
    [
        ("<reading>21.5</reading>", {"reading": 21.5}),
        ("<r xmlns='urn:x'><a>1</a><p:b xmlns:p='urn:p'>x</p:b></r>", {"a": 1, "b": "x"}),
        ("<r><k>fire</k><other/><k>smoke</k></r>", {"k": ["fire", "smoke"], "other": ""}),
        ("<r>\n  <pos>\n <x> 1 </x><y>2e3</y></pos>\n</r>", {"pos": {"x": 1, "y": 2000.0}}),
        ("<r><id>007</id><on>true</on><big>1e999</big></r>", {"id": "007", "on": "true", "big": "1e999"}),
        ("<r><item Name='IsMotion' Value='1'/></r>", {"item": {"Name": "IsMotion", "Value": 1}}),
        ("<reading unit='C'>21</reading>", {"reading": 21, "unit": "C"}),
        ("<r><t unit='C'>21</t></r>", {"t": 21}),
        ("<r at='3'><at>4</at></r>", {"at": 4}),
        (
            "<r xmlns:i='http://www.w3.org/2001/XMLSchema-instance'><a i:nil='true'/><b i:type='x'>1</b></r>",
            {"a": None, "b": 1},
        ),
        (f"<hp:event {HP}><on>true</on><n>1</n></hp:event>", {"on": True, "n": 1}),
        ("<empty/>", {"empty": ""}),
    ],
)
def test_xml_of_others_is_read_as_the_contract_says(xml, data):
    assert decode_event(xml.encode()) == data


def test_a_payload_that_is_only_text_is_text():
    assert decode_event(text_payload("21.5")) == {"text": "21.5"}


def test_an_element_of_our_text_with_children_is_an_element():
    assert decode_event(b'<hp:text xmlns:hp="urn:hpwsn:1">x<b>1</b>y</hp:text>')["b"] == 1


def test_a_payload_too_deep_for_json_is_its_xml_as_text():
    deep = "<a>" * 300 + "</a>" * 300
    assert decode_event(deep.encode()) == {"text": deep}


@pytest.mark.parametrize("event", [{"a": "\0"}, {"\x01": 1}, {"a": "\ud800"}, {"\udfff b": 1}])
def test_what_xml_cannot_write_is_refused_with_the_character(event):
    with pytest.raises(InvalidMessage, match=r"U\+"):
        encode_event(event)


def test_an_event_too_deep_for_a_delivery_is_refused():
    event: dict = {}
    for _ in range(251):
        event = {"a": event}
    encode_event(event["a"])
    with pytest.raises(InvalidMessage, match="deeper than the 251"):
        encode_event({"a": event})
    nested: list = []
    for _ in range(300):
        nested = [nested]
    with pytest.raises(InvalidMessage, match="deeper"):
        encode_event({"a": nested})


def test_a_long_name_of_a_long_array_ends_at_the_limit():
    with pytest.raises(TooLarge, match="100000 characters"):
        encode_event({"n" * 10_000: [0] * 10_000}, Limits(body=100_000))


@pytest.mark.parametrize(
    ("text", "line", "column"),
    [
        (b'{"a": 1,\n "b": }', 2, 7),
        (b'[{"a": 1}, 2', 1, 13),
        (b'{"a":\n NaN}', 2, 2),
        (b'{"a": 1e999}', 1, 7),
        (b'{"a": %s}' % (b"9" * 5000), 1, 7),
        (b'{"a":\n "\xff"}', 2, 3),
        (b"", 1, 1),
        (b"[]", 1, 1),
    ],
)
def test_bad_json_is_refused_with_its_place(text, line, column):
    with pytest.raises(MalformedJson) as caught:
        parse_events(text)
    assert (caught.value.line, caught.value.column) == (line, column)
    assert f"line {line}, column {column}" in caught.value.reason


def test_a_bad_line_of_ndjson_is_refused_with_its_number():
    with pytest.raises(MalformedJson, match=r"line 3, column 7"):
        parse_event_lines(b'{"a": 1}\n\n{"a": }\n')
    with pytest.raises(MalformedJson, match=r"line 2"):
        parse_event_lines(b'{"a": 1}\n[{}]')


@pytest.mark.parametrize("text", [b"1", b'"a"', b"null", b"true", b"[{}, 1]", b"[[]]"])
def test_an_event_is_an_object(text):
    with pytest.raises(MalformedJson, match="an event must be an object"):
        parse_events(text)


def test_too_many_or_too_deep_events_are_refused():
    with pytest.raises(TooLarge, match="2 events"):
        parse_events(b"[{},{},{}]", Limits(messages=2))
    with pytest.raises(TooLarge, match="2 events"):
        parse_event_lines(b"{}\n{}\n{}", Limits(messages=2))
    with pytest.raises(MalformedJson, match="nested too deep"):
        parse_events(b"[" * 100_000)


@pytest.mark.parametrize(
    ("xml", "data"),
    [
        ("<r><!-- c --><a>2<!-- c -->1</a><?pi x?></r>", {"a": 21}),
        ("<r>2<!-- c -->1</r>", {"r": 21}),
        ("<r a='1'><!-- c --></r>", {"a": 1}),
        (f"<hp:event {HP}><!-- c --><on>tr<?pi?>ue</on></hp:event>", {"on": True}),
        (f"<hp:text {HP}>a<!-- c -->b</hp:text>", {"text": "ab"}),
    ],
)
def test_comments_and_instructions_are_no_data(xml, data):
    assert decode_event(xml.encode()) == data
