"""The original's fragments: what it packs comes back whole, by way of its own XML."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from hpwsn.routing.wire.fragments import CompleteMessage, Piece, Reassembly
from hpwsn.routing.wire.original_fragments import (
    complete_message,
    datagrams,
    fragment_of,
    pack,
    piece_message,
    piece_payloads,
)
from hpwsn_client.wsn.formats.original import (
    CreateEndpoint,
    Package,
    PackedNotification,
    encode_packed,
    encode_process,
    parse_packed,
    parse_process,
)
from hpwsn_client.wsn.operations.notifications import NotificationMessage, parse_notify, text_payload
from hpwsn_client.wsn.soap.envelope import parse_envelope
from hpwsn_client.wsn.soap.payload_xml import parse_message_xml
from hpwsn_client.wsn.soap.soap_faults import InvalidMessage, SoapFault
from hpwsn_client.wsn.soap.xml import DEFAULT_LIMITS, escape, parse_xml
from hpwsn_client.wsn.topics.topic_expressions import Topic, TopicExpression
from tests.unit.client.wsn import published

TOPIC = TopicExpression.of(Topic.parse("ALL1"))
LONGEST = Package("<Fragment>:1", index=99999)
texts = st.text(
    st.characters(codec="utf-8", exclude_categories=("Cs", "Cc")), min_size=1, max_size=200
).filter(lambda text: text.strip(" \t\r\n") != "")


def through_the_wire(packed: PackedNotification) -> PackedNotification:
    read = parse_process(parse_xml(encode_process(packed)))
    assert isinstance(read, PackedNotification)
    return read


def arrive(message: NotificationMessage, room: int, chance: random.Random) -> list[NotificationMessage]:
    pieces = [through_the_wire(packed) for packed in pack(message, "1235324366:344", room)]
    chance.shuffle(pieces)
    receiver = Reassembly(timeout=1, max_bytes=1 << 20, max_messages=4)
    return [
        complete_message(piece.message, whole.content, DEFAULT_LIMITS)
        for piece in pieces
        if isinstance(whole := receiver.add("a", fragment_of(piece), 0.0), CompleteMessage)
    ]


@given(texts, st.integers(16, 90), st.randoms())
def test_an_element_in_pieces_comes_back_as_it_was(text: str, room: int, chance: random.Random) -> None:
    element = etree.Element("{urn:x}reading", unit="<&>")
    element.text = text
    message = NotificationMessage(TOPIC, etree.tostring(element))
    (back,) = arrive(message, room, chance)
    assert etree.tostring(etree.fromstring(back.payload), method="c14n") == etree.tostring(
        element, method="c14n"
    )
    assert back.topic is not None
    assert back.topic.topic == TOPIC.topic


@given(texts, st.integers(16, 90), st.randoms())
def test_text_in_pieces_comes_back_as_text(text: str, room: int, chance: random.Random) -> None:
    (back,) = arrive(NotificationMessage(TOPIC, text_payload("x" + text)), room, chance)
    assert back.text == "x" + text


def test_a_piece_may_be_blank() -> None:
    (back,) = arrive(NotificationMessage(TOPIC, text_payload("a" + " " * 60 + "b")), 20, random.Random(1))
    assert back.text == "a" + " " * 60 + "b"


def test_the_fragments_are_numbered_as_the_original_does() -> None:
    message = NotificationMessage(TOPIC, text_payload("a" * 50))
    marks = [packed.package.fragment for packed in pack(message, "1:2", 20, partial=True) if packed.package]
    assert marks == ["1-1-1-0", "1-1-1-1", "1-0-1-2"]
    (whole,) = pack(message, "1:2", 50)
    assert whole.package == Package("1:2")


def test_a_piece_without_an_identification_is_refused_with_what_to_do() -> None:
    packed = PackedNotification(NotificationMessage(TOPIC, text_payload("x")), Package("", True, True))
    with pytest.raises(InvalidMessage, match="give each message its own"):
        fragment_of(packed)


@given(texts, st.integers(400, 600))
def test_pieces_for_subscribers_fit_and_together_are_the_content(text: str, room: int) -> None:
    content = f"<a>{'京' * 300}&amp;</a>{text}".encode()
    pieces = [etree.fromstring(payload) for payload in piece_payloads(content, "n:1:5", room)]
    assert all(len(payload) <= room for payload in piece_payloads(content, "n:1:5", room))
    assert "".join(piece.text for piece in pieces).encode() == content
    assert [piece.get("index") for piece in pieces] == list(map(str, range(len(pieces))))
    assert [piece.get("more") for piece in pieces] == ["1"] * (len(pieces) - 1) + ["0"]
    assert {piece.get("identification") for piece in pieces} == {"n:1:5"}


@given(texts, st.booleans(), st.integers(600, 900), st.randoms())
def test_datagrams_fit_and_give_the_message_back(
    text: str, is_text: bool, size: int, chance: random.Random
) -> None:
    element = etree.Element("reading")
    element.text = "<&>京" * 100 + text
    payload = text_payload(element.text) if is_text else etree.tostring(element)
    sent = list(datagrams(NotificationMessage(TOPIC, payload), "1:2", size))
    assert all(len(data) <= size for data in sent)
    chance.shuffle(sent)
    receiver = Reassembly(timeout=1, max_bytes=1 << 20, max_messages=4)
    read = [parse_packed(parse_xml(data)) for data in sent]
    taken = [receiver.add("a", fragment_of(packed), 0.0) for packed in read]
    (whole,) = [each for each in taken if isinstance(each, CompleteMessage)]
    back = complete_message(read[0].message, whole.content, DEFAULT_LIMITS)
    assert "".join(etree.fromstring(back.payload).itertext()) == element.text


@given(texts, st.booleans(), st.booleans())
def test_datagrams_are_the_packed_notifications_in_xml(text: str, is_text: bool, partial: bool) -> None:
    payload = text_payload(text) if is_text else f"<a>{escape(text)}</a>".encode()
    message, identification = NotificationMessage(TOPIC, payload), "<Fragment>:1"
    overhead = len(encode_packed(PackedNotification(NotificationMessage(TOPIC, text_payload("")), LONGEST)))
    sent = list(datagrams(message, identification, overhead + 70, partial=partial))
    packed = pack(message, identification, 70, partial=partial)
    assert sent == [encode_packed(each) for each in packed]


def test_a_partial_piece_becomes_a_notification_of_its_own() -> None:
    message = NotificationMessage(TOPIC, text_payload("<&>" * 100))
    first, *_ = pack(message, "1:<2>", 64, partial=True)
    receiver = Reassembly(timeout=1, max_bytes=1 << 20, max_messages=4)
    piece = receiver.add("a", fragment_of(through_the_wire(first)), 0.0)
    assert isinstance(piece, Piece)
    handed = piece_message(message, piece.fragment)
    element = etree.fromstring(handed.payload)
    assert handed.topic == TOPIC
    assert (element.get("identification"), element.get("index"), element.get("more")) == ("1:<2>", "0", "1")
    assert ("<&>" * 100).startswith(element.text) and element.text


def test_only_a_notification_comes_from_a_node_of_the_original() -> None:
    with pytest.raises(SoapFault, match="NotificationMessage"):
        parse_packed(parse_xml(encode_process(CreateEndpoint())))
    with pytest.raises(SoapFault):
        parse_packed(parse_xml(b"<m/>"))


@given(published.envelopes(), st.integers(600, 900), st.randoms())
def test_datagrams_give_a_payload_back_as_it_was_published(
    published_as: tuple[bytes, bytes], size: int, chance: random.Random
) -> None:
    body = parse_envelope(published_as[0]).body
    assert body is not None
    (sent,) = parse_notify(body)
    for payload in (sent.payload, b"<o>%b%b</o>" % (sent.payload, b"<!-- long -->" * 60)):
        made = list(datagrams(NotificationMessage(TOPIC, payload), "1:2", size))
        chance.shuffle(made)
        receiver = Reassembly(timeout=1, max_bytes=1 << 20, max_messages=4)
        read = [parse_packed(parse_message_xml(each)) for each in made]
        taken = [receiver.add("a", fragment_of(packed), 0.0) for packed in read]
        (whole,) = [each for each in taken if isinstance(each, CompleteMessage)]
        back = complete_message(read[0].message, whole.content, DEFAULT_LIMITS)
        assert published.canonical(back.payload) == published.canonical(payload)
        assert published.qnames(back.payload) == published.qnames(payload)
