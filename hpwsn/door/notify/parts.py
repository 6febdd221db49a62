"""The parts of an ordinary Notify, found by regular expressions: the frame and the openings.

A frame is the text around the messages; an opening is the text before a payload. The document, or each of its
parts, must have been found well-formed by libxml2. A part that is not ordinary raises Unusual, and the full
parser handles the request. WS-BaseNotification 1.3, section 3.2.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from lxml import etree

from hpwsn.door.notify.scope import ATTRIBUTES, EMPTY, PREFIX, Scope, read_attributes
from hpwsn.notification import PARTIAL, RELIABLE
from hpwsn_client.wsn.operations.notifications import MESSAGE_OPEN
from hpwsn_client.wsn.soap.addressing import EndpointReference, encode_epr
from hpwsn_client.wsn.soap.names import HPWSN, SOAP11, SOAP12, WSA, WSNT, hp, wsa, wsnt
from hpwsn_client.wsn.soap.trace_context import TRACEPARENT, parse_traceparent
from hpwsn_client.wsn.topics.topic_expressions import Topic, encode_topic, parse_topic_expression

_BLANK = b" \t\r\n"
_TEXT = f'<hp:text xmlns:hp="{HPWSN}">%b</hp:text>'.encode()
_PLAIN_HEADERS = frozenset(map(wsa, ("Action", "To", "MessageID", "RelatesTo")))
_REFERENCES = frozenset(map(wsa, ("ReplyTo", "FaultTo", "From")))
_MESSAGE_ID = hp("MessageId")
_ROUTING = hp("Routing")
_TRUTH = {"true": True, "1": True, "false": False, "0": False}
_ADDRESS = wsa("Address")


class Headers(NamedTuple):
    """What our headers say: the id, the routing flags, and the trace of all messages."""

    message_id: str | None = None
    routing: int = 0
    trace: str | None = None


NO_HEADERS = Headers()
_PARTS: Mapping[bytes, bytes] = {
    b"xml": rb"""<\?xml\s+version=["']1\.0["'](?:\s+encoding=["'][Uu][Tt][Ff]-8["'])?\s*\?>""",
    b"p": PREFIX,
    b"a": ATTRIBUTES,
}

match_envelope = re.compile(
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


class Frame(NamedTuple):
    """The text around the messages; `number` identifies a cached frame."""

    number: int
    scope: Scope
    header: Scope
    """The namespaces in scope within the Header."""
    close: bytes
    """The first bytes after the last message."""
    tail: re.Pattern[bytes]


class Opening(NamedTuple):
    """The text before a payload, and the text that must follow it."""

    topic: Topic | None
    before: bytes
    scope: Scope
    close: bytes
    closed: bytes
    head: bytes
    """The exact bytes before the payload."""
    between: bytes
    """The bytes between two payloads with this opening."""
    tail: re.Pattern[bytes]


class Unusual(Exception):
    """The request is not ordinary; the full parser must handle it."""


def _inside(scope: Scope, attributes: bytes, prefix: bytes, *namespaces: str) -> Scope:
    """The scope inside an element, which must be in one of the namespaces and have no `xml:` attribute."""
    if b"xml:" in attributes and any(name.startswith(b"xml:") for name, _ in read_attributes(attributes)):
        raise Unusual
    inner = scope.inside(attributes)
    if inner is None or inner.namespace(prefix) not in namespaces:
        raise Unusual
    return inner


def read_frame(found: re.Match[bytes], number: int) -> Frame:
    s, n = found["s"], found["n"]
    envelope = _inside(EMPTY, found["envelope"], s, SOAP11, SOAP12)
    soap = envelope.namespace(s) or ""
    header = _inside(envelope, found["header"] or b"", s, soap)
    body = _inside(envelope, found["body"], s, soap)
    scope = _inside(body, found["notify"], n, WSNT)
    closed = (n + b"Notify", s + b"Body", s + b"Envelope")
    return Frame(number, scope, header, b"</%bNotify" % n, _closing(*closed))


def _closing(*names: bytes) -> re.Pattern[bytes]:
    # No parser checks these bytes again, and \s would match a form feed, which is not white space in XML.
    end = rb"</%b[ \t\r\n]*+>[ \t\r\n]*+"
    return re.compile(b"".join(end % re.escape(name) for name in names))


def read_headers(header: etree._Element) -> Headers:
    """Our headers; valid WS-Addressing headers are ignored."""
    message_id = routing = trace = None
    for child in header:
        tag = child.tag
        if tag == _MESSAGE_ID and message_id is None and not len(child):
            message_id = (child.text or "").strip() or None
        elif tag == _ROUTING and routing is None:
            routing = _TRUTH[child.get("reliable", "false")], _TRUTH[child.get("partial", "false")]
        elif tag == TRACEPARENT and trace is None and not len(child):
            trace = (child.text or "").strip()
            if len(trace.split()) > 1:
                raise Unusual
        elif tag not in _PLAIN_HEADERS and not (tag in _REFERENCES and _has_address(child)):
            raise Unusual
    reliable, partial = routing or (False, False)
    flags = RELIABLE * reliable + PARTIAL * partial
    return Headers(message_id, flags, parse_traceparent(trace) if trace else None)


def _has_address(reference: etree._Element) -> bool:
    address = reference[0]
    text = address.text or ""
    return len(reference) == 1 and address.tag == _ADDRESS and bool(text.strip(" \t\r\n"))


def read_opening(data: bytes, at: int, scope: Scope) -> tuple[Opening, int]:
    """The opening of the message at a position, and the position of its payload."""
    found = _opening(data, at)
    if found is None:
        raise Unusual
    n, m = found["n"], found["m"]
    around = _inside(scope, found["notification"], n, WSNT)
    topic, written = (None, b"") if found["t"] is None else _read_topic(found, around)
    producer = b"" if found["r"] is None else _read_producer(found, around)
    inside = _inside(around, found["message"], m, WSNT)
    closed = b"</%bMessage></%bNotificationMessage>" % (m, n)
    opening = Opening(
        topic=topic,
        before=b"".join((written, producer, MESSAGE_OPEN)),
        scope=inside,
        close=b"</%bMessage" % m,
        closed=closed,
        head=found[0],
        between=closed + found[0],
        tail=_closing(m + b"Message", n + b"NotificationMessage"),
    )
    return opening, found.end()


def _read_topic(found: re.Match[bytes], around: Scope) -> tuple[Topic, bytes]:
    scope = _inside(around, found["topic"], found["t"], WSNT)
    dialect = dict(read_attributes(found["topic"])).get(b"Dialect", b"")
    if b"&" in dialect:
        raise Unusual
    expression = parse_topic_expression(
        found["expression"].decode(), dialect.decode().strip(" \t\r\n"), scope.bindings
    )
    if expression.topic is None:
        raise Unusual
    return expression.topic, encode_topic(expression, wsnt("Topic"))


def _read_producer(found: re.Match[bytes], around: Scope) -> bytes:
    scope = _inside(around, found["producer"], found["r"], WSNT)
    address = found["uri"].decode().strip(" \t\r\n")
    # XML normalizes a carriage return to a line feed; only the full parser does that.
    if not address or "\r" in address or scope.namespace(found["w"], found["address"]) != WSA:
        raise Unusual
    return encode_epr(EndpointReference(address), wsnt("ProducerReference"))


def find_after(data: bytes, end: int, opening: Opening) -> int:
    """The position of the next message, after optional white space."""
    after = end + len(opening.closed)
    if end >= 0 and data.startswith(opening.closed, end) and data.startswith(b"<", after):
        return after
    tail = opening.tail.match(data, end) if end >= 0 else None
    if tail is None:
        raise Unusual
    return tail.end()


def read_payload(raw: bytes, scope: Scope) -> bytes:
    """The content of a Message, an element or plain text, as one self-contained element."""
    element = raw.strip(_BLANK)
    if element.startswith(b"<"):
        complete = scope.complete(element)
        if complete is None:
            raise Unusual
        return complete
    if not element or any(each in raw for each in (b"<", b">", b"&", b"\r")):
        raise Unusual
    return _TEXT % raw
