"""HTTP/1.1 pipelining (RFC 9112): several requests on one connection, with replies in the same order.

Pipeline owns the connection; its user interprets the replies and repeats lost requests. ReplyReader parses
the replies and does no I/O. The end of a reply is given by Content-Length, chunked encoding, or the end of
the connection. Interim (1xx) replies are skipped. Bytes that are not HTTP, and replies above the size limit,
raise NotHttp.
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

OnReply = Callable[["Pipeline", "RawReply"], None]
OnLost = Callable[["Pipeline", Exception | None], None]


class Pipeline(asyncio.Protocol):
    """A connection to one server; `on_reply` is called for each reply, `on_lost` once at the end."""

    def __init__(self, on_reply: OnReply, on_lost: OnLost, limit: int) -> None:
        self._on_reply = on_reply
        self._on_lost = on_lost
        self._reader = ReplyReader(limit)
        self._error: Exception | None = None
        self._transport: asyncio.Transport | None = None

    @classmethod
    async def open(
        cls, url: str, on_reply: OnReply, on_lost: OnLost, limit: int, tls: ssl.SSLContext | None = None
    ) -> Pipeline:
        """Connect to the host of the URL; with `tls` None the system's authorities are trusted."""
        parts = urlsplit(url)
        secure = (tls or ssl.create_default_context()) if parts.scheme == "https" else None
        _, connection = await asyncio.get_running_loop().create_connection(
            lambda: cls(on_reply, on_lost, limit),
            parts.hostname or "",
            parts.port or (443 if secure else 80),
            ssl=secure,
        )
        return connection

    def write(self, request: bytes) -> None:
        """Send a request after those in flight."""
        if self._transport is not None:
            self._transport.write(request)

    def close(self, error: Exception | None = None) -> None:
        """Abort the connection; `on_lost` gets the error."""
        self._error = self._error or error
        if self._transport is not None:
            self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See asyncio.Protocol."""
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        """Call `on_reply` for each complete reply."""
        try:
            for reply in self._reader.feed(data):
                self._on_reply(self, reply)
                if not reply.keep_alive:
                    self.close()
                    return
        except NotHttp as error:
            self.close(error)

    def connection_lost(self, error: Exception | None) -> None:
        """See asyncio.Protocol."""
        self._transport = None
        if error is None and self._error is None and (reply := self._reader.end()) is not None:
            self._on_reply(self, reply)
        self._on_lost(self, self._error or error)


class NotHttp(ValueError):
    """The bytes are not a valid HTTP reply, or the reply is too large."""


@dataclass(frozen=True, slots=True)
class RawReply:
    """One reply; header names are in lower case."""

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
    """Parses the replies on one connection, without I/O; `limit` is the maximum size of a reply in bytes."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._data = bytearray()
        self._head: _Head | None = None

    def feed(self, data: bytes) -> list[RawReply]:
        """Add bytes and return the replies that are now complete."""
        self._data += data
        found = []
        while (reply := self._next()) is not None:
            if reply.status >= 200:
                found.append(reply)
        return found

    def end(self) -> RawReply | None:
        """The reply that the end of the connection completes; None if there is none."""
        head = self._head
        if head is None or _has_length(head):
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
            raise NotHttp(f"the head of the reply is longer than {HEAD_LIMIT} bytes")
        if end < 0:
            return None
        lines = bytes(self._data[:end]).split(b"\r\n")
        del self._data[: end + 4]
        return _parse_head(lines)

    def _take_content(self, head: _Head) -> bytes | None:
        if head.status < 200 or head.status in (204, 304):
            return b""
        if _chunked(head):
            return self._take_chunks()
        if "content-length" in head.headers:
            return self._take_length(head.headers["content-length"])
        self._check_size(len(self._data))
        return None

    def _take_length(self, text: str) -> bytes | None:
        if not (text.isascii() and text.isdigit()):
            raise NotHttp(f"the Content-Length {text[:40]!r} of the reply is not a number")
        length = int(text)
        self._check_size(length)
        if len(self._data) < length:
            return None
        content = bytes(self._data[:length])
        del self._data[:length]
        return content

    def _take_chunks(self) -> bytes | None:
        """The joined chunks; None until the last chunk has arrived. Each call parses from the first chunk."""
        parts: list[bytes] = []
        at = size = 0
        while (line := self._data.find(b"\r\n", at)) >= 0:
            length = _chunk_size(bytes(self._data[at:line]))
            start, at = line + 2, line + 2 + length + 2
            size += length
            self._check_size(size)
            if length == 0:
                return self._take_trailer(line, parts)
            if len(self._data) < at:
                break
            parts.append(bytes(self._data[start : start + length]))
        self._check_size(len(self._data) // 8)
        return None

    def _take_trailer(self, line: int, parts: list[bytes]) -> bytes | None:
        end = self._data.find(b"\r\n\r\n", line)
        if end < 0:
            self._check_size(len(self._data) // 8)
            return None
        del self._data[: end + 4]
        return b"".join(parts)

    def _check_size(self, size: int) -> None:
        if size > self._limit:
            raise NotHttp(f"the reply is larger than {self._limit} bytes")


def _parse_head(lines: list[bytes]) -> _Head:
    version, _, rest = lines[0].partition(b" ")
    code = rest[:3]
    if not version.startswith(b"HTTP/1.") or not (code.isdigit() and len(code) == 3):
        raise NotHttp(f"the reply begins with {lines[0][:40]!r}, which is not HTTP/1.1")
    headers: dict[str, str] = {}
    for line in lines[1:]:
        name, colon, value = line.partition(b":")
        if not colon:
            raise NotHttp(f"the header {line[:40]!r} of the reply has no colon")
        headers[name.decode("latin-1").lower()] = value.strip(_SPACE).decode("latin-1")
    connection = headers.get("connection", "").lower()
    keep = "close" not in connection and (version != b"HTTP/1.0" or "keep-alive" in connection)
    return _Head(int(code), headers, keep)


def _has_length(head: _Head) -> bool:
    """Whether the end of the reply is known before the end of the connection."""
    return (
        head.status < 200 or head.status in (204, 304) or "content-length" in head.headers or _chunked(head)
    )


def _chunked(head: _Head) -> bool:
    return "chunked" in head.headers.get("transfer-encoding", "").lower()


def _chunk_size(line: bytes) -> int:
    digits = line.partition(b";")[0].strip(_SPACE)
    try:
        if not digits or not digits.isalnum():
            raise ValueError
        return int(digits, 16)
    except ValueError:
        raise NotHttp(f"the chunk size {line[:40]!r} of the reply is not a hexadecimal number") from None


def request_head(url: str) -> bytes:
    """The request line and the Host header of a POST to the URL."""
    parts = urlsplit(url)
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    host = parts.netloc.rpartition("@")[2]
    return f"POST {path} HTTP/1.1\r\nHost: {host}\r\n".encode("ascii")
