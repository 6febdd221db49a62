"""Payloads by their shape give what a parser gives: as JSON and as rows, one by one and together."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hpwsn.door.event_shapes import learned_shapes
from hpwsn.door.event_shapes.learned_shapes import MOST_CUTS, LearnedShapes
from hpwsn.door.event_shapes.leaves import cell, flat_leaves
from hpwsn.door.event_shapes.payload_shapes import JsonForm, RowsForm
from hpwsn.notification import END
from hpwsn_client.wsn.formats.json_events import JsonObject, decode_event, encode_event, parse_literal
from tests.json_event_values import EVENTS, NAMES, SCALARS

ODD = [
    b"<reading>21.5</reading>",
    b"<m><n>1</n><n>2</n></m>",
    b'<hp:text xmlns:hp="urn:hpwsn:1">plain</hp:text>',
    b'<hp:event xmlns:hp="urn:hpwsn:1"/>',
    b'<hp:event xmlns:hp="urn:hpwsn:1"></hp:event>',
    b'<hp:event xmlns:hp="urn:hpwsn:1"> <n>1</n> </hp:event>',
    b'<hp:event xmlns:hp="urn:hpwsn:1"><n> 5 </n><on> true</on></hp:event>',
    b'<hp:event xmlns:hp="urn:hpwsn:1"><n/><on></on></hp:event>',
    b'<hp:event xmlns:hp="urn:hpwsn:1"><n><!-- x -->1</n><cid><![CDATA[<x>]]></cid></hp:event>',
    b'<hp:event xmlns:hp="urn:hpwsn:1"><!--x--><n>1</n><?x?><cid>&#x41;&#66;&quot;</cid></hp:event>',
    b'<hp:event xmlns:hp="urn:hpwsn:1"><n>1\r\n2</n><a xml:lang="de">x</a><b c="1">y</b></hp:event>',
    b'<hp:event xmlns:hp="urn:hpwsn:1"><n>1</n><hp:field name="n">2</hp:field></hp:event>',
    b'<hp:event xmlns:hp="urn:hpwsn:1"><hp:field name="a&amp;b">2</hp:field></hp:event>',
    b'<hp:event xmlns:hp="urn:hpwsn:1"><x:n xmlns:x="u">3</x:n></hp:event>',
    b'<hp:event xmlns:hp="urn:hpwsn:1"><n>1.50</n><cid>1E3</cid><on>-0</on></hp:event>',
    b'<x><hp:event xmlns:hp="urn:hpwsn:1"><n>1</n></hp:event></x>',
]
PAYLOADS = EVENTS.map(encode_event) | st.sampled_from(ODD)


def number_or_text(value: bytes) -> object:
    """Rows have numbers in the digits of the payload: compare their values."""
    text = value.decode()
    return text if text.strip() != text else parse_literal(text)


def check(payloads: Sequence[bytes], form: LearnedShapes) -> None:
    converted = form.convert(b"".join(each + END for each in payloads), len(payloads))
    assert all(b"\n" not in line and END not in line for line in converted)
    assert list(map(json.loads, converted)) == list(map(decode_event, payloads))


def check_rows(payloads: Sequence[bytes], columns: Sequence[str], form: LearnedShapes) -> None:
    converted = form.convert(b"".join(each + END for each in payloads), len(payloads))
    for payload, row in zip(payloads, converted, strict=True):
        event = decode_event(payload)
        expected = [cell(event.get(column)) for column in columns]
        assert list(map(number_or_text, row.split(b"\x1f"))) == list(map(number_or_text, expected))
        assert b"\n" not in row and b"\r" not in row


@settings(max_examples=40)
@given(st.lists(st.lists(PAYLOADS, min_size=1, max_size=12), max_size=4))
def test_json_is_that_of_a_parser_whatever_was_learned_before(pages: list[list[bytes]]) -> None:
    form = LearnedShapes(JsonForm())
    for page in pages:
        for _ in range(3):
            check(page, form)


@settings(max_examples=40)
@given(
    st.lists(st.lists(PAYLOADS, min_size=1, max_size=12), max_size=4),
    st.lists(st.sampled_from([*NAMES, "nothing"]), min_size=1, max_size=5),
)
def test_rows_are_those_of_a_parser_whatever_was_learned_before(
    pages: list[list[bytes]], columns: list[str]
) -> None:
    form = LearnedShapes(RowsForm(columns))
    for page in pages:
        for _ in range(3):
            check_rows(page, columns, form)


@settings(max_examples=40)
@given(st.dictionaries(st.sampled_from(NAMES), SCALARS, max_size=6), st.data())
def test_events_of_one_shape_with_any_values(event: JsonObject, data: st.DataObject) -> None:
    form, rows = LearnedShapes(JsonForm()), LearnedShapes(RowsForm(NAMES))
    for _ in range(5):
        page = [encode_event({name: data.draw(SCALARS) for name in event}) for _ in range(5)]
        check(page, form)
        check_rows(page, NAMES, rows)


def test_a_payload_of_a_known_shape_is_converted_without_a_parser(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    form = LearnedShapes(JsonForm())
    pages = [[encode_event({"n": n, "cid": f"c{n}", "at": n / 8})] * 3 for n in range(3)]
    check(pages[0], form)

    def refuse(*given: object) -> tuple[bytes, None]:
        raise AssertionError("a payload of a learned shape took the slow way")

    monkeypatch.setattr(JsonForm, "convert_slowly", refuse)
    for page in pages:
        check(page, form)


@pytest.mark.parametrize("piece", [1, 64, 1000, 10_000])
def test_long_pages_are_converted_in_pieces(piece: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(learned_shapes, "PIECE", piece)
    form = LearnedShapes(JsonForm())
    for _ in range(2):
        check([encode_event({"n": n, "cid": f"c{n}"}) for n in range(100)] + ODD, form)


def test_what_is_learned_stays_bounded_when_every_event_has_a_new_shape() -> None:
    form = LearnedShapes(JsonForm())
    for number in range(3000):
        check([encode_event({f"a{number % 500}": 1, f"b{number % 300}": "x"})], form)
    assert len(form._cuts) <= MOST_CUTS


@pytest.mark.parametrize("payload", ODD)
def test_odd_payloads_have_no_leaves_that_a_parser_would_not_see(payload: bytes) -> None:
    leaves = flat_leaves(payload)
    assert leaves is None or [leaf.name for leaf in leaves] == list(decode_event(payload))
