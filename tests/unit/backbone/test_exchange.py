"""Notifications as messages of applications, and back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpwsn.backbone.activemq.application_messages import decode_peer, encode_peer
from hpwsn_client.wsn.operations.notifications import parse_notify
from hpwsn_client.wsn.soap.envelope import parse_envelope
from hpwsn_client.wsn.soap.soap_faults import SoapFault
from hpwsn_client.wsn.soap.xml import DEFAULT_LIMITS, Limits
from tests.unit.client.wsn import published

HERE = {"destination": "/topic/hpwsn.A.B", "message-id": "ID:1"}


def round_trip(body: bytes, **headers: str) -> tuple[bytes, dict[str, str]]:
    notification = decode_peer({**HERE, **headers}, body, 1.0, DEFAULT_LIMITS)
    message = encode_peer(notification, notification.message_id or "", "node", False)
    return message.body, dict(message.headers)


@pytest.mark.parametrize(
    ("body", "out", "kind"),
    [
        (b"<x>1</x>", b"<x>1</x>", "application/xml"),
        (b'<?xml version="1.0" encoding="iso-8859-1"?>\n<x>\xe4</x>', "<x>ä</x>".encode(), "application/xml"),
        (b"plain & <text>", b"plain & <text>", "text/plain"),
        (b"<not xml", b"<not xml", "text/plain"),
        (b"", b"", "text/plain"),
        (b"<!DOCTYPE x><x/>", b"<!DOCTYPE x><x/>", "text/plain"),
    ],
)
def test_xml_is_the_payload_and_all_else_is_text(body: bytes, out: bytes, kind: str) -> None:
    found, headers = round_trip(body)
    assert (found, headers["content-type"], headers["topic"]) == (out, kind, "A:B")


@given(
    st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"], exclude_characters="\ufffe\uffff"))
)
def test_any_text_comes_back_as_it_was(text: str) -> None:
    assert round_trip(text.encode())[0] == text.encode()


def test_headers_are_topic_id_and_producer() -> None:
    _, headers = round_trip(b"<x/>", topic="{urn:x}C", id="i", producer="http://p/?a&b")
    assert (headers["topic"], headers["id"], headers["producer"]) == ("{urn:x}C", "i", "http://p/?a&b")
    _, headers = round_trip(b"<x/>")
    assert (headers["topic"], headers["id"], "producer" in headers) == ("A:B", "ID:1", False)


@pytest.mark.parametrize("id_", ["", "i" * 1025, "a\nb"])
def test_an_id_that_cannot_be_one_is_replaced_by_that_of_the_message(id_: str) -> None:
    assert decode_peer({**HERE, "id": id_}, b"x", 1.0, DEFAULT_LIMITS).message_id == "ID:1"


@pytest.mark.parametrize(
    ("name", "value", "kind"),
    [
        ("JMS_AMQP_ORIGINAL_ENCODING", "3", "a sequence"),
        ("JMS_AMQP_ORIGINAL_ENCODING", "7", "a map"),
        ("JMS_AMQP_ORIGINAL_ENCODING", "8", "a list"),
        ("JMS_AMQP_NATIVE", "true", "neither a string nor binary"),
    ],
)
def test_an_amqp_body_that_stomp_cannot_carry_is_refused_by_its_kind(
    name: str, value: str, kind: str
) -> None:
    with pytest.raises(ValueError, match=f"its AMQP body is {kind}; send a string or binary"):
        decode_peer({**HERE, name: value}, b"", 1.0, DEFAULT_LIMITS)


@pytest.mark.parametrize("encoding", ["1", "2", "4", "5", "6"])
def test_an_amqp_body_of_text_or_bytes_may_be_empty(encoding: str) -> None:
    body, headers = round_trip(b"", JMS_AMQP_ORIGINAL_ENCODING=encoding)
    assert (body, headers["content-type"]) == (b"", "text/plain")


@given(st.binary(max_size=40), st.text(max_size=20), st.text(max_size=20))
def test_garbage_is_refused_and_nothing_worse(body: bytes, topic: str, producer: str) -> None:
    try:
        decode_peer({**HERE, "topic": topic, "producer": producer}, body, 1.0, DEFAULT_LIMITS)
    except (ValueError, SoapFault) as error:
        assert str(error)


def test_a_body_beyond_the_limit_is_refused_and_one_at_it_is_not() -> None:
    limits = Limits(body=10, depth=8, attributes=8, messages=1)
    decode_peer(HERE, b"x" * 10, 1.0, limits)
    with pytest.raises(ValueError, match=r"11 bytes, more than server\.body_limit = 10"):
        decode_peer(HERE, b"x" * 11, 1.0, limits)


@given(published.envelopes())
def test_a_payload_reaches_applications_and_comes_back_as_it_was_published(sent: tuple[bytes, bytes]) -> None:
    data, alone = sent
    body = parse_envelope(data).body
    assert body is not None
    (message,) = parse_notify(body)
    out, headers = round_trip(message.payload)
    assert headers["content-type"] == "application/xml"
    assert published.canonical(out) == published.canonical(alone)
    assert published.qnames(out) == published.qnames(alone)


def test_what_stands_around_the_element_of_a_document_is_no_part_of_the_payload() -> None:
    assert round_trip(b"<?xml version='1.0'?><!-- c --><?pi x?><r><!-- in --></r><!-- d -->")[0] == (
        b"<r><!-- in --></r>"
    )


def test_text_goes_out_as_text_and_an_element_of_that_name_with_elements_as_it_is() -> None:
    text = b'<h:text xmlns:h="urn:hpwsn:1">a<!-- c -->b</h:text>'
    assert round_trip(text)[0] == b"ab"
    element = b'<h:text xmlns:h="urn:hpwsn:1">a<b/></h:text>'
    assert round_trip(element)[0] == element


def test_the_trace_of_a_message_is_a_property() -> None:
    trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    given = {**HERE, "traceparent": trace, "tracestate": "congo=t61rcWkgMzE"}
    notification = decode_peer(given, b"x", 1.0, DEFAULT_LIMITS)
    assert notification.trace == f"{trace} congo=t61rcWkgMzE"
    sent = encode_peer(notification, "id", "node", False).headers
    assert (sent["traceparent"], sent["tracestate"]) == (trace, "congo=t61rcWkgMzE")
    malformed = decode_peer({**HERE, "traceparent": "x"}, b"x", 1.0, DEFAULT_LIMITS)
    assert malformed.trace is None
    assert "traceparent" not in encode_peer(malformed, "id", "node", False).headers
