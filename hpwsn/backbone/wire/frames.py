"""Frames, version 1: many notifications as the body of one message on the backbone, and their numbers. Pure.

Owns the format of the body, not its transport. A body is one line, followed by the concatenated contents:

hpwsn/1 [[topic, length, start, end, time, id, target, routing], …] LF content content …

The line is JSON in UTF-8. An entry has the topic as text (null for none), the length of the content, the
start and the end of the payload in it, the time in microseconds since the epoch, the message id, the pull
point that the notification was posted to (null for none), and the routing flags (omitted if there are none).
A content is the output of encode_content, after the mark of a trace (hpwsn/notification.py). Neither part can
contain a NUL, which STOMP clients treat as the end of a message. Rejects any other version, and
lengths that do not fit the body.

`Seen` remembers which frames are stored, so that repeated frames are dropped. A source numbers its frames
without gaps, so nearly all of its frames form one range of numbers. A frame that arrives late through another
message broker starts another range. Only ranges are stored, not single numbers.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from hpwsn.journal.store.records import FrameRange
from hpwsn.notification import Notification, marked, unmarked
from hpwsn_client.wsn.soap.soap_faults import SoapFault
from hpwsn_client.wsn.topics.topic_expressions import Topic


class Seen:
    """Ranges of frame numbers by source."""

    def __init__(self, ranges: Iterable[FrameRange] = ()) -> None:
        self._ranges: dict[str, dict[int, int]] = {}
        for one in ranges:
            self._ranges.setdefault(one.source, {})[one.first] = one.last

    def __contains__(self, frame: FrameId) -> bool:
        ranges = self._ranges.get(frame.source, {})
        return any(first <= frame.number <= last for first, last in reversed(ranges.items()))

    def add(self, frame: FrameId) -> FrameRange:
        """Add a frame and return its range, which must be stored."""
        ranges = self._ranges.setdefault(frame.source, {})
        for first, last in reversed(ranges.items()):
            if frame.number == last + 1:
                ranges[first] = frame.number
                return FrameRange(frame.source, first, frame.number)
        ranges[frame.number] = frame.number
        return FrameRange(frame.source, frame.number, frame.number)


MARK = b"hpwsn/1 "
_FAR = 2**53  # microseconds, in the year 2255: a float represents larger times inexactly
_is_text = re.compile(r"[^\x00\ud800-\udfff]*").fullmatch


class MalformedFrame(ValueError):
    """A message body is not a valid frame; the text says what is wrong."""


@dataclass(frozen=True, slots=True, order=True)
class FrameId:
    """The source of a frame, which is new after each start of the sender, and the frame's number there."""

    source: str
    number: int

    def __str__(self) -> str:
        return f"{self.source}:{self.number}"

    @classmethod
    def parse(cls, text: str) -> FrameId:
        """Parse `source:number`."""
        source, _, number = text.rpartition(":")
        if not source or not (number.isascii() and number.isdecimal()) or len(number) > 18:
            raise MalformedFrame(f"the frame id is {text[:80]!r}, and should be a source, ':' and a number")
        return cls(source, int(number))


def encode_frame(notifications: Iterable[Notification]) -> bytes:
    """Encode some notifications as the body of a frame."""
    notifications = list(map(marked, notifications))
    entries = [
        (
            None if n.topic is None else str(n.topic),
            len(n.content),
            n.start,
            n.end,
            round(n.time * 1e6),
            n.message_id,
            n.target,
            *((n.routing,) if n.routing else ()),
        )
        for n in notifications
    ]
    head = json.dumps(entries, ensure_ascii=False, separators=(",", ":")).encode()
    return b"".join((MARK, head, b"\n", *[n.content for n in notifications]))


def decode_frame(body: bytes) -> list[Notification]:
    """Decode the notifications of a body; admission checks their contents."""
    if not body.startswith(MARK):
        raise MalformedFrame(f"a frame begins with {MARK.decode()!r}, and this with {body[:20]!r}")
    end = body.find(b"\n")
    try:
        entries = json.loads(body[len(MARK) : end])
        notifications = list(_notifications(entries, body, end + 1))
    except (ValueError, TypeError, RecursionError, SoapFault) as error:
        raise MalformedFrame(f"the frame cannot be read: {error}") from error
    if not notifications:
        raise MalformedFrame("the frame holds no notification")
    return notifications


def _notifications(entries: Any, body: bytes, at: int) -> Any:
    topics: dict[str, Topic] = {}
    for topic, length, start, end, time, message_id, target, *more in entries:
        routing = more[0] if more else 0
        if len(more) > 1 or type(routing) is not int or not 0 <= routing < 16:
            raise MalformedFrame(f"an entry ends with {more!r}")
        if not _fits(length, start, end, at, len(body)) or type(time) is not int or abs(time) > _FAR:
            raise MalformedFrame(f"an entry says {length!r}, {start!r}, {end!r}, {time!r}")
        for text in (topic, message_id, target):
            if text is not None and (type(text) is not str or not _is_text(text)):
                raise MalformedFrame(f"an entry has {text!r}, which is no text")
        if topic is not None and topic not in topics:
            topics[topic] = Topic.parse(topic)
        content = body[at : at + length]
        at += length
        found = None if topic is None else topics[topic]
        yield unmarked(Notification(found, content, start, end, time / 1e6, message_id, target, routing))
    if at != len(body):
        raise MalformedFrame(f"{len(body) - at} bytes are left over")


def _fits(length: Any, start: Any, end: Any, at: int, size: int) -> bool:
    return (
        type(length) is int
        and type(start) is int
        and type(end) is int
        and 0 <= start <= end <= length
        and at + length <= size
    )
