"""One connection to a consumer: the request's bytes out, the reply's bytes in, one post at a time.

It owns what a reply, its absence or a refusal means (RFC 9112). It refuses to decide which post goes
where: that, and the limits on connections and time, is hpwsn.broker.push.pool's. What a consumer sends is
bounded, and none of it can do more than end this connection.

TLS towards consumers and publishers whose addresses are https: whose certificates a node trusts.

They are those of the system's authorities, and of the file `delivery.ca_file` beside them, since
consumers are other people's.
"""

from __future__ import annotations

import asyncio
import errno
import math
import os
import socket
import ssl
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


def consumer_context(authorities: str) -> ssl.SSLContext | None:
    """What connections are secured with; None stands for the system's authorities alone."""
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


EXCERPT = 2048
"""Bytes of a reply's body that are kept for whoever has to find out what went wrong."""

_LONGEST_PAUSE = 1e9
_KINDS = {
    2: OutcomeKind.DELIVERED,
    4: OutcomeKind.CLIENT_ERROR,
    5: OutcomeKind.SERVER_ERROR,
}

# The ordinary reply, made once.
_DELIVERED = {status: Outcome(OutcomeKind.DELIVERED, status, "delivered") for status in (200, 202, 204)}


class OrdinaryReplies:
    """Whole replies, to the byte, that meant a delivery on a connection that goes on.

    A consumer answers with the same bytes again and again, and what they mean depends on nothing else, so
    they are parsed once. All is forgotten when there are many: a date in them is a new one every second.
    """

    MOST = 256
    LONGEST = 1024

    def __init__(self) -> None:
        self._outcomes: dict[bytes, Outcome] = {}
        self.get = self._outcomes.get

    def learn(self, reply: bytes, outcome: Outcome) -> None:
        """Remember what a reply meant, if it is an ordinary one."""
        if len(reply) <= self.LONGEST and outcome is _DELIVERED.get(outcome.status or 0):
            if len(self._outcomes) >= self.MOST:
                self._outcomes.clear()
            self._outcomes[reply] = outcome


_ordinary = OrdinaryReplies()


def parse_retry_after(value: bytes) -> float | None:
    """Seconds from a Retry-After header in either of its forms; None where it is neither."""
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
    """Why no connection came about, in an operator's words."""
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
    """Whom a connection tells; `answered` or `lost` ends each post that was sent."""

    def opened(self, connection: Connection) -> None:
        """The connection is there."""

    def answered(self, connection: Connection, outcome: Outcome, reusable: bool) -> None:
        """A reply has come."""

    def spoiled(self, connection: Connection) -> None:
        """The connection has ended or must end, and takes no further post."""

    def lost(self, connection: Connection, outcome: Outcome | None) -> None:
        """The connection is gone; the outcome is that of its post, if it had one."""


class Connection(asyncio.Protocol):
    """A connection with at most one post on it."""

    __slots__ = (
        "_complete", "_excerpt", "_framed", "_keep", "_limit", "_owner", "_parser", "_received",
        "_retry_after", "_status", "_surplus", "_transport", "_written", "deadline", "host", "idle",
        "opening", "reused", "ticket",
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

    @property
    def silent(self) -> bool:
        """Whether no byte of a reply has come."""
        return self._received == 0

    @property
    def connected(self) -> bool:
        """Whether it has come about."""
        return self._transport is not None

    def take(self, ticket: Ticket) -> None:
        """Make the post this connection's, to be written next; it must be free."""
        self.ticket = ticket
        ticket.connection = self
        self._written = False
        self._forget_reply()

    def write(self) -> None:
        """Write the request, unless it was cancelled meanwhile."""
        if self.ticket is not None and self._transport is not None:
            self._written = True
            self._transport.write(self.ticket.request())

    def drop(self) -> None:
        """Close at once; `lost` is told when it has happened."""
        self.deadline = math.inf
        if self._transport is not None:
            self._transport.abort()
        elif self.opening is not None:
            self.opening.cancel()

    def disregard(self) -> None:
        """Close as if no reply had come."""
        self._forget_reply()
        self.drop()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See asyncio.Protocol."""
        self._transport = cast(asyncio.Transport, transport)
        self._owner.opened(self)

    def data_received(self, data: bytes) -> None:
        """Read on in the reply; bytes that nobody has yet asked for end the connection."""
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
        """Treat a consumer that will say no more as gone, whatever is still to be sent to it."""
        self._owner.spoiled(self)

    def connection_lost(self, error: Exception | None) -> None:
        """See asyncio.Protocol."""
        self._owner.lost(self, self._loss(error) if self.ticket else None)

    def on_message_begin(self) -> None:
        """See httptools; an interim reply such as 100 Continue is followed by another."""
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
        # Asked here, since the parser forgets it when the callback returns.
        self._keep = self._parser.should_keep_alive()
        self._complete = self._status is not None and self._status >= 200

    def _all_sent(self) -> bool:
        return self._transport is not None and self._transport.get_write_buffer_size() == 0

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
                OutcomeKind.GARBAGE, f"the reply has more than {self._limit} bytes of headers"
            )
        kind = _KINDS.get(status // 100, OutcomeKind.GARBAGE)
        outcome = ticket.outcome(kind, f"status {status}", status)
        return replace(outcome, retry_after=self._retry_after, body=self._excerpt)

    def _loss(self, error: Exception | None) -> Outcome:
        """What a closed connection means: the end of a reply without a length, or a loss."""
        ticket = self.ticket
        assert ticket is not None
        if self._status is not None and (self._status < 200 or not self._framed):
            return self._reply(ticket)
        when = "before the reply" if self.silent else "in the middle of the reply"
        cause = f" ({error})" if error else ""
        return ticket.outcome(OutcomeKind.LOST, f"connection lost {when}{cause}", self._status)


class Deadlines:
    """Ends what takes too long: one timer for the earliest of all, and a look at each when it rings.

    A deadline is an attribute of its connection, since it is set twice for every post and almost never met.
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
        """Give the connection so much time from now, whatever it had."""
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
        self._timer = self._loop.call_at(deadline, self._ring)

    def _ring(self) -> None:
        now = self._loop.time()
        self._earliest = math.inf
        for connection in [each for each in self._connections if each.deadline <= now]:
            self._expired(connection)
        earliest = min((each.deadline for each in self._connections), default=math.inf)
        if earliest < self._earliest:
            self._arm(earliest)
