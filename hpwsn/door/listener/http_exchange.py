"""HTTP requests and replies as values, shared by the full SOAP door and the HTTP lane.

It has no socket and no operation. `read_body` reads a body that aiohttp receives. `Refusals` encodes faults
as replies; `Responses` encodes replies as bytes for the HTTP lane, with the headers that aiohttp would add.
SOAP 1.1 section 6, SOAP 1.2 part 2 section 7.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from email.utils import formatdate
from http import HTTPStatus
from typing import Protocol

from aiohttp import web
from aiohttp.http import SERVER_SOFTWARE

from hpwsn.background import in_thread
from hpwsn.notification import LARGE
from hpwsn_client.wsn.soap import faults
from hpwsn_client.wsn.soap.envelope import SoapVersion, parse_envelope
from hpwsn_client.wsn.soap.faults import encode_fault
from hpwsn_client.wsn.soap.trace_context import parse_trace
from hpwsn_client.wsn.soap.xml import Limits

BUSY = 503
RETRY_AFTER = 1.0
"""Seconds that a client is asked to wait."""

_CLOSE = b"Connection: close\r\n"


@dataclass(frozen=True, slots=True)
class Post:
    """A complete request; `hint` is the SOAP version of its Content-Type."""

    data: bytes
    charset: str | None
    hint: SoapVersion
    path: str = "/wsn"
    resource: str = ""
    gone: Callable[[], bool] = lambda: False
    """Whether the client has disconnected."""
    trace: str | None = None
    """The trace in the HTTP headers."""


@dataclass(frozen=True, slots=True)
class Reply:
    """A response; `tell` is called with whether it was written."""

    status: int
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    tell: Callable[[bool], Awaitable[None]] | None = None


class BrokerDoor(Protocol):
    """The part of the full SOAP door that the HTTP lane uses."""

    async def answer_broker(self, post: Post) -> Reply:
        """Answer a request to the broker's own address."""

    def overtaken(self, post: Post) -> Reply:
        """The reply to a Notify that was not stored, while later requests may have been."""

    def too_late(self, hint: SoapVersion) -> Reply:
        """The answer to a request that did not arrive in time."""


class Refusals:
    """Encodes faults as replies."""

    def __init__(self, limits: Limits, request_timeout: float, now: Callable[[], datetime]) -> None:
        self._limits = limits
        self._request_timeout = request_timeout
        self._now = now

    def refuse(self, fault: faults.SoapFault, version: SoapVersion, relates_to: str | None) -> Reply:
        """A fault as the reply to a request of this SOAP version."""
        headers = {"Content-Type": version.content_type}
        if fault.status == BUSY:
            headers["Retry-After"] = f"{getattr(fault, 'retry_after', RETRY_AFTER):.0f}"
        body = encode_fault(fault, version, self._now(), relates_to)
        return Reply(fault.http_status(version), body, headers)

    def overtaken(self, post: Post) -> Reply:
        """The reply to a Notify that was not stored, while later requests may have been."""
        words = "nothing was stored, but later requests of this connection may be stored; send it again"
        fault = faults.Busy(words, retry_after=RETRY_AFTER)
        if len(post.data) >= LARGE:
            return self.refuse(fault, post.hint, None)
        envelope = parse_envelope(post.data, self._limits, post.charset)
        return self.refuse(fault, envelope.version, envelope.addressing.message_id)

    def too_late(self, hint: SoapVersion) -> Reply:
        """The answer to a request that did not arrive in time."""
        return self.refuse(self.late(), hint, None)

    def late(self) -> faults.SoapFault:
        """The fault for a request that did not arrive in time."""
        return faults.SoapFault(f"the request did not arrive within {self._request_timeout:g} s", status=408)


class Responses:
    """Encodes responses; the most frequent one is encoded once a second."""

    def __init__(self) -> None:
        self._second = 0
        self._common = b""
        self._accepted = (b"", b"")

    def accepted(self, count: int, close: bool) -> bytes:
        """The answers to `count` notifications; the last one closes the connection if `close`."""
        if int(time.time()) != self._second:
            self._next_second()
        going_on, ending = self._accepted
        return going_on * (count - 1) + ending if close else going_on * count

    def encode(self, reply: Reply, close: bool) -> bytes:
        """Encode any reply."""
        if int(time.time()) != self._second:
            self._next_second()
        headers = "".join(f"{name}: {value}\r\n" for name, value in reply.headers.items())
        return b"".join(
            (
                f"HTTP/1.1 {reply.status} {HTTPStatus(reply.status).phrase}\r\n{headers}".encode(),
                f"Content-Length: {len(reply.body)}\r\n".encode(),
                self._common,
                _CLOSE if close else b"",
                b"\r\n",
                reply.body,
            )
        )

    def _next_second(self) -> None:
        self._second = int(time.time())
        date = formatdate(self._second, usegmt=True)
        self._common = f"Date: {date}\r\nServer: {SERVER_SOFTWARE}\r\n".encode()
        accepted = Reply(HTTPStatus.ACCEPTED)
        self._accepted = (self.encode(accepted, close=False), self.encode(accepted, close=True))


def trace_of(request: web.Request) -> str | None:
    """The trace in the HTTP headers of a request; None without a valid one."""
    traceparents = request.headers.getall("traceparent", None)
    return parse_trace(traceparents, request.headers.getall("tracestate", ())) if traceparents else None


async def read_body(request: web.Request) -> bytes:
    """Read the whole body; a large one is joined in a thread. HTTPRequestEntityTooLarge above the limit."""
    if (request.content_length or LARGE) < LARGE:
        return await request.read()
    limit = request.client_max_size
    parts: list[bytes] = []
    size = 0
    async for part in request.content.iter_any():
        size += len(part)
        if limit and size > limit:
            raise web.HTTPRequestEntityTooLarge(max_size=limit, actual_size=size)
        parts.append(part)
    return b"".join(parts) if size < LARGE else await in_thread(b"".join, parts)
