"""A POST to a consumer: the parsed URL, the bytes of the request, and the outcome.

It owns the syntax of a request (RFC 9112). A consumer's address comes from the subscriber and is not trusted:
a URL that would add a header, a second request or credentials is refused.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import TYPE_CHECKING
from urllib.parse import SplitResult, quote, urlsplit

from hpwsn.notification import LARGE

if TYPE_CHECKING:
    from hpwsn.broker.push.consumer_connection import Connection

_LONGEST_URL = 8192
_HOST = re.compile(r"[0-9A-Za-z._~-]+|[0-9A-Fa-f:.]+(%[0-9A-Za-z._~-]+)?")
_BLANK_OR_CONTROL = re.compile(r"[\x00-\x20\x7f]")
_USERINFO = re.compile(r"//[^/?#]*@")
_PORTS = {"http": 80, "https": 443}
_NOT_QUOTED = "%/:?[]@!$&'()*+,;=~-._"

_GONE = (b"ResourceUnknownFault", b"DestinationUnreachable")

HostKey = tuple[str, str, int]


class OutcomeKind(StrEnum):
    """The outcome of a request, by class."""

    DELIVERED = "delivered"
    REFUSED = "refused"
    TIMEOUT = "timeout"
    CLIENT_ERROR = "client_error"
    SERVER_ERROR = "server_error"
    GARBAGE = "garbage"
    LOST = "lost"
    CANCELLED = "cancelled"
    UNAVAILABLE = "unavailable"
    """This node failed before it sent the request."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of one request; `reason` is for an operator, `body` the start of the reply's body."""

    kind: OutcomeKind
    status: int | None = None
    reason: str = ""
    retry_after: float | None = None
    body: bytes = b""

    @property
    def gone(self) -> bool:
        """Whether the consumer is gone for good: status 410, or a fault about its address."""
        return self.status == 410 or (self.status is not None and any(name in self.body for name in _GONE))


@dataclass(frozen=True, slots=True)
class Target:
    """A parsed URL: the host to connect to, and the request line with the Host header."""

    key: HostKey
    head: bytes


@lru_cache(maxsize=2048)
def parse_target(url: str) -> Target:
    """Parse an http or https URL; ValueError says what is wrong with it."""
    if len(url) > _LONGEST_URL or _BLANK_OR_CONTROL.search(url):
        raise ValueError(f"the address has spaces, control characters or more than {_LONGEST_URL} characters")
    try:
        parts = urlsplit(url)
    except ValueError:
        raise ValueError("the address is not a URL; write http://host:port/path") from None
    if parts.scheme not in _PORTS:
        raise ValueError("the address must begin with http:// or https://")
    if "@" in parts.netloc:
        raise ValueError("the address has a user name, which is not sent; remove it")
    host = _parse_host(parts.hostname)
    port = _parse_port(parts)
    path = quote((parts.path or "/") + (f"?{parts.query}" if parts.query else ""), safe=_NOT_QUOTED)
    shown = f"[{host.partition('%')[0]}]" if ":" in host else host
    authority = shown if port == _PORTS[parts.scheme] else f"{shown}:{port}"
    return Target(
        (parts.scheme, host, port), f"POST {path} HTTP/1.1\r\nHost: {authority}\r\n".encode("ascii")
    )


def _parse_host(host: str | None) -> str:
    if not host:
        raise ValueError("the address has no host; write http://host:port/path")
    if not host.isascii():
        try:
            host = host.encode("idna").decode("ascii")
        except UnicodeError:
            raise ValueError(f"{host!r} is not a host name") from None
    if not _HOST.fullmatch(host) or ".." in host or host.startswith("."):
        raise ValueError(f"{host!r} is not a host name or an IP address")
    return host


def _parse_port(parts: SplitResult) -> int:
    try:
        port = _PORTS[parts.scheme] if parts.port is None else parts.port
    except ValueError:
        port = 0
    if port == 0:
        raise ValueError("the port of the address is not valid; give a port from 1 to 65535, or none")
    return port


class Ticket:
    """One request, from the call of `post` to its outcome."""

    __slots__ = ("_body", "_cancel", "_headers", "connection", "done", "repeated", "target", "url")

    def __init__(
        self,
        cancel: Callable[[Ticket], bool],
        url: str,
        headers: bytes,
        body: bytes | Sequence[bytes],
        done: Callable[[Outcome], None],
    ) -> None:
        self._cancel = cancel
        self._headers = headers
        self._body = body
        self.url = url
        self.done: Callable[[Outcome], None] | None = done
        self.target: Target | None = None
        self.connection: Connection | None = None
        self.repeated = False

    def cancel(self) -> bool:
        """Cancel the request, with outcome CANCELLED; False if it already has an outcome."""
        return self._cancel(self)

    def take(self) -> Callable[[Outcome], None] | None:
        """Return the callback, the first time only, and free the body."""
        done, self.done = self.done, None
        self._headers = self._body = b""
        self.connection = None
        return done

    def request(self) -> bytes | deque[bytes]:
        """The bytes of the request; those of a large one in parts, none of which was copied."""
        assert self.target is not None
        body = (self._body,) if isinstance(self._body, bytes) else self._body
        length = sum(map(len, body))
        parts = (self.target.head, self._headers, b"Content-Length: %d\r\n\r\n" % length, *body)
        return b"".join(parts) if length < LARGE else deque(parts)

    def outcome(self, kind: OutcomeKind, words: str, status: int | None = None) -> Outcome:
        """An outcome whose reason has the URL, shortened and without credentials."""
        url = _BLANK_OR_CONTROL.sub("?", _USERINFO.sub("//", self.url[:200]))
        return Outcome(kind, status, f"POST {url}: {words}")
