"""Payloads of publications: a notification comes back as it was, garbage is refused, pieces fit and join."""

from __future__ import annotations

import struct
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from hpwsn.notification import FOREIGN, LARGE, PARTIAL, Notification, Run
from hpwsn.routing.publications.duplicates import Repeats
from hpwsn.routing.wire.binary import MalformedMessage
from hpwsn.routing.wire.payloads import (
    PIECE_HEADERS,
    encode_payload,
    parse_large_payload,
    parse_payload,
    pieces,
)
from hpwsn.routing.wire.publication import LargePayload
from hpwsn_client.wsn.operations.notifications import (
    NotificationMessage,
    encode_content,
    join_notification,
    parse_notification_message,
    text_payload,
)
from hpwsn_client.wsn.soap.xml import parse_xml
from hpwsn_client.wsn.topics.topic_expressions import Topic, TopicExpression

TOPIC = Topic.parse("ALL:ALARM")
texts = st.text(st.characters(codec="utf-8", exclude_categories=("Cs", "Cc")), max_size=300)


TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01 congo=t61rcWkgMzE"


def notification(
    payload: bytes, message_id: str | None = None, time: float = 1.5, trace: str | None = None
) -> Notification:
    content, start, end = encode_content(NotificationMessage(TopicExpression.of(TOPIC), payload))
    return Notification(TOPIC, content, start, end, time, message_id, routing=PARTIAL, trace=trace)


@given(
    texts,
    st.none() | st.text(st.characters(codec="utf-8"), min_size=1, max_size=20),
    st.integers(0, 2**50),
    st.sampled_from((None, TRACE)),
)
def test_a_notification_comes_back_as_it_was_and_as_foreign(
    text: str, id_: str | None, time: int, trace: str | None
) -> None:
    sent = notification(text_payload(text), id_, time / 1e6, trace)
    assert parse_payload(str(TOPIC), encode_payload(sent)) == sent._replace(routing=FOREIGN)


@given(st.binary(max_size=60))
def test_garbage_is_malformed_or_a_notification_within_its_bounds(garbage: bytes) -> None:
    for payload in (garbage, b"\x01" + garbage):
        try:
            read = parse_payload("A", payload)
        except MalformedMessage:
            continue
        assert 0 <= read.start <= read.end <= len(read.content)
    with pytest.raises(MalformedMessage):
        parse_payload("not a topic", encode_payload(notification(b"<a/>")))


@given(texts, st.integers(800, 1500), st.booleans())
def test_pieces_fit_a_datagram_are_notifications_and_together_are_what_was_published(
    text: str, size: int, plain: bool
) -> None:
    long = text + "京<&> " * 400
    element = etree.Element("reading")
    element.text = long
    sent = notification(text_payload(long) if plain else etree.tostring(element, encoding="utf-8"))
    cut = list(pieces(sent, "n1:5:7", size))
    assert len(cut) > 1
    joined = ""
    for index, piece in enumerate(cut):
        assert len(encode_payload(piece)) <= size - PIECE_HEADERS + 100
        message = parse_notification_message(parse_xml(join_notification(piece.content)))
        assert message.payload == piece.payload
        part = etree.fromstring(piece.payload)
        assert part.attrib == {
            "identification": "n1:5:7",
            "index": str(index),
            "more": str(int(index < len(cut) - 1)),
        }
        joined += part.text
    assert joined == (long if plain else etree.tostring(element, encoding="unicode"))


def test_what_fits_into_one_datagram_stays_whole() -> None:
    sent = notification(b"<a>small</a>")
    assert list(pieces(sent, "n1:5:7", 8000)) == [sent]


def test_the_same_id_and_content_of_another_origin_is_a_repetition_and_of_its_own_never() -> None:
    repeats = Repeats(most=2)
    one = notification(b"<a/>", "id-1")
    assert [repeats.is_repeated(one, origin) for origin in ("n1", "n2", "n1", "n3")] == [
        False,
        True,
        False,
        True,
    ]
    assert not repeats.is_repeated(notification(b"<b/>", "id-1"), "n2")
    assert not repeats.is_repeated(notification(b"<a/>", "id-2"), "n2")
    assert not repeats.is_repeated(one, "n2"), "the oldest are forgotten"
    assert not any(repeats.is_repeated(notification(b"<a/>"), origin) for origin in ("n1", "n2"))


@pytest.mark.parametrize(
    "harm", [lambda content: content + b" ", lambda content: content.replace(b"x", b"\x1e")]
)
def test_a_content_that_no_run_can_hold_is_malformed(harm: Callable[[bytes], bytes]) -> None:
    sent = notification(b"<a>x</a>")
    assert Run.of(parse_payload(str(TOPIC), encode_payload(sent))).size == 1
    with pytest.raises(MalformedMessage, match="does not end"):
        parse_payload(str(TOPIC), encode_payload(sent._replace(content=harm(sent.content))))


def test_a_node_that_knows_no_traces_delivers_the_mark_as_a_comment() -> None:
    """The previous version reads version, start, end, time, id and content, as here."""
    payload = encode_payload(notification(b"<a/>", "id", trace=TRACE))
    assert isinstance(payload, bytes)
    version, start, end, _, length = struct.unpack_from(">BIIqH", payload)
    content = payload[struct.calcsize(">BIIqH") + length :]
    assert version == 1
    assert content[start:end] == b"<a/>"
    read = parse_notification_message(parse_xml(join_notification(content)))
    assert read.topic is not None
    assert (read.topic.topic, read.payload) == (TOPIC, b"<a/>")


def test_a_large_notification_keeps_its_trace() -> None:
    sent = notification(b"<a>" + b"x" * LARGE + b"</a>", "id", trace=TRACE)
    payload = encode_payload(sent)
    assert isinstance(payload, LargePayload)
    joined = b"".join(payload.parts)
    for size in (7, 100, len(joined)):
        parts = [joined[:size], joined[size:]]
        run = parse_large_payload(str(TOPIC), LargePayload(parts))
        assert run.first == sent._replace(routing=FOREIGN)
