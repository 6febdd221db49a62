"""The Notify lane's reading: an ordinary Notify as slices of its own bytes, without a tree of ours.

libxml2 says whether a document is well-formed and within the limits, by the same functions as for every other
message. After that a "<" can only begin a tag (where there is no comment, no CDATA section and no processing
instruction), so that regular expressions find the parts, whole and in order, and payloads stay as they are.

What stands around the messages and before a payload is the same from message to message, so its meaning is
remembered by its bytes (hpwsn_client.wsn.notify_parts). Another Notify of the same parts differs in headers
and payloads only, and these are all that libxml2 then has to see: each must be balanced by itself, which
makes the whole well-formed. None is the answer to all that is not ordinary, right or wrong: the full parser
has the say.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import chain, count
from typing import NamedTuple

from lxml import etree

from .notifications import MESSAGE_CLOSE
from .notify_parts import (
    NO_ROUTING,
    Frame,
    Opening,
    Unusual,
    find_after,
    match_envelope,
    read_frame,
    read_headers,
    read_opening,
    read_payload,
)
from .soap_faults import SoapFault
from .topics import Topic
from .xml import Limits, may_hold_mark, parse_content, parse_contents, parse_plain

MOST_FRAMES = 256
MOST_OPENINGS = 4096
LONGEST = 2048
"""Bytes of what is remembered: longer beginnings are left to the full parser."""
GROWTH = 6
"""How many times longer the full parser may write what it has read, as &quot; for a quotation mark."""
LEVELS = 5
"""Elements around a payload: Envelope, Body, Notify, NotificationMessage, Message."""

_blank = re.compile(rb"\s*+").match
_new = tuple.__new__


class Encoded(NamedTuple):
    """A notification in the form that it is stored and delivered in; the payload is content[start:end]."""

    topic: Topic | None
    content: bytes
    start: int
    end: int
    message_id: str | None = None
    """The id that the whole Notify was given."""


Run = tuple[Opening, Sequence[bytes]]
"""Messages that are opened alike, one after another."""


class NotifyScan:
    """Reads one Notify after another, with what it remembers of those before."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._frames: dict[tuple[bytes, bytes], Frame] = {}
        self._openings: dict[tuple[int, bytes], Opening] = {}
        self._singles: dict[bytes, tuple[Opening, bytes]] = {}
        """What opens a Notify of one message without headers, as far as its payload, and what closes it."""
        self._numbers = count(1)
        self.routing = NO_ROUTING
        """What the header Routing of the envelope read last asked for."""

    def read(self, data: bytes) -> list[Encoded] | None:
        """The notifications of an envelope in UTF-8; None where the full parser has to look at it."""
        # A search for one byte is much faster than one for two, and hardly a message has any of these.
        begun = data.find(b"?>") + 2 if data.startswith(b"<?") else 0
        if (b"!" in data and b"<!" in data) or (data.find(b"?", begun) >= 0 and data.find(b"<?", begun) >= 0):
            return None
        try:
            found = self._recognise_single(data) or self._recognise(data)
            if found is None:
                parse_plain(data, self._limits)
                self._learn(data)
                found = self._recognise(data)
        except (Unusual, SoapFault, LookupError):
            return None
        return found

    def _recognise_single(self, data: bytes) -> list[Encoded] | None:
        """The one notification of a Notify that is as one before to the byte, but for its payload."""
        begin = _find_payload(data, data.find(b"Message"))
        known = self._singles.get(data[:begin])
        if known is None:
            return None
        opening, closing = known
        end = len(data) - len(closing)
        if not data.endswith(closing) or data.find(opening.close, begin, end) >= 0:
            return None
        payloads = _payloads(opening, (data[begin:end],))
        self._check_size(data, payloads)
        parse_content(payloads[0], self._limits, LEVELS)
        self.routing = NO_ROUTING
        return _encoded(opening, payloads, None)

    def _recognise(self, data: bytes) -> list[Encoded] | None:
        """The notifications, if all that stands around them is remembered."""
        start, stop = _header_content(data)
        at = _skip_blank(data, data.find(b">", data.find(b"Notify", stop)) + 1)
        frame = self._frames.get((data[:start], data[stop:at]))
        end = data.rfind(frame.close) if frame is not None else -1
        if frame is None or end < at or not frame.tail.fullmatch(data, end) or may_hold_mark(data):
            return None
        runs = self._runs(data, at, end, frame)
        if runs is None:
            return None
        payloads = [_payloads(opening, raw) for opening, raw in runs]
        together = list(chain.from_iterable(payloads))
        self._check_size(data, together)
        message_id, self.routing = read_headers(self._parse(frame, data, data[start:stop], together))
        found: list[Encoded] = []
        for (opening, _), ready in zip(runs, payloads, strict=True):
            found += _encoded(opening, ready, message_id)
        if len(found) == 1 and start == stop:
            self._remember_single(data, at, runs[0][0])
        return found

    def _runs(self, data: bytes, at: int, end: int, frame: Frame) -> list[Run] | None:
        """The messages in order; None where the opening of one is not remembered."""
        runs: list[Run] = []
        alike = True
        while at < end:
            begin = _find_payload(data, at)
            opening = self._openings.get((frame.number, data[at:begin]))
            if opening is None:
                return None
            stop = data.find(opening.close, begin, end)
            payloads: Sequence[bytes] = (data[begin:stop],)
            if alike and data.startswith(opening.head, stop + len(opening.closed)):
                # Most are opened alike to the last, and then one cut finds them all; it is tried once.
                last = data.rfind(opening.closed, begin, end)
                parts = data[begin:last].split(opening.closed)
                head, size = opening.head, len(opening.head)
                cut = [parts[0], *[each[size:] for each in parts[1:] if each.startswith(head)]]
                alike = len(cut) == len(parts)
                if alike:
                    payloads, stop = cut, last
            at = find_after(data, stop, opening)
            runs.append((opening, payloads))
        return runs if runs and at == end else None

    def _parse(self, frame: Frame, data: bytes, headers: bytes, payloads: Sequence[bytes]) -> etree._Element:
        """Refuse what is not in order; an element with the headers."""
        if len(payloads) > 1 or not headers:
            return parse_contents(payloads, self._limits, LEVELS, frame.header.declarations, headers)
        # There is little besides them, so that the whole is parsed sooner than its parts.
        root = parse_plain(data, self._limits)
        message = root[-1][0][0][-1]
        alone = payloads[0].find(b">", payloads[0].rfind(b"<")) == len(payloads[0]) - 1
        if len(message) > 1 or not alone:
            raise Unusual
        return root[0]

    def _check_size(self, data: bytes, payloads: Sequence[bytes]) -> None:
        limits = self._limits
        if (
            len(data) > limits.body
            or len(payloads) > limits.messages
            or max(map(len, payloads)) > limits.body // GROWTH
        ):
            raise Unusual

    def _remember_single(self, data: bytes, at: int, opening: Opening) -> None:
        if len(self._singles) >= MOST_OPENINGS:
            self._singles.clear()
        begin = _find_payload(data, at)
        self._singles[data[:begin]] = opening, data[data.find(opening.close, begin) :]

    def _learn(self, data: bytes) -> None:
        """Remember the parts of a document that is well-formed and within the limits."""
        found = match_envelope(data)
        if found is None:
            raise Unusual
        frame, at = self._learn_frame(data, found), found.end()
        while not frame.tail.fullmatch(data, at):
            opening, begin = read_opening(data, at, frame.scope)
            if begin - at > LONGEST:
                raise Unusual
            if len(self._openings) >= MOST_OPENINGS:
                self._openings.clear()
            self._openings[frame.number, data[at:begin]] = opening
            at = find_after(data, data.find(opening.close, begin), opening)

    def _learn_frame(self, data: bytes, found: re.Match[bytes]) -> Frame:
        start, stop = found.span("headers")
        if start < 0:
            start = stop = 0
        key = data[:start], data[stop : found.end()]
        known = self._frames.get(key)
        if known is not None:
            return known
        if sum(map(len, key)) > LONGEST:
            raise Unusual
        if len(self._frames) >= MOST_FRAMES:
            self._frames.clear()
            self._openings.clear()
        frame = self._frames[key] = read_frame(found, next(self._numbers))
        return frame


def _payloads(opening: Opening, raw: Sequence[bytes]) -> Sequence[bytes]:
    """What each Message holds as one self-contained element."""
    scope = opening.scope
    if scope.is_unused(raw[0] if len(raw) == 1 else b"".join(raw)):
        return [each if each[:1] == b"<" and each[-1:] == b">" else read_payload(each, scope) for each in raw]
    return [read_payload(each, scope) for each in raw]


def _encoded(opening: Opening, payloads: Sequence[bytes], message_id: str | None) -> list[Encoded]:
    topic, before, start = opening.topic, opening.before, len(opening.before)
    return [
        _new(Encoded, (topic, before + each + MESSAGE_CLOSE, start, start + len(each), message_id))
        for each in payloads
    ]


def _header_content(data: bytes) -> tuple[int, int]:
    """Where the content of the Header most probably is, which differs from message to message."""
    named = data.find(b"Header", 0, LONGEST)
    if named < 0:
        return 0, 0
    start = data.find(b">", named) + 1
    closed = data.find(b"Header", start)
    stop = data.rfind(b"</", start, closed) if closed >= 0 else -1
    return (start, stop) if stop >= 0 else (0, 0)


def _find_payload(data: bytes, at: int) -> int:
    """Where it begins: the next tag whose name ends so is most probably the Message's."""
    return data.find(b">", data.find(b"Message", data.find(b">", at))) + 1


def _skip_blank(data: bytes, at: int) -> int:
    if data[at : at + 1] == b"<":
        return at
    blank = _blank(data, at)
    return at if blank is None else blank.end()
