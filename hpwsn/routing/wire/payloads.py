"""A notification as the payload of a publication between nodes (version 1), and its pieces. Pure.

    version:1 start:4 end:4 time:8 length:2 id  mark  content

The time is in microseconds since the epoch. The id is that of the publisher's MessageId header, and empty
without one. The topic is not in the payload. The mark has the trace (hpwsn/notification.py); start and end
count from its beginning, so that it is a part of the content for a node that does not know it. The parser
rejects other versions, and a start or end outside the content.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

from hpwsn.notification import (
    END,
    FOREIGN,
    LARGE,
    LONGEST_MARK,
    LargeRun,
    Notification,
    mark_of,
    read_mark,
    unmarked,
)
from hpwsn.routing.wire.binary import MalformedMessage
from hpwsn.routing.wire.original_fragments import piece_payloads
from hpwsn.routing.wire.publication import LargePayload, Payload
from hpwsn_client.wsn.operations.notifications import MESSAGE_CLOSE, payload_text, text_payload
from hpwsn_client.wsn.soap.soap_faults import SoapFault
from hpwsn_client.wsn.topics.topic_expressions import Topic

_HEAD = struct.Struct(">BIIqH")
_VERSION = 1
_LONGEST_HEAD = _HEAD.size + 0xFFFF + LONGEST_MARK
_TEXT = text_payload("").partition(b">")[0]
PIECE_HEADERS = 320
"""Bytes of a datagram reserved for the frame, the publication and the names of a piece."""


def encode_payload(notification: Notification) -> Payload:
    """Encode a notification without its topic; the content of a large one is not copied."""
    id_ = (notification.message_id or "").encode("utf-8", "replace")[:65535]
    mark = mark_of(notification.trace)
    start, end = notification.start + len(mark), notification.end + len(mark)
    head = _HEAD.pack(_VERSION, start, end, round(notification.time * 1e6), len(id_))
    if len(notification.content) >= LARGE:
        return LargePayload((head + id_ + mark, notification.content))
    return b"".join((head, id_, mark, notification.content))


def parse_payload(topic: str | None, payload: bytes) -> Notification:
    """Parse a notification of another node."""
    head = _parse_head(topic, payload)
    content = payload[head.length :]
    _check_content(head, content)
    rest = head.time, head.message_id, None, FOREIGN
    return unmarked(Notification(head.topic, content, head.start, head.end, *rest))


def parse_large_payload(topic: str | None, payload: LargePayload) -> LargeRun:
    """Parse a large notification of another node, with one copy; it takes long: use a thread."""
    beginning, rest = payload.parts[0], payload.parts[1:]
    while rest and len(beginning) < _LONGEST_HEAD:
        beginning, rest = beginning + rest[0], rest[1:]
    head = _parse_head(topic, beginning)
    trace, mark = read_mark(beginning[head.length :])
    content = b"".join((beginning[head.length + mark :], *rest))
    head = head._replace(start=head.start - mark, end=head.end - mark)
    _check_content(head, content)
    return LargeRun(head.topic, content, head.start, head.time, head.message_id, None, FOREIGN, trace)


class _Head(NamedTuple):
    topic: Topic | None
    start: int
    end: int
    time: float
    message_id: str | None
    length: int


def _parse_head(topic: str | None, payload: bytes) -> _Head:
    if len(payload) < _HEAD.size or payload[0] != _VERSION:
        raise MalformedMessage(f"the payload begins with {payload[:1]!r}; it must begin with the version 1")
    _, start, end, time, length = _HEAD.unpack_from(payload)
    at = _HEAD.size + length
    if at > len(payload):
        raise MalformedMessage(f"the id has {length} bytes in a payload of {len(payload)}")
    try:
        id_ = payload[_HEAD.size : at].decode() or None
        parsed = None if topic is None else Topic.parse(topic)
    except (ValueError, SoapFault) as error:
        raise MalformedMessage(f"the notification is malformed: {error}") from error
    return _Head(parsed, start, end, time / 1e6, id_, at)


def _check_content(head: _Head, content: bytes) -> None:
    if not 0 <= head.start <= head.end <= len(content):
        raise MalformedMessage(
            f"the message from {head.start} to {head.end} is not within the {len(content)} bytes"
            " of the content"
        )
    if content[head.end :] != MESSAGE_CLOSE or END in content:
        raise MalformedMessage("the content does not end with its payload and the end of the Message")


def pieces(notification: Notification, identification: str, fragment_size: int) -> Iterator[Notification]:
    """Yield the pieces of a notification, one per datagram; a small notification is not split."""
    content, start, end = notification.content, notification.start, notification.end
    around = len(mark_of(notification.trace)) + start + (len(content) - end)
    room = max(fragment_size - PIECE_HEADERS - around, fragment_size // 4)
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
