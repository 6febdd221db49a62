"""Request heads for the HTTP lane: recognizes an ordinary POST to the broker's own address.

httptools parses a head once; the result is cached by its bytes, since clients repeat their heads. Ordinary
means HTTP/1.1 with one Content-Length within the limit, and no header that changes framing, encoding or the
answer. All other requests, including malformed ones, go to the full lane. RFC 9112.

The trace of a request is different each time. So its lines are cut out of a head before the cache is asked.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import httptools

from hpwsn_client.wsn.soap.envelope import SoapVersion
from hpwsn_client.wsn.soap.trace_context import parse_trace

LONGEST = 4096
"""Maximum bytes of an ordinary head."""
MOST_HEADERS = 64
"""Maximum header lines of an ordinary head; the full lane has its own limit."""
REMEMBERED = 1024
"""Maximum number of cached heads, and maximum bytes of each."""

BEGINNING = b"POST /wsn HTTP/1.1\r\n"
# Headers that change framing, encoding or message flow, or need authentication.
_UNUSUAL = frozenset(
    (
        b"authorization",
        b"content-encoding",
        b"expect",
        b"origin",
        b"proxy-connection",
        b"te",
        b"trailer",
        b"transfer-encoding",
        b"upgrade",
    )
)
_ONCE = (b"content-length", b"content-type", b"connection", b"host")
_is_name = re.compile(rb"[A-Za-z0-9-]+").fullmatch
_is_value = re.compile(rb"[\x20-\x7e]*").fullmatch
_is_length = re.compile(rb"[0-9]{1,18}").fullmatch
_trace_line = re.compile(rb"\r\n(traceparent|tracestate):[ \t]*([\x20-\x7e\t]*)(?=\r\n|\Z)", re.IGNORECASE)
_trace_lines, _without_trace = _trace_line.findall, _trace_line.sub
_content_type = re.compile(
    rb"""(text/xml|application/xml|application/soap\+xml)"""
    rb"""(?:; ?(?:charset=("?)(utf-8|utf8)\2|action="[^"\\;,]*"))*""",
    re.IGNORECASE,
).fullmatch


@dataclass(frozen=True, slots=True)
class Head:
    """The length of the body, whether the connection closes after it, and the content type."""

    length: int
    close: bool
    charset: str | None
    hint: SoapVersion
    trace: str | None = None


class Heads:
    """Parses and caches heads for all connections of the port."""

    def __init__(self, body_limit: int) -> None:
        self._body_limit = body_limit
        self._known: dict[bytes, Head | None] = {}

    def find(self, head: bytes) -> Head | None:
        """What a head says, without the empty line at its end; None where it is not ordinary."""
        try:
            return self._known[head]
        except KeyError:
            lines = _trace_lines(head)
            return self._find_traced(head, lines) if lines else self._learn(head)

    def _find_traced(self, head: bytes, lines: list[tuple[bytes, bytes]]) -> Head | None:
        if len(head) > LONGEST:
            return None
        rest = _without_trace(b"", head)
        known = self._known[rest] if rest in self._known else self._learn(rest)
        if known is None:
            return None
        values: dict[bytes, list[str]] = {b"traceparent": [], b"tracestate": []}
        for name, value in lines:
            values[name.lower()].append(value.decode("latin-1"))
        trace = parse_trace(values[b"traceparent"], values[b"tracestate"])
        return Head(known.length, known.close, known.charset, known.hint, trace)

    def _learn(self, head: bytes) -> Head | None:
        found = read_head(head, self._body_limit)
        if len(head) <= REMEMBERED:
            if len(self._known) >= REMEMBERED:
                self._known.clear()
            self._known[head] = found
        return found


class _Collector:
    """What httptools calls."""

    def __init__(self) -> None:
        self.url = b""
        self.headers: list[tuple[bytes, bytes]] = []
        self.complete = False

    def on_url(self, url: bytes) -> None:
        self.url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        self.headers.append((name, value))

    def on_headers_complete(self) -> None:
        self.complete = True


def read_head(head: bytes, body_limit: int) -> Head | None:
    """What a head says, without the empty line at its end; None where it is not ordinary."""
    if len(head) > LONGEST or not head.startswith(BEGINNING) or b"\r\n " in head or b"\r\n\t" in head:
        return None
    collector = _collect(head + b"\r\n\r\n")
    if collector is None or not collector.complete or len(collector.headers) > MOST_HEADERS:
        return None
    headers = {name.lower(): value for name, value in collector.headers}
    names = [name.lower() for name, _ in collector.headers]
    plain = all(_is_name(name) and _is_value(value) for name, value in headers.items())
    if not plain or _UNUSUAL & headers.keys() or any(names.count(name) > 1 for name in _ONCE):
        return None
    return _ordinary(headers, body_limit)


def _ordinary(headers: dict[bytes, bytes], body_limit: int) -> Head | None:
    length = headers.get(b"content-length", b"")
    connection = headers.get(b"connection", b"keep-alive").lower()
    type_ = _content_type(headers.get(b"content-type", b""))
    if b"host" not in headers or type_ is None or connection not in (b"keep-alive", b"close"):
        return None
    if not _is_length(length) or int(length) > body_limit:
        return None
    soap12 = type_[1].lower() == b"application/soap+xml"
    return Head(
        length=int(length),
        close=connection == b"close",
        charset=None if type_[3] is None else type_[3].decode(),
        hint=SoapVersion.SOAP12 if soap12 else SoapVersion.SOAP11,
    )


def may_be_ordinary(data: bytes) -> bool:
    """Whether an incomplete head can still become an ordinary one."""
    if len(data) > LONGEST:
        return False
    if not data.startswith(BEGINNING):
        return BEGINNING.startswith(data)
    return data.count(b"\n") == data.count(b"\r\n") and _collect(data) is not None


def _collect(data: bytes) -> _Collector | None:
    collector = _Collector()
    try:
        httptools.HttpRequestParser(collector).feed_data(data)
    except (httptools.HttpParserError, httptools.HttpParserUpgrade):
        return None
    return collector
