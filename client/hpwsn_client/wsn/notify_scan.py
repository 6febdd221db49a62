"""The Notify lane's reading: an ordinary Notify as slices of its own bytes, without a tree of ours.

libxml2 says whether the document is well-formed and within the limits, by the same function as for every
other message. After that a "<" can only begin a tag (where there is no comment, no CDATA section and no
processing instruction), so that regular expressions find the parts, whole and in order, and payloads stay
as they are. What stands before a payload is the same from message to message, so its meaning is remembered
by its bytes. None is the answer to all that is not ordinary, right or wrong: the full parser has the say.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import count
from typing import NamedTuple

from lxml import etree

from .addressing import EndpointReference, encode_epr
from .names import HPWSN, SOAP11, SOAP12, WSA, WSNT, hp, wsa, wsnt
from .notifications import MESSAGE_CLOSE, MESSAGE_OPEN
from .scope import ATTRIBUTES, EMPTY, PREFIX, Scope, read_attributes
from .soap_faults import SoapFault
from .topics import Topic, encode_topic, parse_topic_expression
from .xml import Limits, parse_plain

MOST_FRAMES = 256
MOST_OPENINGS = 4096
LONGEST = 2048
"""Bytes of what is remembered: longer beginnings are read each time."""
GROWTH = 6
"""How many times longer the full parser may write what it has read, as &quot; for a quotation mark."""

_BLANK = b" \t\r\n"
_TEXT = f'<hp:text xmlns:hp="{HPWSN}">%b</hp:text>'.encode()
_ROUTING = hp("Routing")
_TRUTH = {"true": True, "1": True, "false": False, "0": False}
_PLAIN_HEADERS = frozenset(map(wsa, ("Action", "To", "MessageID", "RelatesTo")))
_REFERENCES = frozenset(map(wsa, ("ReplyTo", "FaultTo", "From")))
_ADDRESS = wsa("Address")
_PARTS: Mapping[bytes, bytes] = {
    b"xml": rb"""<\?xml\s+version=["']1\.0["'](?:\s+encoding=["'][Uu][Tt][Ff]-8["'])?\s*\?>""",
    b"p": PREFIX,
    b"a": ATTRIBUTES,
}

_envelope = re.compile(
    rb"(?:%(xml)b)?\s*+<(?P<s>%(p)b)Envelope(?P<envelope>%(a)b)>\s*+"
    rb"(?:<(?P=s)Header(?P<header>%(a)b)(?:/>|>(?P<headers>.*?)</(?P=s)Header\s*+>)\s*+)?"
    rb"<(?P=s)Body(?P<body>%(a)b)>\s*+<(?P<n>%(p)b)Notify(?P<notify>%(a)b)>\s*+" % _PARTS,
    re.DOTALL,
).match
_opening = re.compile(
    rb"<(?P<n>%(p)b)NotificationMessage(?P<notification>%(a)b)>\s*+"
    rb"(?:<(?P<t>%(p)b)Topic(?P<topic>%(a)b)>(?P<expression>[^<&]*+)</(?P=t)Topic\s*+>\s*+)?"
    rb"(?:<(?P<r>%(p)b)ProducerReference(?P<producer>%(a)b)>\s*+<(?P<w>%(p)b)Address(?P<address>%(a)b)>"
    rb"(?P<uri>[^<&]*+)</(?P=w)Address\s*+>\s*+</(?P=r)ProducerReference\s*+>\s*+)?"
    rb"<(?P<m>%(p)b)Message(?P<message>%(a)b)>" % _PARTS
).match
_blank = re.compile(rb"\s*+").match


class Encoded(NamedTuple):
    """A notification in the form that it is stored and delivered in; the payload is content[start:end]."""

    topic: Topic | None
    content: bytes
    start: int
    end: int


class _Frame(NamedTuple):
    """What stands around the messages; the number is its own as long as it is remembered, else 0."""

    number: int
    scope: Scope
    tail: re.Pattern[bytes]


class _Opening(NamedTuple):
    """What stands before a payload, and what must stand behind it."""

    topic: Topic | None
    before: bytes
    scope: Scope
    close: bytes
    closed: bytes
    tail: re.Pattern[bytes]


class _Unusual(Exception):
    """The full parser has to look at this."""


class NotifyScan:
    """Reads one Notify after another, with what it remembers of those before."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._frames: dict[tuple[bytes, bytes], _Frame] = {}
        self._openings: dict[tuple[int, bytes], _Opening] = {}
        self._numbers = count(1)
        self.routing = (False, False)
        """Whether the header Routing of the envelope read last asked for reliable, and for partial."""

    def read(self, data: bytes) -> list[Encoded] | None:
        """The notifications of an envelope in UTF-8; None where the full parser has to look at it."""
        # A search for one byte is much faster than one for two, and hardly a message has any of these.
        marks = data.count(b"?") - (2 if data.startswith(b"<?") else 0)
        if (b"!" in data and b"<!" in data) or (marks and data.find(b"<?", 2) >= 0):
            return None
        try:
            return self._read(data, parse_plain(data, self._limits))
        except (_Unusual, SoapFault, LookupError):
            return None

    def _read(self, data: bytes, root: etree._Element) -> list[Encoded]:
        frame, at, headers = self._frame(data)
        self.routing = _check_headers(root[0]) if headers else (False, False)
        notify = root[-1][0]
        if len(notify) > self._limits.messages:
            raise _Unusual
        found = []
        for element in notify:
            # All that the tree is asked of a Message: whether it has one element, or none and so text.
            encoded, at = self._message(data, at, frame, len(element[-1]))
            found.append(encoded)
        if not found or not frame.tail.fullmatch(data, at):
            raise _Unusual
        return found

    def _message(self, data: bytes, at: int, frame: _Frame, children: int) -> tuple[Encoded, int]:
        opening, begin = self._opening(data, at, frame)
        end = data.find(opening.close, begin)
        after = end + len(opening.closed)
        if not data.startswith(opening.closed, end) or data[after : after + 1] != b"<":
            after = _after(data, end, opening)
        payload = _payload(data[begin:end], opening, children)
        start = len(opening.before)
        if len(payload) > self._limits.body // GROWTH:
            raise _Unusual
        content = b"".join((opening.before, payload, MESSAGE_CLOSE))
        return Encoded(opening.topic, content, start, start + len(payload)), after

    def _opening(self, data: bytes, at: int, frame: _Frame) -> tuple[_Opening, int]:
        # The next tag whose name ends so is most probably the Message's, and the key ends with it.
        begin = data.find(b">", data.find(b"Message", data.find(b">", at))) + 1
        known = self._openings.get((frame.number, data[at:begin]))
        if known is not None:
            return known, begin
        opening, begin = _read_opening(data, at, frame.scope)
        if frame.number and begin - at <= LONGEST:
            if len(self._openings) >= MOST_OPENINGS:
                self._openings.clear()
            self._openings[frame.number, data[at:begin]] = opening
        return opening, begin

    def _frame(self, data: bytes) -> tuple[_Frame, int, bool]:
        """What stands around the messages, where they begin, and whether there are headers."""
        start, stop = _header_content(data)
        end = _skip_blank(data, data.find(b">", data.find(b"Notify", stop)) + 1)
        frame = self._frames.get((data[:start], data[stop:end]))
        if frame is not None:
            return frame, end, start < stop
        found = _envelope(data)
        if found is None:
            raise _Unusual
        start, stop = found.span("headers")
        if start < 0:
            start = stop = 0
        key = data[:start], data[stop : found.end()]
        return self._frames.get(key) or self._remember(key, found), found.end(), start < stop

    def _remember(self, key: tuple[bytes, bytes], found: re.Match[bytes]) -> _Frame:
        if sum(map(len, key)) > LONGEST:
            return _read_frame(found, 0)
        if len(self._frames) >= MOST_FRAMES:
            self._frames.clear()
            self._openings.clear()
        frame = self._frames[key] = _read_frame(found, next(self._numbers))
        return frame


def _header_content(data: bytes) -> tuple[int, int]:
    """Where the content of the Header most probably is, which differs from message to message."""
    named = data.find(b"Header", 0, LONGEST)
    start = data.find(b">", named) + 1
    closed = data.find(b"Header", start) if named >= 0 else -1
    stop = data.rfind(b"</", start, closed) if closed >= 0 else -1
    return (start, stop) if stop >= 0 else (0, 0)


def _skip_blank(data: bytes, at: int) -> int:
    if data[at : at + 1] == b"<":
        return at
    blank = _blank(data, at)
    return at if blank is None else blank.end()


def _inside(scope: Scope, attributes: bytes, prefix: bytes, *namespaces: str) -> Scope:
    """The scope inside of an element that must be in one of the namespaces."""
    inner = scope.inside(attributes)
    if inner is None or inner.namespace(prefix) not in namespaces:
        raise _Unusual
    return inner


def _read_frame(found: re.Match[bytes], number: int) -> _Frame:
    s, n = found["s"], found["n"]
    envelope = _inside(EMPTY, found["envelope"], s, SOAP11, SOAP12)
    soap = envelope.namespace(s) or ""
    _inside(envelope, found["header"] or b"", s, soap)
    body = _inside(envelope, found["body"], s, soap)
    scope = _inside(body, found["notify"], n, WSNT)
    closed = (n + b"Notify", s + b"Body", s + b"Envelope")
    return _Frame(number, scope, _closing(*closed))


def _closing(*names: bytes) -> re.Pattern[bytes]:
    return re.compile(b"".join(rb"</%b\s*+>\s*+" % re.escape(name) for name in names))


def _check_headers(header: etree._Element) -> tuple[bool, bool]:
    """Pass by what is of WS-Addressing and in order: a one-way message has no use for it; heed Routing."""
    routing: tuple[bool, bool] | None = None
    for child in header:
        tag = child.tag
        if tag == _ROUTING and routing is None:
            routing = _TRUTH[child.get("reliable", "false")], _TRUTH[child.get("partial", "false")]
        elif tag not in _PLAIN_HEADERS and not (tag in _REFERENCES and _has_address(child)):
            raise _Unusual
    return routing or (False, False)


def _has_address(reference: etree._Element) -> bool:
    address = reference[0]
    text = address.text or ""
    return len(reference) == 1 and address.tag == _ADDRESS and bool(text.strip(" \t\r\n"))


def _read_opening(data: bytes, at: int, scope: Scope) -> tuple[_Opening, int]:
    found = _opening(data, at)
    if found is None:
        raise _Unusual
    n, m = found["n"], found["m"]
    around = _inside(scope, found["notification"], n, WSNT)
    topic, written = (None, b"") if found["t"] is None else _read_topic(found, around)
    producer = b"" if found["r"] is None else _read_producer(found, around)
    inside = _inside(around, found["message"], m, WSNT)
    opening = _Opening(
        topic=topic,
        before=b"".join((written, producer, MESSAGE_OPEN)),
        scope=inside,
        close=b"</%bMessage" % m,
        closed=b"</%bMessage></%bNotificationMessage>" % (m, n),
        tail=_closing(m + b"Message", n + b"NotificationMessage"),
    )
    return opening, found.end()


def _read_topic(found: re.Match[bytes], around: Scope) -> tuple[Topic, bytes]:
    scope = _inside(around, found["topic"], found["t"], WSNT)
    dialect = dict(read_attributes(found["topic"])).get(b"Dialect", b"")
    if b"&" in dialect:
        raise _Unusual
    expression = parse_topic_expression(
        found["expression"].decode(), dialect.decode().strip(" \t\r\n"), scope.bindings
    )
    if expression.topic is None:
        raise _Unusual
    return expression.topic, encode_topic(expression, wsnt("Topic"))


def _read_producer(found: re.Match[bytes], around: Scope) -> bytes:
    scope = _inside(around, found["producer"], found["r"], WSNT)
    address = found["uri"].decode().strip(" \t\r\n")
    # A carriage return is a line feed in XML, which the tree would tell.
    if not address or "\r" in address or scope.namespace(found["w"], found["address"]) != WSA:
        raise _Unusual
    return encode_epr(EndpointReference(address), wsnt("ProducerReference"))


def _after(data: bytes, end: int, opening: _Opening) -> int:
    """Where the next message may begin, with whatever blanks there are."""
    tail = opening.tail.match(data, end) if end >= 0 else None
    if tail is None:
        raise _Unusual
    return tail.end()


def _payload(raw: bytes, opening: _Opening, children: int) -> bytes:
    """What a Message holds, as one self-contained element."""
    element = raw.strip(_BLANK)
    if children == 0 and element and not (b">" in raw or b"&" in raw or b"\r" in raw):
        return _TEXT % raw
    # Nothing but one element: no text before it, and none behind the tag that ends it.
    alone = element[:1] == b"<" and element.find(b">", element.rfind(b"<")) == len(element) - 1
    if children != 1 or not alone:
        raise _Unusual
    complete = opening.scope.complete(element)
    if complete is None:
        raise _Unusual
    return complete
