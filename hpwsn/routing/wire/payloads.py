"""A notification as the payload of a publication between nodes (version 1), and its pieces. Pure.

    version:1 start:4 end:4 time:8 length:2 id  content

The time is in microseconds since the epoch. The id is that of the publisher's MessageId header, and empty
without one. The topic is not in the payload. The parser rejects other versions, and a start or end outside
the content.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from hpwsn.notification import END, FOREIGN, Notification
from hpwsn.routing.wire.binary import MalformedMessage
from hpwsn.routing.wire.original_fragments import piece_payloads
from hpwsn_client.wsn.operations.notifications import MESSAGE_CLOSE, payload_text, text_payload
from hpwsn_client.wsn.soap.soap_faults import SoapFault
from hpwsn_client.wsn.topics.topic_expressions import Topic

_HEAD = struct.Struct(">BIIqH")
_VERSION = 1
_TEXT = text_payload("").partition(b">")[0]
PIECE_HEADERS = 320
"""Bytes of a datagram reserved for the frame, the publication and the names of a piece."""


def encode_payload(notification: Notification) -> bytes:
    """Encode a notification without its topic."""
    id_ = (notification.message_id or "").encode("utf-8", "replace")[:65535]
    head = _HEAD.pack(
        _VERSION, notification.start, notification.end, round(notification.time * 1e6), len(id_)
    )
    return b"".join((head, id_, notification.content))


def parse_payload(topic: str | None, payload: bytes) -> Notification:
    """Parse a notification of another node."""
    if len(payload) < _HEAD.size or payload[0] != _VERSION:
        raise MalformedMessage(f"the payload begins with {payload[:1]!r}; it must begin with the version 1")
    _, start, end, time, length = _HEAD.unpack_from(payload)
    at = _HEAD.size + length
    content = payload[at:]
    if not (at <= len(payload) and 0 <= start <= end <= len(content)):
        raise MalformedMessage(
            f"the message from {start} to {end} is not within the {len(content)} bytes of the content"
        )
    if content[end:] != MESSAGE_CLOSE or END in content:
        raise MalformedMessage("the content does not end with its payload and the end of the Message")
    try:
        id_ = payload[_HEAD.size : at].decode() or None
        parsed = None if topic is None else Topic.parse(topic)
    except (ValueError, SoapFault) as error:
        raise MalformedMessage(f"the notification is malformed: {error}") from error
    return Notification(parsed, content, start, end, time / 1e6, id_, None, FOREIGN)


def pieces(notification: Notification, identification: str, fragment_size: int) -> Iterator[Notification]:
    """Yield the pieces of a notification, one per datagram; a small notification is not split."""
    content, start, end = notification.content, notification.start, notification.end
    room = max(fragment_size - PIECE_HEADERS - start - (len(content) - end), fragment_size // 4)
    cut = piece_payloads(_message_content(notification), identification, room)
    if not cut:
        yield notification
    for payload in cut:
        joined = b"".join((content[:start], payload, content[end:]))
        yield notification._replace(content=joined, end=start + len(payload))


def _message_content(notification: Notification) -> bytes:
    """Return what the publisher put into the Message: the plain text if the payload only wraps text."""
    payload = notification.payload
    if not payload.startswith(_TEXT):
        return payload
    text = payload_text(payload)
    return payload if text is None else text.encode()
