"""TCP links: to each member one connection that carries our frames, opened when there is something to send.

A link is a stream of numbered frames that outlives its connections: what was not confirmed is sent again, in
order, over the next one, and the receiver says in its welcome from where, so nothing comes twice while both
sides live. What waits is bounded in bytes; past that a message is refused to its sender. The answers
(welcome, how far frames have come) go back on the same connection.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import socket
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import cast

from hpwsn.routing.links.authentication_failures import AuthenticationFailures
from hpwsn.routing.links.tcp_sending import GREETING_TIMEOUT, TcpLink, tune
from hpwsn.routing.links.udp import OnMessage
from hpwsn.routing.links.udp_sending import Address, LinkOptions
from hpwsn.routing.wire.fragments import CompleteMessage, Reassembly
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


@dataclass(slots=True)
class _Stream:
    """How far a member's stream has come, whichever connection brought it."""

    number: int
    wanted: int
    reassembly: Reassembly = field(repr=False)


class _Receiving(asyncio.Protocol):
    """One connection by which a member sends."""

    def __init__(self, links: TcpLinks) -> None:
        self._links = links
        self._records = Records()
        self.member = ""
        self.proved = False
        """Whether a frame came that only one who read our welcome could write."""
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
        """End the connection at once."""
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
            raise MalformedFrame(f"a {frame.kind.name} before any greeting")
        self._greeting_timer.cancel()
        self.member, self._session = frame.sender, frame.session
        self._stream = self._links.stream(frame.sender, *parse_pair(frame.body))
        answer = secrets.randbits(64)
        self._key = session_key(self._links.secret, self.member, self._links.name, frame.session, answer)
        self._reported = self._stream.wanted
        self._write(Kind.WELCOME, encode_pair(answer, self._stream.wanted), self._greeting())
        self._links.greeted(self)

    def _refuse(self, frame: Frame) -> None:
        # The other side cannot read this either, and so learns that the secrets differ.
        self.member, self._session = frame.sender, frame.session
        self._links.refused += 1
        self._write(Kind.RESET, b"", self._greeting())
        self._transport.close()

    def _greeting(self) -> bytes:
        return greeting_key(self._links.secret, self._links.name, self.member)

    def _data(self, frame: Frame, key: bytes) -> None:
        if frame.kind is not Kind.DATA or (frame.sender, frame.session) != (self.member, self._session):
            raise MalformedFrame(f"a {frame.kind.name} frame of {frame.sender!r} in another's session")
        frame.check(key)
        self.proved = True
        stream = self._stream = self._links.current(self.member, self._stream)
        if frame.counter > stream.wanted:
            raise MalformedFrame(f"frame {frame.counter} came where {stream.wanted} was next")
        if frame.counter < stream.wanted:
            return  # an earlier connection has brought it meanwhile
        stream.wanted += 1
        self._links.frames_received += 1
        for fragment in parse_fragments(frame.body):
            complete = stream.reassembly.add(None, fragment, 0.0)
            if isinstance(complete, CompleteMessage):
                self._links.on_message(self.member, complete.content)

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
        self, name: str, secret: bytes, options: LinkOptions, on_message: OnMessage, on_state: OnState
    ) -> None:
        self.name = name
        self.sender = name.encode()
        self.secret = secret
        self.options = options
        self.on_message = on_message
        self.on_state = on_state
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
        """Accept connections."""
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(lambda: _Receiving(self), sock=listener)

    def identify(self) -> int:
        """A number for the next message."""
        self._identification += 1
        return self._identification

    def report_wrong_secret(self, name: str, transport: asyncio.Transport) -> None:
        """Somebody with another secret is at the other end."""
        self._authentication_failures.report_wrong_secret(name, transport.get_extra_info("peername"))

    def report_unreadable(self, error: ValueError, transport: asyncio.Transport) -> None:
        """What came from the other end cannot be read."""
        self.refused += 1
        self._authentication_failures.report_unreadable(error, transport.get_extra_info("peername"))

    def greeted(self, connection: _Receiving) -> None:
        """End connections of the same member that have greeted only: that could be a recording."""
        for other in tuple(self.connections):
            if other is not connection and other.member == connection.member and not other.proved:
                other.abort()

    def set_member(self, member: str, address: Address) -> None:
        """Where a member is; what waits for it goes to its new address."""
        self._addresses[member] = address
        link = self._links.get(member)
        if link is not None and link.address != address:
            link.set_address(address)

    def remove_member(self, member: str) -> None:
        """Forget a member that is no more, with what waits for it."""
        self._addresses.pop(member, None)
        self._streams.pop(member, None)
        if (link := self._links.pop(member, None)) is not None:
            task = asyncio.get_running_loop().create_task(link.close())
            self._ending.add(task)
            task.add_done_callback(self._ending.discard)

    def send(self, member: str, payload: bytes) -> bool:
        """Send a message; False where it is refused, since too much waits or the member is unknown."""
        link = self._links.get(member)
        if link is None and (address := self._addresses.get(member)) is not None:
            link = self._links[member] = TcpLink(self, member, address)
        if link is None or not link.send(payload):
            self._dropped += 1
            return False
        self._messages += 1
        return True

    def waiting(self, member: str) -> int:
        """Bytes that wait for a member, or for its word that they came."""
        link = self._links.get(member)
        return 0 if link is None else link.waiting_bytes

    def stream(self, member: str, number: int, first: int) -> _Stream:
        """The stream that a greeting names; nothing changes before it brings a frame."""
        known = self._streams.get(member)
        if known is not None and known.number == number:
            return known
        assembly = Reassembly(timeout=1.0, max_bytes=self.options.reassembly_bytes, max_messages=4)
        return _Stream(number, first, assembly)

    def current(self, member: str, stream: _Stream) -> _Stream:
        """A frame came in that stream, which is the member's from now on, or was already."""
        known = self._streams.get(member)
        if known is None or known.number != stream.number:
            known = self._streams[member] = stream
        return known

    def figures(self) -> dict[str, object]:
        """What an operator may want to know."""
        return {
            "frames_sent": self.frames_sent,
            "frames_received": self.frames_received,
            "messages_sent": self._messages,
            "dropped": self._dropped,
            "refused": self.refused,
            "waiting_bytes": sum(link.waiting_bytes for link in self._links.values()),
            "connections_in": len(self.connections),
            "members": {name: "up" if link.up else "down" for name, link in self._links.items()},
        }

    async def close(self, timeout_seconds: float = 1.0) -> None:
        """End all links, if possible after what waits has gone."""
        self._server.close()
        await asyncio.gather(*(link.close(timeout_seconds) for link in self._links.values()), *self._ending)
        for connection in tuple(self.connections):
            connection.abort()
        while self.connections:  # noqa: ASYNC110
            await asyncio.sleep(0)
