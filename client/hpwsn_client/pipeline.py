"""One connection with several requests on it: each is written at once, the answers come in the same
order.

It owns the connection and its bytes. What an answer means, and what is sent again after a loss, is its
owner's affair.

HTTP answers cut out of a stream of bytes (RFC 9112): several on one connection, one after the other.

Pure: bytes in, answers out. It knows the three ways in which an answer ends (a length, chunks, the end of
the connection), passes over interim answers, and refuses what is no HTTP or larger than it was told.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import cast
from urllib.parse import urlsplit

HEAD_LIMIT = 1 << 16
_SPACE = b" \t"


class NotHttp(ValueError):
    """The bytes are no answer that this side can read."""


@dataclass(frozen=True, slots=True)
class RawReply:
    """One answer; the names of headers are in lower case."""

    status: int
    headers: Mapping[str, str]
    content: bytes
    keep_alive: bool


@dataclass(frozen=True, slots=True)
class _Head:
    status: int
    headers: Mapping[str, str]
    keep_alive: bool


class ReplyReader:
    """Reads the answers of one connection."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._data = bytearray()
        self._head: _Head | None = None

    def feed(self, data: bytes) -> list[RawReply]:
        """The answers that these bytes complete."""
        self._data += data
        found = []
        while (reply := self._next()) is not None:
            if reply.status >= 200:
                found.append(reply)
        return found

    def end(self) -> RawReply | None:
        """The answer that only the end of the connection completes, if there is one."""
        head = self._head
        if head is None or self._framed(head):
            return None
        return RawReply(head.status, head.headers, bytes(self._data), False)

    def _next(self) -> RawReply | None:
        if self._head is None:
            self._head = self._take_head()
        head = self._head
        if head is None:
            return None
        content = self._take_content(head)
        if content is None:
            return None
        self._head = None
        return RawReply(head.status, head.headers, content, head.keep_alive)

    def _take_head(self) -> _Head | None:
        end = self._data.find(b"\r\n\r\n")
        if end > HEAD_LIMIT or (end < 0 and len(self._data) > HEAD_LIMIT):
            raise NotHttp(f"the head of the answer is longer than {HEAD_LIMIT} bytes")
        if end < 0:
            return None
        lines = bytes(self._data[:end]).split(b"\r\n")
        del self._data[: end + 4]
        return _parse_head(lines)

    def _framed(self, head: _Head) -> bool:
        return (
            head.status < 200
            or head.status in (204, 304)
            or "content-length" in head.headers
            or _chunked(head)
        )

    def _take_content(self, head: _Head) -> bytes | None:
        if head.status < 200 or head.status in (204, 304):
            return b""
        if _chunked(head):
            return self._take_chunks()
        if "content-length" in head.headers:
            return self._take_length(head.headers["content-length"])
        self._bound(len(self._data))
        return None

    def _take_length(self, text: str) -> bytes | None:
        if not (text.isascii() and text.isdigit()):
            raise NotHttp(f"the answer's Content-Length is {text[:40]!r}")
        length = int(text)
        self._bound(length)
        if len(self._data) < length:
            return None
        content = bytes(self._data[:length])
        del self._data[:length]
        return content

    def _take_chunks(self) -> bytes | None:
        """All chunks, once the last has come; until then they are looked through again."""
        parts: list[bytes] = []
        at = size = 0
        while (line := self._data.find(b"\r\n", at)) >= 0:
            length = _chunk_size(bytes(self._data[at:line]))
            start, at = line + 2, line + 2 + length + 2
            size += length
            self._bound(size)
            if length == 0:
                return self._take_trailer(line, parts)
            if len(self._data) < at:
                break
            parts.append(bytes(self._data[start : start + length]))
        self._bound(len(self._data) // 8)
        return None

    def _take_trailer(self, line: int, parts: list[bytes]) -> bytes | None:
        end = self._data.find(b"\r\n\r\n", line)
        if end < 0:
            self._bound(len(self._data) // 8)
            return None
        del self._data[: end + 4]
        return b"".join(parts)

    def _bound(self, size: int) -> None:
        if size > self._limit:
            raise NotHttp(f"the answer is larger than {self._limit} bytes")


def _chunked(head: _Head) -> bool:
    return "chunked" in head.headers.get("transfer-encoding", "").lower()


def _chunk_size(line: bytes) -> int:
    digits = line.partition(b";")[0].strip(_SPACE)
    try:
        if not digits or not digits.isalnum():
            raise ValueError
        return int(digits, 16)
    except ValueError:
        raise NotHttp(f"a chunk of the answer begins with {line[:40]!r}") from None


def _parse_head(lines: list[bytes]) -> _Head:
    version, _, rest = lines[0].partition(b" ")
    code = rest[:3]
    if not version.startswith(b"HTTP/1.") or not (code.isdigit() and len(code) == 3):
        raise NotHttp(f"the answer begins with {lines[0][:40]!r}, which is no HTTP/1.1")
    headers: dict[str, str] = {}
    for line in lines[1:]:
        name, colon, value = line.partition(b":")
        if not colon:
            raise NotHttp(f"the answer has a header {line[:40]!r}")
        headers[name.decode("latin-1").lower()] = value.strip(_SPACE).decode("latin-1")
    connection = headers.get("connection", "").lower()
    keep = "close" not in connection and (version != b"HTTP/1.0" or "keep-alive" in connection)
    return _Head(int(code), headers, keep)


Answered = Callable[["Pipeline", RawReply], None]
Lost = Callable[["Pipeline", Exception | None], None]


class Pipeline(asyncio.Protocol):
    """A connection to one server; `answered` is called for each answer, `lost` once at the end."""

    def __init__(self, answered: Answered, lost: Lost, limit: int) -> None:
        self._answered = answered
        self._lost = lost
        self._reader = ReplyReader(limit)
        self._error: Exception | None = None
        self._transport: asyncio.Transport | None = None

    @classmethod
    async def open(
        cls, url: str, answered: Answered, lost: Lost, limit: int, tls: ssl.SSLContext | None = None
    ) -> Pipeline:
        """Connect to the URL's host; `tls` None trusts the system's authorities."""
        parts = urlsplit(url)
        secure = (tls or ssl.create_default_context()) if parts.scheme == "https" else None
        _, connection = await asyncio.get_running_loop().create_connection(
            lambda: cls(answered, lost, limit),
            parts.hostname or "",
            parts.port or (443 if secure else 80),
            ssl=secure,
        )
        return connection

    def write(self, request: bytes) -> None:
        """Send a request behind those that are under way."""
        if self._transport is not None:
            self._transport.write(request)

    def close(self, error: Exception | None = None) -> None:
        """End the connection; `lost` gets the error."""
        self._error = self._error or error
        if self._transport is not None:
            self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See asyncio.Protocol."""
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        """Hand the answers over that are complete now."""
        try:
            for reply in self._reader.feed(data):
                self._answered(self, reply)
                if not reply.keep_alive:
                    self.close()
                    return
        except NotHttp as error:
            self.close(error)

    def connection_lost(self, error: Exception | None) -> None:
        """See asyncio.Protocol."""
        self._transport = None
        if error is None and self._error is None and (reply := self._reader.end()) is not None:
            self._answered(self, reply)
        self._lost(self, self._error or error)


def request_head(url: str) -> bytes:
    """The request line and the Host header of a POST to the URL."""
    parts = urlsplit(url)
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    host = parts.netloc.rpartition("@")[2]
    return f"POST {path} HTTP/1.1\r\nHost: {host}\r\n".encode("ascii")
