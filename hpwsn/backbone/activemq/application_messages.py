"""Converts notifications to messages for applications on ActiveMQ, and back. Pure.

The body is the payload: an XML element, or plain text if the payload is text. The headers are `topic`, `id`,
`producer` (the address of the ProducerReference), `traceparent` (if the publisher gave one) and `origin`
(the node that sent the message). All headers are optional in messages of applications: the defaults are the
topic of the destination and the message id that ActiveMQ assigns.
"""

from __future__ import annotations

from collections.abc import Mapping

from hpwsn.backbone.activemq.stomp_link import Outgoing
from hpwsn.backbone.wire.destinations import destination_topic, topic_destination
from hpwsn.notification import Notification
from hpwsn_client.wsn.operations.notifications import (
    NotificationMessage,
    encode_content,
    join_notification,
    parse_notification_message,
    payload_text,
    text_payload,
)
from hpwsn_client.wsn.soap.addressing import EndpointReference
from hpwsn_client.wsn.soap.soap_faults import SoapFault
from hpwsn_client.wsn.soap.trace_context import http_headers, parse_trace
from hpwsn_client.wsn.soap.xml import STORED_LIMITS, Limits, encode_element, parse_xml
from hpwsn_client.wsn.topics.topic_expressions import Topic, TopicExpression

MAX_ID = 1024
AMQP_BODIES = {"3": "a sequence", "7": "a map", "8": "a list"}
"""Kinds of AMQP bodies, by number, that ActiveMQ cannot convert to STOMP; they arrive empty."""


def encode_peer(notification: Notification, id_: str, origin: str, persistent: bool) -> Outgoing:
    """Encode a notification, which must have a topic, as a message for applications."""
    assert notification.topic is not None
    headers = {"topic": str(notification.topic), "id": id_, "origin": origin}
    if b"ProducerReference" in notification.content[: notification.start]:
        headers["producer"] = _producer(notification.content)
    if notification.trace is not None:
        headers |= http_headers(notification.trace)
    if persistent:
        headers["persistent"] = "true"
    body, kind = _body(notification.payload)
    headers["content-type"] = kind
    return Outgoing(topic_destination(notification.topic), body, headers, text=True)


def _producer(content: bytes) -> str:
    message = parse_notification_message(parse_xml(join_notification(content), STORED_LIMITS))
    return message.producer.address if message.producer else ""


def _body(payload: bytes) -> tuple[bytes, str]:
    """The body and its content type: a text payload as plain text, any other as its XML element."""
    text = payload_text(payload) if b"text" in payload[:64] else None
    return (payload, "application/xml") if text is None else (text.encode(), "text/plain")


def decode_peer(headers: Mapping[str, str], body: bytes, now: float, limits: Limits) -> Notification:
    """Decode the message of an application; ValueError or SoapFault if it is not a notification."""
    _check_amqp_body(headers)
    text = headers.get("topic", "")
    topic = Topic.parse(text) if text else destination_topic(headers.get("destination", ""))
    producer = headers.get("producer", "")
    message = NotificationMessage(
        TopicExpression.of_message(topic),
        _payload(body, limits),
        EndpointReference(producer) if producer else None,
    )
    content, start, end = encode_content(message)
    trace = parse_trace([headers.get("traceparent", "")], [headers.get("tracestate", "")])
    return Notification(topic, content, start, end, now, _id(headers), trace=trace)


def _check_amqp_body(headers: Mapping[str, str]) -> None:
    """Raise ValueError for an AMQP body that STOMP does not support, which would look like an empty text."""
    kind = AMQP_BODIES.get(headers.get("JMS_AMQP_ORIGINAL_ENCODING", ""))
    if headers.get("JMS_AMQP_NATIVE") == "true":
        kind = "neither a string nor binary"
    if kind is not None:
        raise ValueError(f"its AMQP body is {kind}; send a string or binary")


def _id(headers: Mapping[str, str]) -> str | None:
    for name in ("id", "message-id"):
        given = headers.get(name, "")
        if 0 < len(given) <= MAX_ID and given.isprintable():
            return given
    return None


def _payload(body: bytes, limits: Limits) -> bytes:
    if len(body) > limits.body:
        raise ValueError(f"it has {len(body)} bytes, more than server.body_limit = {limits.body}")
    if body.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"<"):
        try:
            return encode_element(parse_xml(body, limits, comments=True))
        except SoapFault:
            pass  # not XML, but text that begins with "<"
    try:
        return text_payload(body.decode())
    except UnicodeDecodeError as error:
        raise ValueError(f"it is neither XML nor UTF-8 text: {error}") from error
