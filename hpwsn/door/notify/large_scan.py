"""The scanner for a Notify with one large message: no tree, and no long hold of the interpreter lock.

It runs in a thread. libxml2 checks the document piece by piece without building a tree, which for 100 MB of
small elements would take gigabytes. Everything else looks at windows of the document, so that the event loop
gets the interpreter lock between two windows. The publisher's bytes become the content, with the namespaces
that they use. Any other request gives None, and the full parser handles it.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from hpwsn.door.notify.parts import (
    NO_HEADERS,
    Frame,
    Headers,
    Opening,
    Unusual,
    match_envelope,
    read_frame,
    read_headers,
    read_opening,
)
from hpwsn.door.notify.scan import LEVELS
from hpwsn.notification import END, LargeRun
from hpwsn_client.wsn.operations.notifications import MESSAGE_CLOSE
from hpwsn_client.wsn.soap.names import HPWSN
from hpwsn_client.wsn.soap.soap_faults import SoapFault
from hpwsn_client.wsn.soap.xml import Limits, check_well_formed, parse_header

EDGE = 64 << 10
"""Bytes before and after the payload that are searched for its beginning and its end."""
WINDOW = 256 << 10
OVERLAP = 256
"""Bytes that two windows share, so that a short text is found across their border."""

_BLANK = b" \t\r\n"
_TEXT_OPEN = f'<hp:text xmlns:hp="{HPWSN}">'.encode()
_TEXT_CLOSE = b"</hp:text>"


def read_large(data: bytes, limits: Limits) -> LargeRun | None:
    """The notification of a UTF-8 envelope with one message; None if the full parser is needed."""
    try:
        return _read(data, limits)
    except (Unusual, SoapFault, LookupError):
        return None


def _read(data: bytes, limits: Limits) -> LargeRun:
    beginning = data[:EDGE]
    envelope = match_envelope(beginning)
    if envelope is None:
        raise Unusual
    frame = read_frame(envelope, 0)
    opening, start = read_opening(beginning, envelope.end(), frame.scope)
    end = _end_of_payload(data, start, frame, opening)
    declared = data.find(b"?>") + 2 if data.startswith(b"<?") else 0
    if _occurs(data, (END, b"<!"), 0, len(data)) or _occurs(data, (b"<?",), declared, len(data)):
        raise Unusual
    if _occurs(data, (opening.close,), start, end):
        raise Unusual
    check_well_formed(data, limits)
    message_id, routing, trace = _headers(envelope.group("headers"), frame, limits)
    parts = _payload_parts(data, start, end, opening, limits)
    content = b"".join((opening.before, *parts, MESSAGE_CLOSE))
    return LargeRun(opening.topic, content, len(opening.before), 0.0, message_id, None, routing, trace)


def _end_of_payload(data: bytes, start: int, frame: Frame, opening: Opening) -> int:
    end = data.rfind(opening.close, max(start, len(data) - EDGE))
    tail = opening.tail.match(data, end) if end >= 0 else None
    if tail is None or not frame.tail.fullmatch(data, tail.end()):
        raise Unusual
    return end


def _headers(written: bytes | None, frame: Frame, limits: Limits) -> Headers:
    if not written:
        return NO_HEADERS
    return read_headers(parse_header(written, limits, LEVELS, frame.header.declarations))


def _payload_parts(data: bytes, start: int, end: int, opening: Opening, limits: Limits) -> list[bytes]:
    """The payload as one self-contained element, in parts."""
    first = _skip_blank(data, start, end)
    if data[first : first + 1] != b"<":
        if first == end or _occurs(data, (b"<",), start, end):
            raise Unusual
        return [_TEXT_OPEN, *_slices(data, start, end), _TEXT_CLOSE]
    last = end
    while data[last - 1] in _BLANK:
        last -= 1
    if not _is_one_element(data, first, last, limits.depth - LEVELS):
        raise Unusual
    beginning = data[first : min(first + EDGE, last)]
    tag = opening.scope.complete_tag(beginning, lambda: (window for _, window in _windows(data, first, last)))
    if tag is None:
        raise Unusual
    return [tag.written, *_slices(data, first + tag.length, last)]


def _skip_blank(data: bytes, at: int, end: int) -> int:
    while at < end and data[at] in _BLANK:
        at += 1
    return at


def _slices(data: bytes, start: int, end: int) -> Iterator[bytes]:
    """The bytes between two positions; a join of many short bytes releases the interpreter lock."""
    for at in range(start, end, WINDOW):
        yield data[at : min(at + WINDOW, end)]


def _windows(data: bytes, start: int, end: int) -> Iterator[tuple[int, bytes]]:
    for at in range(start, end, WINDOW):
        yield at, data[at : min(at + WINDOW + OVERLAP, end)]


def _occurs(data: bytes, needles: tuple[bytes, ...], start: int, end: int) -> bool:
    """Whether one of these short texts occurs between two positions."""
    for at in range(start, end, WINDOW):
        upto = min(at + WINDOW + OVERLAP, end)
        for needle in needles:
            # A search for one byte is much faster than one for two, and most windows have none.
            if data.find(needle[-1:], at, upto) >= 0 and data.find(needle, at, upto) >= 0:
                return True
    return False


def _is_one_element(data: bytes, start: int, end: int, depth: int) -> bool:
    """Whether the well-formed text is exactly one element that is not nested deeper than `depth`.

    Every "<" begins a tag; "</" begins an end tag, and "/>" ends an empty one. A "/>" in a text or an
    attribute makes the count come out wrong, and the answer is no.
    """
    level = deepest = roots = 0
    last_event = start
    for at in range(start, end, WINDOW):
        # One byte more than the window, so that a pair across the border is seen once.
        piece = np.frombuffer(data, np.uint8, min(at + WINDOW + 1, end) - at, at)
        here, following = piece[:-1], piece[1:]
        slash = following == 47
        opens = here == 60
        change = opens.astype(np.int8)
        change -= 2 * (opens & slash).astype(np.int8)
        change -= ((here == 47) & (following == 62)).astype(np.int8)
        (places,) = np.nonzero(change)
        if not len(places):
            continue
        levels = level + np.cumsum(change[places], dtype=np.int64)
        level, last_event = int(levels[-1]), at + int(places[-1])
        deepest = max(deepest, int(levels.max()))
        roots += int(np.count_nonzero(levels <= 0))
    closes = last_event + 2 if data[last_event] == 47 else data.find(b">", last_event) + 1
    return level == 0 and roots == 1 and deepest <= depth and closes == end
