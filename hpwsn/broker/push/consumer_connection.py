"""One HTTP connection to a consumer, which carries one request at a time, and its TLS trust.

It owns the meaning of a reply, a missing reply and a refused connection (RFC 9112). hpwsn.broker.push.pool
chooses the connection for a request and sets the limits on connections and time. The bytes of a reply are
bounded, and a bad reply can only end this connection. Over TLS, the certificates of the system's authorities
and of the file `delivery.ca_file` are trusted.
"""

from __future__ import annotations

import asyncio
import errno
import math
import os
import socket
import ssl
from collections import deque
from collections.abc import Callable, Collection
from dataclasses import replace
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Protocol, cast

import httptools

from hpwsn.broker.push.request import HostKey, Outcome, OutcomeKind, Ticket
from hpwsn.errors import SettingError
from hpwsn_client.tls import certificate_problem, handshake_problem

TRUST = "name the PEM file of the authority that signed it in delivery.ca_file"
PIECE = 256 << 10
"""Bytes of a large request that are written at once."""
EXCERPT = 2048
"""Bytes of a reply's body that are kept for diagnosis."""

_LONGEST_PAUSE = 1e9
_KINDS = {
    2: OutcomeKind.DELIVERED,
    4: OutcomeKind.CLIENT_ERROR,
    5: OutcomeKind.SERVER_ERROR,
}

# The usual outcomes, created once.
_DELIVERED = {status: Outcome(OutcomeKind.DELIVERED, status, "delivered") for status in (200, 202, 204)}


class OrdinaryReplies:
    """A cache of complete replies that meant a delivery and kept the connection alive.

    A consumer repeats the same bytes, and their meaning depends on nothing else, so they are parsed once. A
    Date header changes every second, so the cache is cleared when it is full.
    """

    MOST = 256
    LONGEST = 1024

    def __init__(self) -> None:
        self._outcomes: dict[bytes, Outcome] = {}
        self.get = self._outcomes.get

    def learn(self, reply: bytes, outcome: Outcome) -> None:
        """Cache the outcome of a reply, if it is an ordinary one."""
        if len(reply) <= self.LONGEST and outcome is _DELIVERED.get(outcome.status or 0):
            if len(self._outcomes) >= self.MOST:
                self._outcomes.clear()
            self._outcomes[reply] = outcome


_ordinary = OrdinaryReplies()


def parse_retry_after(value: bytes) -> float | None:
    """Seconds from a Retry-After header, given as a number or a date; None if it is neither."""
    text = value.decode("latin-1").strip()
    if text.isascii() and text.isdigit():
        return min(float(text), _LONGEST_PAUSE)
    try:
        when = parsedate_to_datetime(text)
    except (ValueError, OverflowError):
        return None
    if when.tzinfo is None:
        when = when.replace(tzinfo=UTC)
    return max(0.0, (when - datetime.now(UTC)).total_seconds())


def explain_refusal(error: BaseException) -> str:
    """Why a connection could not be opened, for an operator."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return "the certificate is not accepted: {}; {}".format(*certificate_problem(error, TRUST))
    if isinstance(error, ssl.SSLError):
        return "TLS failed: {}; {}".format(*handshake_problem(error))
    if isinstance(error, socket.gaierror):
        return f"the host name is not known ({error.strerror})"
    if isinstance(error, OSError) and error.errno and error.errno in errno.errorcode:
        return os.strerror(error.errno).lower()
    return str(error) or type(error).__name__


class Owner(Protocol):
    """Receives the events of a connection; `answered` or `lost` ends each request that was sent."""

    def opened(self, connection: Connection) -> None:
        """The connection is established."""

    def answered(self, connection: Connection, outcome: Outcome, reusable: bool) -> None:
        """A reply was received."""

    def progressed(self, connection: Connection) -> None:
        """The consumer has read a part of a large request."""

    def spoiled(self, connection: Connection) -> None:
        """The connection has ended or must be closed; it takes no further request."""

    def lost(self, connection: Connection, outcome: Outcome | None) -> None:
        """The connection is closed; `outcome` is that of its request, if it had one."""


class Connection(asyncio.Protocol):
    """A connection with at most one request in flight."""

    __slots__ = (
        "_complete", "_excerpt", "_framed", "_keep", "_limit", "_owner", "_parser", "_received",
        "_retry_after", "_sent", "_status", "_surplus", "_transport", "_unsent", "_writing_paused",
        "_written", "deadline", "host", "idle", "opening", "reused", "ticket",
    )  # fmt: skip

    def __init__(self, owner: Owner, host: HostKey, limit: int) -> None:
        self._owner = owner
        self._limit = limit
        self.host = host
        self.ticket: Ticket | None = None
        self.opening: asyncio.Task[None] | None = None
        self.idle = False
        self.reused = False
        self.deadline = math.inf
        self._transport: asyncio.Transport | None = None
        self._parser = httptools.HttpResponseParser(self)
        self._received = 0
        self._written = self._complete = self._surplus = self._keep = self._framed = False
        self._status: int | None = None
        self._retry_after: float | None = None
        self._excerpt = b""
        self._unsent: deque[bytes] = deque()
        self._sent = 0
        """The bytes of the first part of `_unsent` that are written."""
        self._writing_paused = False

    @property
    def silent(self) -> bool:
        """Whether no byte of a reply was received."""
        return self._received == 0

    @property
    def connected(self) -> bool:
        """Whether the connection is established."""
        return self._transport is not None

    def take(self, ticket: Ticket) -> None:
        """Assign a request, which `write` sends next; the connection must be free."""
        self.ticket = ticket
        ticket.connection = self
        self._written = False
        self._forget_reply()

    def write(self) -> None:
        """Write the request, unless it was cancelled in the meantime."""
        if self.ticket is not None and self._transport is not None:
            self._written = True
            request = self.ticket.request()
            if isinstance(request, bytes):
                self._transport.write(request)
            else:
                self._unsent = request
                self._write_pieces()

    def _write_pieces(self) -> None:
        """Write a large request as fast as the consumer reads it, so that no buffer grows with it."""
        assert self._transport is not None
        unsent = self._unsent
        while unsent and not self._writing_paused:
            part = unsent[0]
            piece = part[self._sent : self._sent + PIECE]
            self._sent += len(piece)
            if self._sent >= len(part):
                unsent.popleft()
                self._sent = 0
            self._transport.write(piece)

    def pause_writing(self) -> None:
        """See asyncio.Protocol."""
        self._writing_paused = True

    def resume_writing(self) -> None:
        """See asyncio.Protocol; the time for the reply begins again with each piece of a large request."""
        self._writing_paused = False
        if self._unsent:
            self._owner.progressed(self)
            self._write_pieces()

    def drop(self) -> None:
        """Close at once; `lost` is called afterwards."""
        self.deadline = math.inf
        if self._transport is not None:
            self._transport.abort()
        elif self.opening is not None:
            self.opening.cancel()

    def disregard(self) -> None:
        """Close as if no reply was received."""
        self._forget_reply()
        self.drop()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See asyncio.Protocol."""
        self._transport = cast(asyncio.Transport, transport)
        self._owner.opened(self)

    def data_received(self, data: bytes) -> None:
        """Parse more of the reply; bytes without a request end the connection."""
        ticket = self.ticket
        if ticket is None or not self._written:
            self._owner.spoiled(self)
            return
        if not self._received and (known := _ordinary.get(data)) is not None and self._all_sent():
            self._received = len(data)
            self._owner.answered(self, known, True)
            return
        self._received += len(data)
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            self._owner.answered(self, self._reply(ticket), False)
            return
        except httptools.HttpParserError as error:
            if not self._complete:
                words = f"the reply is not HTTP ({error}): {data[:40]!r}"
                self._owner.answered(self, ticket.outcome(OutcomeKind.GARBAGE, words, self._status), False)
                return
            self._surplus = True
        if self._complete:
            outcome, reusable = self._reply(ticket), self._keep and not self._surplus and self._all_sent()
            if reusable and self._received == len(data):
                _ordinary.learn(data, outcome)
            self._owner.answered(self, outcome, reusable)
        elif self._received > self._limit:
            self._owner.answered(self, self._reply(ticket), False)

    def eof_received(self) -> None:
        """Treat a half-closed connection as closed, even if more is to be sent."""
        self._owner.spoiled(self)

    def connection_lost(self, error: Exception | None) -> None:
        """See asyncio.Protocol."""
        self._owner.lost(self, self._loss(error) if self.ticket else None)

    def on_message_begin(self) -> None:
        """See httptools; an interim reply such as 100 Continue is followed by the final one."""
        if self._complete:
            self._surplus = True
        elif self._status is not None:
            self._forget_headers()

    def on_header(self, name: bytes, value: bytes) -> None:
        """See httptools."""
        name = name.lower()
        if name == b"content-length" or (name == b"transfer-encoding" and b"chunked" in value.lower()):
            self._framed = True
        elif name == b"retry-after":
            self._retry_after = parse_retry_after(value)

    def on_headers_complete(self) -> None:
        """See httptools."""
        if not self._complete:
            self._status = self._parser.get_status_code()

    def on_body(self, data: bytes) -> None:
        """See httptools."""
        if len(self._excerpt) < EXCERPT:
            self._excerpt += data[: EXCERPT - len(self._excerpt)]

    def on_message_complete(self) -> None:
        """See httptools."""
        # Read it here: the parser resets it when the callback returns.
        self._keep = self._parser.should_keep_alive()
        self._complete = self._status is not None and self._status >= 200

    def _all_sent(self) -> bool:
        written = self._transport is not None and self._transport.get_write_buffer_size() == 0
        return written and not self._unsent

    def _forget_reply(self) -> None:
        self._received = 0
        self._complete = self._surplus = False
        if self._status is not None:
            self._forget_headers()

    def _forget_headers(self) -> None:
        self._status = None
        self._framed = False
        self._retry_after = None
        self._excerpt = b""

    def _reply(self, ticket: Ticket) -> Outcome:
        status = self._status
        if not self._excerpt and status in _DELIVERED:
            return _DELIVERED[status]
        if status is None:
            return ticket.outcome(
                OutcomeKind.GARBAGE, f"the headers of the reply are larger than {self._limit} bytes"
            )
        kind = _KINDS.get(status // 100, OutcomeKind.GARBAGE)
        outcome = ticket.outcome(kind, f"status {status}", status)
        return replace(outcome, retry_after=self._retry_after, body=self._excerpt)

    def _loss(self, error: Exception | None) -> Outcome:
        """The outcome of a closed connection: the end of a reply without a length, or a lost request."""
        ticket = self.ticket
        assert ticket is not None
        if self._status is not None and (self._status < 200 or not self._framed):
            return self._reply(ticket)
        when = "before the reply" if self.silent else "in the middle of the reply"
        cause = f" ({error})" if error else ""
        return ticket.outcome(OutcomeKind.LOST, f"connection lost {when}{cause}", self._status)


class Deadlines:
    """Ends connections at their deadlines, with one timer for the earliest; it checks all when it fires.

    A deadline is an attribute of its connection, since it is set twice per request and rarely reached.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        connections: Collection[Connection],
        expired: Callable[[Connection], None],
    ) -> None:
        self._loop = loop
        self._connections = connections
        self._expired = expired
        self._earliest = math.inf
        self._timer: asyncio.TimerHandle | None = None

    def set(self, connection: Connection, seconds: float) -> None:
        """Set or replace the deadline of a connection, `seconds` from now."""
        connection.deadline = deadline = self._loop.time() + seconds
        if deadline < self._earliest:
            self._arm(deadline)

    def close(self) -> None:
        """Stop the timer."""
        if self._timer is not None:
            self._timer.cancel()

    def _arm(self, deadline: float) -> None:
        self.close()
        self._earliest = deadline
        self._timer = self._loop.call_at(deadline, self._check)

    def _check(self) -> None:
        now = self._loop.time()
        self._earliest = math.inf
        for connection in [each for each in self._connections if each.deadline <= now]:
            self._expired(connection)
        earliest = min((each.deadline for each in self._connections), default=math.inf)
        if earliest < self._earliest:
            self._arm(earliest)


def consumer_context(authorities: str) -> ssl.SSLContext | None:
    """The TLS context for consumers; None means the system's authorities only."""
    if not authorities:
        return None
    context = ssl.create_default_context()
    try:
        context.load_verify_locations(authorities)
    except (ssl.SSLError, OSError) as error:
        reason = getattr(error, "reason", None) or error.strerror
        raise SettingError(
            "delivery.ca_file", authorities, f"cannot be used: {reason}; name a PEM file of authorities"
        ) from error
    return context
