"""The scanner of the Notify lane: splits an ordinary Notify into slices of its bytes, without an XML tree.

libxml2 checks that a document is well-formed and within the limits, as for every other message. After that, a
"<" can only start a tag, since documents with comments, CDATA sections or processing instructions are
refused. So regular expressions find the parts reliably, and payloads are not copied into a tree.

The text around messages and before payloads repeats, so its meaning is cached by its bytes
(hpwsn.door.notify.parts). A further Notify of the same parts differs only in headers and payloads. Then
libxml2 checks only these: if each is balanced, the whole is well-formed. Payloads of a known shape are not
checked at all (hpwsn.door.notify.shapes). For a request that is not ordinary, valid or not, the result is
None, and the full parser handles it.

Most Notifies with many messages have one topic and one opening. Such messages stay together as one run.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import chain, count
from typing import NamedTuple

from lxml import etree

from hpwsn.door.notify.parts import (
    NO_HEADERS,
    Frame,
    Headers,
    Opening,
    Unusual,
    find_after,
    match_envelope,
    read_frame,
    read_headers,
    read_opening,
    read_payload,
)
from hpwsn.door.notify.scope import Scope
from hpwsn.door.notify.shapes import Shapes
from hpwsn.notification import END, Run, split_payloads
from hpwsn_client.wsn.soap.soap_faults import SoapFault
from hpwsn_client.wsn.soap.xml import (
    Limits,
    may_hold_mark,
    parse_content,
    parse_contents,
    parse_header,
    parse_plain,
)

MOST_FRAMES = 256
MOST_OPENINGS = 4096
LONGEST = 2048
"""Maximum bytes of a cached part; requests with longer parts go to the full parser."""
GROWTH = 6
"""The full parser may write a payload this many times longer, as &quot; for a quotation mark."""
LEVELS = 5
"""Elements around a payload: Envelope, Body, Notify, NotificationMessage, Message."""

_blank = re.compile(rb"\s*+").match


class Row(NamedTuple):
    """Consecutive payloads with the same opening, with END after each."""

    opening: Opening
    payloads: bytes
    size: int
    fits: bool = False
    """Whether all payloads have a known shape, so that libxml2 need not check them."""


class NotifyScan:
    """Scans Notify requests, with a cache of the parts of earlier ones."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._frames: dict[tuple[bytes, bytes], Frame] = {}
        self._openings: dict[tuple[int, bytes], Opening] = {}
        self._singles: dict[bytes, tuple[Opening, bytes]] = {}
        """By the bytes before the payload of a Notify with one message and no headers: opening and end."""
        self._numbers = count(1)
        self._shapes = Shapes(lambda element: parse_content(element, limits, LEVELS))

    def read(self, data: bytes) -> list[Run] | None:
        """The runs of a UTF-8 envelope, with id, routing and trace; None if the full parser is needed."""
        # A search for one byte is much faster than one for two, and few messages have these bytes.
        begun = data.find(b"?>") + 2 if data.startswith(b"<?") else 0
        if END in data:
            return None
        if (b"!" in data and b"<!" in data) or (data.find(b"?", begun) >= 0 and data.find(b"<?", begun) >= 0):
            return None
        try:
            found = self._recognise_single(data) or self._recognise(data)
            if found is None:
                # SOAP messages other than Notify are refused here, before they are parsed.
                envelope = match_envelope(data)
                if envelope is None:
                    return None
                parse_plain(data, self._limits)
                self._learn(data, envelope)
                found = self._recognise(data)
        except (Unusual, SoapFault, LookupError):
            return None
        return found

    def read_alike(self, envelopes: Sequence[bytes]) -> Run | None:
        """One run of the first envelopes that differ only in their payloads; each has one message, no header.

        The run has at least two payloads, all of known shapes; otherwise None, and `read` must scan each.
        """
        first = envelopes[0]
        begin = _find_payload(first, first.find(b"Message"))
        head = first[:begin]
        known = self._singles.get(head)
        if known is None:
            return None
        opening, closing = known
        size, shortest = len(closing), begin + len(closing)
        raw: list[bytes] = []
        for data in envelopes:
            if len(data) < shortest or not (data.startswith(head) and data.endswith(closing)):
                break
            raw.append(data[begin:-size])
        payloads = END.join((*raw, b""))
        if (
            len(raw) < 2
            or len(payloads) > self._limits.body // GROWTH
            or payloads.count(END) != len(raw)
            or opening.close in payloads
            or not opening.scope.is_unused(payloads)
            or not self._shapes.fit(payloads)
        ):
            return None
        return Run(opening.topic, opening.before, payloads, len(raw))

    def _recognise_single(self, data: bytes) -> list[Run] | None:
        """The notification of a Notify that equals an earlier one except for its payload."""
        begin = _find_payload(data, data.find(b"Message"))
        known = self._singles.get(data[:begin])
        if known is None:
            return None
        opening, closing = known
        end = len(data) - len(closing)
        if not data.endswith(closing) or data.find(opening.close, begin, end) >= 0:
            return None
        raw = data[begin:end]
        (payload,) = _complete((raw,), opening.scope, opening.scope.is_unused(raw))
        row = payload + END
        self._check_size(data, [Row(opening, row, 1)])
        if not self._shapes.fit(row):
            parse_content(payload, self._limits, LEVELS)
            self._shapes.learn(payload)
        return [Run(opening.topic, opening.before, row, 1)]

    def _recognise(self, data: bytes) -> list[Run] | None:
        """The notifications, if the frame and all openings are cached."""
        start, stop = _header_content(data)
        at = _skip_blank(data, data.find(b">", data.find(b"Notify", stop)) + 1)
        frame = self._frames.get((data[:start], data[stop:at]))
        end = data.rfind(frame.close) if frame is not None else -1
        if frame is None or end < at or not frame.tail.fullmatch(data, end) or may_hold_mark(data):
            return None
        found = self._rows(data, at, end, frame)
        if found is None:
            return None
        rows = [self._ready_row(*each) for each in found]
        self._check_size(data, rows)
        message_id, routing, trace = self._check(frame, data, data[start:stop], rows)
        if start == stop and len(rows) == 1 and rows[0].size == 1:
            self._remember_single(data, at, rows[0].opening)
        rest = 0.0, message_id, None, routing, trace
        return [Run(row.opening.topic, row.opening.before, row.payloads, row.size, *rest) for row in rows]

    def _rows(self, data: bytes, at: int, end: int, frame: Frame) -> list[tuple[Opening, list[bytes]]] | None:
        """The payloads in order, grouped by opening; None if an opening is not cached."""
        rows: list[tuple[Opening, list[bytes]]] = []
        while at < end:
            begin = _find_payload(data, at)
            opening = self._openings.get((frame.number, data[at:begin]))
            if opening is None:
                return None
            close, between, size = opening.close, opening.between, len(opening.between)
            stop = data.find(close, begin, end)
            payloads = [data[begin:stop]]
            while data.startswith(between, stop):
                begin = stop + size
                stop = data.find(close, begin, end)
                payloads.append(data[begin:stop])
            at = find_after(data, stop, opening)
            rows.append((opening, payloads))
        return rows if rows and at == end else None

    def _ready_row(self, opening: Opening, raw: list[bytes]) -> Row:
        """Payloads as self-contained elements."""
        payloads = END.join((*raw, b""))
        unused = opening.scope.is_unused(payloads)
        if unused and self._shapes.fit(payloads):
            return Row(opening, payloads, len(raw), fits=True)
        ready = END.join((*_complete(raw, opening.scope, unused), b""))
        tried = unused and ready == payloads
        return Row(opening, ready, len(raw), fits=not tried and self._shapes.fit(ready))

    def _check(self, frame: Frame, data: bytes, headers: bytes, rows: Sequence[Row]) -> Headers:
        """Check payloads of unknown shape and the headers; return the headers' values."""
        unknown = [split_payloads(row.payloads) for row in rows if not row.fits]
        if not unknown and not headers:
            return NO_HEADERS
        if not unknown:
            return read_headers(parse_header(headers, self._limits, LEVELS, frame.header.declarations))
        if headers and len(rows) == 1 and len(unknown[0]) == 1:
            found = read_headers(self._parse_whole(data, unknown[0][0]))
        else:
            together = list(chain.from_iterable(unknown))
            declared = frame.header.declarations
            found = read_headers(parse_contents(together, self._limits, LEVELS, declared, headers))
        for payloads in unknown:
            self._shapes.learn(payloads[0])
        return found

    def _parse_whole(self, data: bytes, payload: bytes) -> etree._Element:
        """The Header of a Notify with one message; parsing the whole is faster than parsing its parts."""
        root = parse_plain(data, self._limits)
        message = root[-1][0][0][-1]
        alone = payload.find(b">", payload.rfind(b"<")) == len(payload) - 1
        if len(message) > 1 or not alone:
            raise Unusual
        return root[0]

    def _check_size(self, data: bytes, rows: Sequence[Row]) -> None:
        limits = self._limits
        longest, messages = limits.body // GROWTH, 0
        for _, payloads, size, _ in rows:
            messages += size
            if len(payloads) > longest and max(map(len, split_payloads(payloads))) > longest:
                raise Unusual
        if len(data) > limits.body or messages > limits.messages:
            raise Unusual

    def _remember_single(self, data: bytes, at: int, opening: Opening) -> None:
        if len(self._singles) >= MOST_OPENINGS:
            self._singles.clear()
        begin = _find_payload(data, at)
        self._singles[data[:begin]] = opening, data[data.find(opening.close, begin) :]

    def _learn(self, data: bytes, envelope: re.Match[bytes]) -> None:
        """Cache the parts of a document that is well-formed and within the limits."""
        frame, at = self._learn_frame(data, envelope), envelope.end()
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


def _complete(raw: Sequence[bytes], scope: Scope, unused: bool) -> list[bytes]:
    """The content of each Message as one self-contained element."""
    if unused:
        return [each if each[:1] == b"<" and each[-1:] == b">" else read_payload(each, scope) for each in raw]
    return [read_payload(each, scope) for each in raw]


def _header_content(data: bytes) -> tuple[int, int]:
    """The probable start and end of the Header's content; the cache lookup verifies them."""
    named = data.find(b"Header", 0, LONGEST)
    if named < 0:
        return 0, 0
    start = data.find(b">", named) + 1
    closed = data.find(b"Header", start)
    stop = data.rfind(b"</", start, closed) if closed >= 0 else -1
    return (start, stop) if stop >= 0 else (0, 0)


def _find_payload(data: bytes, at: int) -> int:
    """The probable start of the payload: after the next tag whose name contains Message."""
    return data.find(b">", data.find(b"Message", data.find(b">", at))) + 1


def _skip_blank(data: bytes, at: int) -> int:
    if data[at : at + 1] == b"<":
        return at
    blank = _blank(data, at)
    return at if blank is None else blank.end()
