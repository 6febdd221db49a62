"""The sending side of a TCP link: a stream of numbered frames to one member that outlives its connections.

Unconfirmed frames are sent again, in order, over the next connection, from the frame that the receiver's
Welcome names. The queue is limited in bytes; above the limit a message is refused.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
import secrets
import socket
from collections import deque
from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, cast

from hpwsn.background import switch_sooner
from hpwsn.routing.links.bulk import BulkQueue
from hpwsn.routing.links.link_traffic import LinkTraffic
from hpwsn.routing.links.udp_sending import Address
from hpwsn.routing.wire.fragments import split_message
from hpwsn.routing.wire.frames import (
    Frame,
    Kind,
    MalformedFrame,
    Records,
    WrongTag,
    encode_fragment,
    encode_frame,
    encode_pair,
    encode_record,
    greeting_key,
    parse_frame,
    parse_pair,
    session_key,
)

if TYPE_CHECKING:
    from hpwsn.routing.links.tcp import TcpLinks

log = logging.getLogger(__name__)

FRAGMENT_BYTES = 256 * 1024
FRAME_BYTES = 128 * 1024
"""Bytes after which no further message is added to a frame."""
BULK_WINDOW = 4 << 20
"""Bytes in flight above which no further piece of a large message is sent."""
RETRY_FIRST, RETRY_MAX = 0.05, 1.0
GREETING_TIMEOUT = 5.0
USER_TIMEOUT_MS = 10_000
"""Milliseconds after which the kernel closes a connection whose peer acknowledges nothing."""


class _Sending(asyncio.Protocol):
    """A connection of a link to a member."""

    def __init__(self, link: TcpLink) -> None:
        self._link = link
        self._records = Records()
        self.session = secrets.randbits(64)
        self.key: bytes | None = None
        self.paused = False
        self.ended = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        tune(self._transport)
        link = self._link
        key = greeting_key(link.links.secret, link.links.name, link.member)
        self.write(Kind.HELLO, 0, encode_pair(link.stream, link.first), key)
        self._greeting_timer = asyncio.get_running_loop().call_later(GREETING_TIMEOUT, self._transport.abort)

    def write(self, kind: Kind, counter: int, body: bytes, key: bytes) -> None:
        """Write one frame."""
        frame = encode_frame(kind, self._link.links.sender, self.session, counter, body, key)
        self._transport.write(encode_record(frame))

    def data_received(self, data: bytes) -> None:
        try:
            for record in self._records.feed(data):
                frame = parse_frame(record)
                self._take(frame)
        except WrongTag:
            self._link.links.report_wrong_secret(self._link.member, self._transport)
            self._transport.abort()
        except ValueError as error:
            log.warning("closed the link to node %s: %s", self._link.member, error)
            self._transport.abort()

    def _take(self, frame: Frame) -> None:
        link = self._link
        if frame.kind is Kind.FEEDBACK and self.key is not None:
            frame.check(self.key)
            link.confirmed(parse_pair(frame.body)[0])
            if link.bulk:
                link.pump()
            return
        frame.check(greeting_key(link.links.secret, link.member, link.links.name))
        if frame.session != self.session or frame.kind is not Kind.WELCOME or self.key is not None:
            raise MalformedFrame(f"the {frame.kind.name} frame is unexpected")
        self._greeting_timer.cancel()
        answer, wanted = parse_pair(frame.body)
        self.key = session_key(link.links.secret, link.links.name, link.member, self.session, answer)
        link.welcomed(self, wanted)

    def pause_writing(self) -> None:
        self.paused = True

    def resume_writing(self) -> None:
        self.paused = False
        self._link.pump()

    def connection_lost(self, exc: Exception | None) -> None:
        self._greeting_timer.cancel()
        if not self.ended.done():
            self.ended.set_result(None)

    def abort(self) -> None:
        """Close the connection immediately."""
        self._transport.abort()


class TcpLink:
    """The stream of frames to one member, across its connections."""

    def __init__(self, links: TcpLinks, member: str, address: Address) -> None:
        self.links = links
        self.member = member
        self.address = address
        self.stream = secrets.randbits(63)
        self.first = 0
        self.up = False
        self.waiting_bytes = 0
        self.reconnects = 0
        self.messages = self.bytes_sent = 0
        self.bulk = BulkQueue()
        self._bodies: deque[bytes] = deque()
        self._next = 0  # the number of the next frame to write
        self._next_body: list[bytes] = []
        self._next_body_bytes = 0
        self._flushing = False
        self._open: _Sending | None = None
        self._connection: _Sending | None = None
        """The open connection, after the member's Welcome."""
        self._reported_up: bool | None = None
        self._task = asyncio.get_running_loop().create_task(self._run())

    def send(self, payload: bytes) -> bool:
        """Queue a message; False if the queue is full."""
        if self.waiting_bytes + len(payload) > self.links.options.queue_bytes and self.waiting_bytes:
            return False
        for fragment in split_message(self.links.identify(), payload, FRAGMENT_BYTES):
            entry = encode_fragment(fragment)
            self._next_body.append(entry)
            self._next_body_bytes += len(entry)
            self.waiting_bytes += len(entry)
            if self._next_body_bytes >= FRAME_BYTES:
                self._close_body()
        self.messages += 1
        self._flush_soon()
        return True

    def send_large(self, parts: Sequence[bytes], topic: Hashable, key: Hashable) -> bool:
        """Queue a message that others may overtake; False if it is in the queue already."""
        if not self.bulk.add(self.links.identify(), parts, FRAGMENT_BYTES, topic, key):
            return False
        self.messages += 1
        self._flush_soon()
        return True

    def _flush_soon(self) -> None:
        if not self._flushing:
            self._flushing = True
            asyncio.get_running_loop().call_soon(self._flush)

    def _flush(self) -> None:
        self._flushing = False
        self._close_body()
        self.pump()

    def _close_body(self) -> None:
        if self._next_body:
            self._bodies.append(b"".join(self._next_body))
            self._next_body, self._next_body_bytes = [], 0

    def pump(self) -> None:
        """Write frames until the connection's buffer is full."""
        connection = self._connection
        if connection is None or connection.key is None:
            return
        self._add_bulk()
        while not connection.paused and (self._next < self.first + len(self._bodies) or self._add_bulk()):
            body = self._bodies[self._next - self.first]
            connection.write(Kind.DATA, self._next, body, connection.key)
            self.links.frames_sent += 1
            self.bytes_sent += len(body)
            self._next += 1

    def _add_bulk(self) -> bool:
        """Add the next piece of a large message, unless enough is in flight."""
        if not self.bulk or self.waiting_bytes >= BULK_WINDOW or self._next_body:
            return False
        switch_sooner()
        body = encode_fragment(self.bulk.next(self.first + len(self._bodies)))
        self._bodies.append(body)
        self.waiting_bytes += len(body)
        return True

    def traffic(self) -> LinkTraffic:
        """Return the counters of the link; repeated frames count again."""
        unconfirmed = max(self.waiting_bytes, self.bulk.bytes)
        return LinkTraffic("tcp", self.up, self.messages, self.bytes_sent, unconfirmed)

    def confirmed(self, upto: int) -> None:
        """Remove the frames before this number, which the member has received."""
        while self.first < upto and self._bodies:
            self.waiting_bytes -= len(self._bodies.popleft())
            self.first += 1
        self.bulk.confirmed(self.first)

    def welcomed(self, connection: _Sending, wanted: int) -> None:
        """Use a connection whose member has sent a Welcome; continue with the frame that it expects."""
        if not self.first <= wanted <= self.first + len(self._bodies):
            raise MalformedFrame(f"the member expects frame {wanted}, and the first one here is {self.first}")
        self.confirmed(wanted)
        self._next = wanted
        if self.reconnects:
            self.bulk.restart()
        self._connection = connection
        self.pump()
        self._report_state(True)

    async def _run(self) -> None:
        pause = RETRY_FIRST
        while True:
            if await self._connect():
                pause = RETRY_FIRST
            self._report_state(False)
            await asyncio.sleep(pause * random.uniform(0.8, 1.2))
            pause = min(2 * pause, RETRY_MAX)

    async def _connect(self) -> bool:
        """Run one connection until it ends; return whether the member sent a Welcome."""
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(GREETING_TIMEOUT):
                _, connection = await loop.create_connection(
                    lambda: _Sending(self), self.address[0], self.address[1]
                )
        except OSError as error:  # TimeoutError is one
            log.debug("no connection to %s at %s: %s", self.member, self.address[:2], error)
            return False
        self._open = connection
        try:
            await asyncio.shield(connection.ended)
        finally:
            self._connection = None
            connection.abort()
        self.reconnects += 1
        return connection.key is not None

    def _report_state(self, up: bool) -> None:
        self.up = up
        if self._reported_up is not up:
            self._reported_up = up
            self.links.on_state(self.member, up)

    def set_address(self, address: Address) -> None:
        """Use a new address of the member."""
        self.address = address
        if self._connection is not None:
            self._connection.abort()

    async def close(self, timeout_seconds: float = 0.0) -> int:
        """Close the link when the queue is confirmed, or after the timeout; return the unconfirmed bytes."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout_seconds):
                while (self.waiting_bytes or self.bulk) and self.up:  # noqa: ASYNC110
                    await asyncio.sleep(0.005)
        self._task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._task
        if self._open is not None:
            await self._open.ended
        return self.waiting_bytes


def tune(transport: asyncio.Transport) -> None:
    """Send small frames without delay, and detect a silent peer."""
    own = transport.get_extra_info("socket")
    with contextlib.suppress(OSError):
        own.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        own.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        own.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, USER_TIMEOUT_MS)
