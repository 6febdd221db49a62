"""Payloads as events."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpwsn.matching.content.attributes import MOST_VALUES, event_of, read_scalar
from hpwsn_client.wsn.formats.json_events import encode_event
from hpwsn_client.wsn.soap.xml import parse_xml


def event(text):
    return event_of(parse_xml(text if isinstance(text, bytes) else text.encode()))


@pytest.mark.parametrize(
    ("xml", "expected"),
    [
        ("<r><speed>61.5</speed><vid>京B34C91</vid></r>", {"speed": 61.5, "vid": "京B34C91"}),
        ("<reading>21.5</reading>", {"reading": 21.5}),
        ('<r xmlns="urn:x"><a b="7">x</a></r>', {"a": "x", "b": 7.0}),
        ('<r><m name="flow" value="3"/></r>', {"name": "flow", "value": 3.0}),
        ("<r><a>1</a><a>2</a><b><a>3</a></b></r>", {"a": (1.0, 2.0, 3.0)}),
        ("<r><on>true</on><off> false </off></r>", {"on": True, "off": False}),
        ("<r><a>007</a><b>+1.</b><c>.5e1</c><d>1e999</d><e>٣</e></r>",
         {"a": 7.0, "b": 1.0, "c": 5.0, "d": "1e999", "e": "٣"}),
        ('<r xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"><a xsi:nil="true"/><b/></r>', {"b": ""}),
        ('<hp:text xmlns:hp="urn:hpwsn:1">21</hp:text>', {"text": "21"}),
    ],
)  # fmt: skip
def test_leaves_and_attributes_are_an_events_attributes(xml, expected):
    assert event(xml) == expected


def test_a_json_event_keeps_its_types():
    posted = {"speed": 61, "vid": "21", "open": True, "wind speed": 3, "keywords": ["fire", "smoke"],
              "nothing": None, "none": [], "place": {"x": 1.5}, "grid": [[1, 2], [3]]}  # fmt: skip
    assert event(encode_event(posted)) == {
        "speed": 61.0, "vid": "21", "open": True, "wind speed": 3.0, "keywords": ("fire", "smoke"),
        "x": 1.5, "grid": (1.0, 2.0, 3.0),
    }  # fmt: skip


@given(text=st.text())
def test_any_text_is_a_scalar(text):
    value = read_scalar(text)
    assert value == value
    assert isinstance(value, float | bool) or value == text


def test_no_more_values_than_the_limit_are_looked_at():
    found = event("<r>" + "<a>1</a>" * (MOST_VALUES + 5) + "</r>")
    assert len(found["a"]) == MOST_VALUES
