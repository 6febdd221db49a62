"""Frames: many notifications as the body of one message on the backbone, version 1.

Owns the body's form and nothing of how it travels. A body is one line and then the contents one after the
other:

hpwsn/1 [[topic, length, start, end, time, id, target, routing], …] LF content content …

The line is JSON, in UTF-8: the topic as text (null for none), how long the content is, where in it the
payload starts and ends, the time in microseconds since the epoch, the message id and the pull point that
it was posted to (null for none), and how it travels to other nodes (left out where nothing was said). A
content is what encode_content of the wire writes. Neither part can hold a NUL, by which STOMP clients
look for the end of a message. Refuses any other version, and lengths that do not fit.

Which frames have been stored already, so that one which comes again is dropped. Pure.

A source numbers its frames without gaps, so nearly all that it sent is one range of numbers, and a frame
that comes late, by way of another message broker, makes one more. Ranges are kept, not numbers.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from hpwsn.journal.store.records import FrameRange
from hpwsn.notification import Notification, Run, members
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
        """Remember a frame; the range that it is in now, which is what has to be stored."""
        ranges = self._ranges.setdefault(frame.source, {})
        for first, last in reversed(ranges.items()):
            if frame.number == last + 1:
                ranges[first] = frame.number
                return FrameRange(frame.source, first, frame.number)
        ranges[frame.number] = frame.number
        return FrameRange(frame.source, frame.number, frame.number)


MARK = b"hpwsn/1 "
_FAR = 2**53  # microseconds, in the year 2255: as far as a time is exact
_is_text = re.compile(r"[^\x00\ud800-\udfff]*").fullmatch


class MalformedFrame(ValueError):
    """A body that is not a frame of ours, with what is wrong with it."""


@dataclass(frozen=True, slots=True, order=True)
class FrameId:
    """Who sent a frame, in which of its lives, and the number that it had there."""

    source: str
    number: int

    def __str__(self) -> str:
        return f"{self.source}:{self.number}"

    @classmethod
    def parse(cls, text: str) -> FrameId:
        """Read `source:number`."""
        source, _, number = text.rpartition(":")
        if not source or not (number.isascii() and number.isdecimal()) or len(number) > 18:
            raise MalformedFrame(f"the frame id is {text[:80]!r}, and should be a source, ':' and a number")
        return cls(source, int(number))


def encode_frame(runs: Iterable[Run]) -> bytes:
    """The body for some runs, an entry for each notification."""
    notifications = list(members(runs))
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


def decode_frame(body: bytes) -> list[Run]:
    """The notifications of a body, each as a run of one."""
    if not body.startswith(MARK):
        raise MalformedFrame(f"a frame begins with {MARK.decode()!r}, and this with {body[:20]!r}")
    end = body.find(b"\n")
    try:
        entries = json.loads(body[len(MARK) : end])
        runs = [Run.of(each) for each in _notifications(entries, body, end + 1)]
    except (ValueError, TypeError, RecursionError, SoapFault) as error:
        raise MalformedFrame(f"the frame cannot be read: {error}") from error
    if not runs:
        raise MalformedFrame("the frame holds no notification")
    return runs


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
        yield Notification(
            None if topic is None else topics[topic],
            content,
            start,
            end,
            time / 1e6,
            message_id,
            target,
            routing,
        )
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
