"""Requests by the shape of their lines give what a parser gives, and leave the rest to it."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hpwsn.door.event_shapes.line_shapes import LineShapes
from hpwsn.notification import split_payloads
from hpwsn_client.wsn.formats.json_events import JsonObject, JsonValue, decode_event, encode_event
from hpwsn_client.wsn.formats.json_text import parse_event_lines, parse_events
from hpwsn_client.wsn.soap.soap_faults import SoapFault
from hpwsn_client.wsn.soap.xml import DEFAULT_LIMITS, Limits
from tests.json_event_values import EVENTS, NAMES, SCALARS, VALUES

STYLES = st.sampled_from([(", ", ": "), (",", ":"), (" ,  ", " :\t"), (",\t", ": ")])
ODD = [
    b"",
    b"\n",
    b"  \r\n\n",
    b'\xef\xbb\xbf{"n": 1}\n',
    b'{"n": 1}\n\xef\xbb\xbf{"n": 1}\n',
    b'{"n": 1}\r\n\r\n {"n": 2} \r\n',
    b'{"n": 1}{"n": 2}\n',
    b'x{"n": 1}\n',
    b'{"n": 1} x\n',
    b'{"n": 1, "n": 2}\n',
    b'{"n": 01}\n{"n": +1}\n',
    b'{"n": 1.}\n',
    b'{"n": NaN}\n',
    b'{"n": 1e999}\n',
    b'{"n": 1E5}\n{"n": -0}\n{"n": -0.0}\n{"n": 1.50}\n{"n": 0.00001}\n',
    b'{"n": 123456789012345678901234567890}\n',
    b'{"n": 0.1234567890123456789}\n',
    b'{"n": tru}\n',
    b'{"n": "a\x01b"}\n',
    b'{"n": "a\\u0001b"}\n',
    b'{"n": "\\ud800"}\n',
    b'{"n": "\xff"}\n',
    '{"n": "\ufffe"}\n'.encode(),
    b'{"n": "\\u0041\\/\\n"}\n',
    b'{"\\u006e": 1}\n',
    b'{"n": "x\x1ey"}\n',
    b'{"n": "</n>"}\n{"n": "}, {"}\n',
    b'{"n": [{"n": 1}, {"n": 2}]}\n',
    b'{"n": {"n": 1}}\n',
    b"[1, 2]\n",
    b"7\n",
    b"{}\n",
    b'{"n": 1,}\n',
    b'{"n" 1}\n',
    b'{"n": 1\n}\n',
]


def reference(data: bytes, array: bool, limits: Limits = DEFAULT_LIMITS) -> list[JsonObject] | None:
    try:
        events = (parse_events if array else parse_event_lines)(data, limits)
        return [decode_event(encode_event(event, limits)) for event in events]
    except SoapFault:
        return None


def check(shapes: LineShapes, data: bytes, array: bool = False) -> None:
    """The payloads are those of the reference, or the request is left to it."""
    found = shapes.payloads_of(data, array=array)
    if found is None:
        return
    payloads = split_payloads(found[0])
    assert len(payloads) == found[1]
    expected = reference(data, array)
    assert expected is not None
    events = list(map(decode_event, payloads))
    assert events == expected
    assert json.dumps(events) == json.dumps(expected), "numbers are of the same kind too"


def written(event: JsonObject, style: tuple[str, str], ascii_only: bool) -> bytes:
    return json.dumps(event, separators=style, ensure_ascii=ascii_only).encode()


@settings(max_examples=40)
@given(st.lists(st.lists(EVENTS, min_size=1, max_size=9), max_size=4), STYLES, st.booleans())
def test_lines_and_arrays_are_those_of_a_parser(
    requests: list[list[JsonObject]], style: tuple[str, str], ascii_only: bool
) -> None:
    shapes = LineShapes(DEFAULT_LIMITS, 4)
    for events in requests:
        lines = [written(event, style, ascii_only) for event in events]
        for _ in range(3):
            check(shapes, b"\n".join(lines))
            for separator in (b", ", b",", b",\n", b" , "):
                check(shapes, b"[" + separator.join(lines) + b"]\n", array=True)


@settings(max_examples=40)
@given(st.sets(st.sampled_from(NAMES), min_size=1), STYLES, st.sampled_from([SCALARS, VALUES]), st.data())
def test_lines_of_one_shape_with_any_values(
    names: set[str],
    style: tuple[str, str],
    values: st.SearchStrategy[JsonValue],
    data: st.DataObject,
) -> None:
    shapes = LineShapes(DEFAULT_LIMITS, 4)
    for _ in range(5):
        events = [{name: data.draw(values) for name in sorted(names)} for _ in range(4)]
        lines = b"\n".join(written(event, style, False) for event in events)
        assert shapes.payloads_of(lines, array=False) is not None
        check(shapes, lines)


@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize("array", [False, True])
def test_odd_requests_give_the_same_or_are_left_to_the_parser(odd: bytes, array: bool) -> None:
    shapes = LineShapes(DEFAULT_LIMITS, 4)
    for known in (b'{"n": 1}\n' * 3, b'{"n": "x"}\n' * 3, b'{"n": null}\n' * 3):
        for data in (odd, known + odd, odd + known, known, b"[" + odd.strip() + b"]", b"[" + odd + b", {}]"):
            check(shapes, data, array)


@settings(max_examples=40)
@given(st.lists(st.sampled_from(ODD), max_size=5), st.booleans())
def test_odd_lines_together(lines: list[bytes], array: bool) -> None:
    shapes = LineShapes(DEFAULT_LIMITS, 4)
    for _ in range(3):
        check(shapes, b"".join(lines), array)
        check(shapes, b"[" + b",".join(line.strip() for line in lines) + b"]", array)


def test_ordinary_requests_are_not_left_to_the_parser() -> None:
    shapes = LineShapes(DEFAULT_LIMITS, 4)
    events = [{"n": n, "cid": f"c{n}", "at": n / 8} for n in range(5)]
    found = b"".join(encode_event(event) + b"\x1e" for event in events)
    for _ in range(2):
        lines = b"".join(json.dumps(event).encode() + b"\n" for event in events)
        assert shapes.payloads_of(lines, array=False) == (found, 5)
        assert shapes.payloads_of(json.dumps(events).encode(), array=True) == (found, 5)


def test_requests_beyond_a_limit_are_left_to_the_parser() -> None:
    limits = Limits(body=200, depth=DEFAULT_LIMITS.depth, messages=3)
    line = b'{"a long name": 1}\n'
    assert LineShapes(limits, 4).payloads_of(line * 3, array=False) is not None
    assert LineShapes(limits, 4).payloads_of(line * 4, array=False) is None
    assert LineShapes(limits, 1).payloads_of(line * 3, array=False) is None
