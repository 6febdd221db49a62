"""TCP links: one connection to each member carries frames; it is opened when there is something to send.

A link is a stream of numbered frames that outlives its connections. Unconfirmed frames are sent again, in
order, over the next connection. The receiver's Welcome contains the next expected frame, so that nothing is
received twice while both processes live. Queues are limited in bytes; above the limit a message is refused.
Welcome and Feedback return on the same connection.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import socket
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import cast

from hpwsn.background import switch_sooner
from hpwsn.notification import LARGE
from hpwsn.routing.links.authentication_failures import AuthenticationFailures
from hpwsn.routing.links.link_traffic import LinkTraffic
from hpwsn.routing.links.tcp_sending import GREETING_TIMEOUT, TcpLink, tune
from hpwsn.routing.links.udp import OnMessage
from hpwsn.routing.links.udp_sending import Address, LinkOptions
from hpwsn.routing.wire.fragments import CompleteMessage, LargeMessage, Reassembly
from hpwsn.routing.wire.frames import (
    Frame,
    Kind,
    MalformedFrame,
    Records,
    WrongTag,
    encode_frame,
    encode_pair,
    encode_record,
    greeting_key,
    parse_fragments,
    parse_frame,
    parse_pair,
    session_key,
)

log = logging.getLogger(__name__)

OnState = Callable[[str, bool], None]
OnLarge = Callable[[str, Sequence[bytes]], None]


@dataclass(slots=True)
class _Stream:
    """The position in a member's stream, across its connections."""

    number: int
    wanted: int
    reassembly: Reassembly = field(repr=False)


class _Receiving(asyncio.Protocol):
    """A connection on which a member sends to this node."""

    def __init__(self, links: TcpLinks) -> None:
        self._links = links
        self._records = Records()
        self.member = ""
        self.proved = False
        """Whether a frame arrived that proves that the sender has read our Welcome."""
        self._key: bytes | None = None
        self._stream: _Stream

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        tune(self._transport)
        self._links.connections.add(self)
        self._greeting_timer = asyncio.get_running_loop().call_later(GREETING_TIMEOUT, self._transport.abort)

    def connection_lost(self, exc: Exception | None) -> None:
        self._greeting_timer.cancel()
        self._links.connections.discard(self)

    def abort(self) -> None:
        """Close the connection immediately."""
        self._transport.abort()

    def data_received(self, data: bytes) -> None:
        try:
            for record in self._records.feed(data):
                frame = parse_frame(record)
                if self._key is None:
                    self._greeted(frame)
                else:
                    self._data(frame, self._key)
        except WrongTag:
            self._links.report_wrong_secret(frame.sender, self._transport)
            self._refuse(frame)
        except ValueError as error:
            self._links.report_unreadable(error, self._transport)
            self._transport.close()
        else:
            self._send_feedback()

    def _greeted(self, frame: Frame) -> None:
        frame.check(greeting_key(self._links.secret, frame.sender, self._links.name))
        if frame.kind is not Kind.HELLO:
            raise MalformedFrame(f"a {frame.kind.name} frame came before a greeting")
        self._greeting_timer.cancel()
        self.member, self._session = frame.sender, frame.session
        self._stream = self._links.stream(frame.sender, *parse_pair(frame.body))
        answer = secrets.randbits(64)
        self._key = session_key(self._links.secret, self.member, self._links.name, frame.session, answer)
        self._reported = self._stream.wanted
        self._write(Kind.WELCOME, encode_pair(answer, self._stream.wanted), self._greeting())
        self._links.greeted(self)

    def _refuse(self, frame: Frame) -> None:
        # The tag of this Reset is wrong for the other side too, which tells it that the secrets differ.
        self.member, self._session = frame.sender, frame.session
        self._links.refused += 1
        self._write(Kind.RESET, b"", self._greeting())
        self._transport.close()

    def _greeting(self) -> bytes:
        return greeting_key(self._links.secret, self._links.name, self.member)

    def _data(self, frame: Frame, key: bytes) -> None:
        if frame.kind is not Kind.DATA or (frame.sender, frame.session) != (self.member, self._session):
            raise MalformedFrame(f"a {frame.kind.name} frame of {frame.sender!r} is not of this session")
        frame.check(key)
        self.proved = True
        stream = self._stream = self._links.current(self.member, self._stream)
        if frame.counter > stream.wanted:
            raise MalformedFrame(f"frame {frame.counter} arrived, and {stream.wanted} was expected")
        if frame.counter < stream.wanted:
            return  # it has arrived on an earlier connection
        stream.wanted += 1
        self._links.frames_received += 1
        for fragment in parse_fragments(frame.body):
            if fragment.split:
                switch_sooner()
            complete = stream.reassembly.add(None, fragment, 0.0)
            if isinstance(complete, CompleteMessage):
                self._links.on_message(self.member, complete.content)
            elif isinstance(complete, LargeMessage):
                self._links.on_large(self.member, complete.pieces)

    def _send_feedback(self) -> None:
        if self._key is not None and self._stream.wanted > self._reported:
            self._reported = self._stream.wanted
            self._write(Kind.FEEDBACK, encode_pair(self._reported, 0), self._key)

    def _write(self, kind: Kind, body: bytes, key: bytes) -> None:
        frame = encode_frame(kind, self._links.sender, self._session, 0, body, key)
        self._transport.write(encode_record(frame))


class TcpLinks:
    """All TCP links of a node."""

    def __init__(
        self,
        name: str,
        secret: bytes,
        options: LinkOptions,
        on_message: OnMessage,
        on_state: OnState,
        on_large: OnLarge,
    ) -> None:
        self.name = name
        self.sender = name.encode()
        self.secret = secret
        self.options = options
        self.on_message = on_message
        self.on_state = on_state
        self.on_large = on_large
        self.connections: set[_Receiving] = set()
        self.frames_sent = self.frames_received = self.refused = 0
        self._messages = self._dropped = 0
        self._identification = secrets.randbits(48)
        self._addresses: dict[str, Address] = {}
        self._links: dict[str, TcpLink] = {}
        self._streams: dict[str, _Stream] = {}
        self._ending: set[asyncio.Task[int]] = set()
        self._authentication_failures = AuthenticationFailures(asyncio.get_running_loop().time)

    async def start(self, listener: socket.socket) -> None:
        """Accept connections on the listening socket."""
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(lambda: _Receiving(self), sock=listener)

    def identify(self) -> int:
        """Return the identification of the next message."""
        self._identification += 1
        return self._identification

    def report_wrong_secret(self, name: str, transport: asyncio.Transport) -> None:
        """Log that the peer has another secret."""
        self._authentication_failures.report_wrong_secret(name, transport.get_extra_info("peername"))

    def report_unreadable(self, error: ValueError, transport: asyncio.Transport) -> None:
        """Count and log bytes that are not a valid frame."""
        self.refused += 1
        self._authentication_failures.report_unreadable(error, transport.get_extra_info("peername"))

    def greeted(self, connection: _Receiving) -> None:
        """Close other connections of the member that only sent a greeting, which could be a replay."""
        for other in tuple(self.connections):
            if other is not connection and other.member == connection.member and not other.proved:
                other.abort()

    def set_member(self, member: str, address: Address) -> None:
        """Set the address of a member; its queue goes to the new address."""
        self._addresses[member] = address
        link = self._links.get(member)
        if link is not None and link.address != address:
            link.set_address(address)

    def remove_member(self, member: str) -> None:
        """Remove a member and its queue."""
        self._addresses.pop(member, None)
        self._streams.pop(member, None)
        if (link := self._links.pop(member, None)) is not None:
            task = asyncio.get_running_loop().create_task(link.close())
            self._ending.add(task)
            task.add_done_callback(self._ending.discard)

    def send(self, member: str, payload: bytes) -> bool:
        """Send a message; False if the queue is full or the member is unknown."""
        link = self._link(member)
        if link is None or not link.send(payload):
            self._dropped += 1
            return False
        self._messages += 1
        return True

    def send_large(self, member: str, parts: Sequence[bytes], topic: Hashable, key: Hashable) -> bool:
        """Send a message between others, which it does not hold up; False if the member is unknown.

        Messages with the same topic keep their order. A message whose key is still in the queue is not
        queued again.
        """
        link = self._link(member)
        if link is None:
            self._dropped += 1
            return False
        if link.send_large(parts, topic, key):
            self._messages += 1
        return True

    def holds_back(self, member: str, topic: Hashable) -> bool:
        """Whether a large message with this topic is on its way to a member."""
        link = self._links.get(member)
        return link is not None and link.bulk.has(topic)

    @property
    def bulk_bytes(self) -> int:
        """The most bytes of large messages that are on their way to one member."""
        return max((link.bulk.bytes for link in self._links.values()), default=0)

    def _link(self, member: str) -> TcpLink | None:
        link = self._links.get(member)
        if link is None and (address := self._addresses.get(member)) is not None:
            link = self._links[member] = TcpLink(self, member, address)
        return link

    def waiting(self, member: str) -> int:
        """Return the bytes that a member has not confirmed yet."""
        link = self._links.get(member)
        return 0 if link is None else link.waiting_bytes

    def traffic(self) -> Iterator[tuple[str, LinkTraffic]]:
        """Yield each member to which something was sent, with the counters of its link."""
        for member, link in self._links.items():
            yield member, link.traffic()

    def stream(self, member: str, number: int, first: int) -> _Stream:
        """Return the stream of a greeting; it becomes current with its first frame."""
        known = self._streams.get(member)
        if known is not None and known.number == number:
            return known
        # The other node has accepted the message within its own limit, so that the only one is never dropped.
        assembly = Reassembly(
            timeout=1.0, max_bytes=self.options.reassembly_bytes, max_messages=4, large=LARGE, keep_one=True
        )
        return _Stream(number, first, assembly)

    def current(self, member: str, stream: _Stream) -> _Stream:
        """Make a stream the member's current one, because a frame arrived in it; return the current one."""
        known = self._streams.get(member)
        if known is None or known.number != stream.number:
            known = self._streams[member] = stream
        return known

    def figures(self) -> dict[str, object]:
        """Return the counters for /status and /metrics."""
        return {
            "frames_sent": self.frames_sent,
            "frames_received": self.frames_received,
            "messages_sent": self._messages,
            "dropped": self._dropped,
            "refused": self.refused,
            "waiting_bytes": sum(link.waiting_bytes for link in self._links.values()),
            "large_bytes": sum(link.bulk.bytes for link in self._links.values()),
            "connections_in": len(self.connections),
            "members": {name: "up" if link.up else "down" for name, link in self._links.items()},
        }

    async def close(self, timeout_seconds: float = 1.0) -> None:
        """Close all links, after the queues are empty or the timeout is over."""
        self._server.close()
        await asyncio.gather(*(link.close(timeout_seconds) for link in self._links.values()), *self._ending)
        for connection in tuple(self.connections):
            connection.abort()
        while self.connections:  # noqa: ASYNC110
            await asyncio.sleep(0)
