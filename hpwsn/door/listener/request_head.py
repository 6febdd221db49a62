"""Request heads for the HTTP lane: recognizes an ordinary POST to the broker's own address.

httptools parses a head once; the result is cached by its bytes, since clients repeat their heads. Ordinary
means HTTP/1.1 with one Content-Length within the limit, and no header that changes framing, encoding or the
answer. All other requests, including malformed ones, go to the full lane. RFC 9112.

The trace of a request is different each time. So its lines are cut out of a head before the cache is asked.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

import httptools

from hpwsn.push_mark import PUSHED_BY
from hpwsn_client.wsn.soap.envelope import SoapVersion
from hpwsn_client.wsn.soap.trace_context import LENGTH, parse_trace, parse_traceparent

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
_find_trace = re.compile(rb"\r\n((?i:trace(?:parent|state))):[ \t]*([\x20-\x7e\t]*)(?=\r\n|\Z)").search
_find_mark = re.compile(rb"\r\n(?i:%b):[ \t]*([^\r\n]*)" % PUSHED_BY.encode()).search
_content_type = re.compile(
    rb"""(text/xml|application/xml|application/soap\+xml)"""
    rb"""(?:; ?(?:charset=("?)(utf-8|utf8)\2|action="[^"\\;,]*"))*""",
    re.IGNORECASE,
).fullmatch


class Head(NamedTuple):
    """The length of the body, whether the connection closes after it, and the content type."""

    length: int
    close: bool
    charset: str | None
    hint: SoapVersion
    trace: str | None = None


class Heads:
    """Parses and caches heads for all connections of the port."""

    def __init__(self, body_limit: int, would_loop: Callable[[str], bool] = lambda mark: False) -> None:
        """`would_loop` tells of the mark of a push whether the full lane must refuse it."""
        self._body_limit = body_limit
        self._would_loop = would_loop
        self._known: dict[bytes, Head | None] = {}
        self._traced: tuple[bytes, bytes, Head] | None = None
        """The last head with a trace: the bytes before and after the traceparent, and what the rest says."""

    def find(self, head: bytes) -> Head | None:
        """What a head says, without the empty line at its end; None where it is not ordinary."""
        try:
            return self._known[head]
        except KeyError:
            found = self._find_alike(head) if self._traced is not None else None
            if found is not None:
                return found
            line = _find_trace(head)
            return self._learn(head) if line is None else self._find_traced(head, line)

    def _find_alike(self, head: bytes) -> Head | None:
        """What a head says that differs from the last one with a trace only in the trace; else None."""
        assert self._traced is not None
        before, after, known = self._traced
        begin = len(before)
        end = begin + LENGTH
        if len(head) != end + len(after) or not (head.startswith(before) and head.endswith(after)):
            return None
        trace = parse_traceparent(head[begin:end].decode("latin-1"))
        if trace is None or len(head) > LONGEST:
            return None
        return Head(known.length, known.close, known.charset, known.hint, trace)

    def _find_traced(self, head: bytes, first: re.Match[bytes]) -> Head | None:
        """What a head with this line of a trace says; the line, and any further ones, are cut out of it."""
        if len(head) > LONGEST:
            return None
        values: dict[bytes, list[str]] = {b"traceparent": [], b"tracestate": []}
        whole, (start, stop) = head, first.span(2)
        line: re.Match[bytes] | None = first
        while line is not None:
            values[line[1].lower()].append(line[2].decode("latin-1"))
            begin, end = line.span()
            head = head[:begin] + head[end:]
            line = _find_trace(head, begin)
        known = self._known[head] if head in self._known else self._learn(head)
        if known is None:
            return None
        trace = parse_trace(values[b"traceparent"], values[b"tracestate"])
        if trace is not None and not values[b"tracestate"] and stop - start == LENGTH:
            self._traced = whole[:start], whole[stop:], known
        return Head(known.length, known.close, known.charset, known.hint, trace)

    def _learn(self, head: bytes) -> Head | None:
        mark = _find_mark(head)
        loops = mark is not None and self._would_loop(mark[1].decode("latin-1"))
        found = None if loops else read_head(head, self._body_limit)
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
