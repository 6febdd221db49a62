"""TCP links: to each member one connection that carries our frames, opened when there is something to send.

A link is a stream of numbered frames that outlives its connections: what was not confirmed is sent again, in
order, over the next one, and the receiver says in its welcome from where, so nothing comes twice while both
sides live. What waits is bounded in bytes; past that a message is refused to its sender. The answers
(welcome, how far frames have come) go back on the same connection.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
import secrets
import socket
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import cast

from hpwsn.routing.fragments import Reassembly, Whole, split_message
from hpwsn.routing.frames import (
    Frame,
    Kind,
    MalformedFrame,
    WrongTag,
    encode_fragment,
    encode_frame,
    encode_pair,
    greeting_key,
    parse_fragments,
    parse_frame,
    parse_pair,
    session_key,
)
from hpwsn.routing.options import LinkOptions
from hpwsn.routing.records import Records, encode_record
from hpwsn.routing.strangers import Strangers
from hpwsn.routing.udp import Address, OnMessage

log = logging.getLogger(__name__)

PIECE = 256 * 1024
BODY = 128 * 1024
"""Bytes past which a frame takes no further message."""
RETRY_FIRST, RETRY_MAX = 0.05, 1.0
GREET_WITHIN = 5.0
UNHEARD_FOR = 10_000
"""Milliseconds after which the system gives up a connection whose other side confirms nothing."""
OnState = Callable[[str, bool], None]


class _Sending(asyncio.Protocol):
    """One connection of a link to a member."""

    def __init__(self, link: TcpLink) -> None:
        self._link = link
        self._records = Records()
        self.session = secrets.randbits(64)
        self.key: bytes | None = None
        self.paused = False
        self.ended = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        _tune(self._transport)
        link = self._link
        key = greeting_key(link.links.secret, link.links.name, link.member)
        self.write(Kind.HELLO, 0, encode_pair(link.stream, link.first), key)
        self._impatience = asyncio.get_running_loop().call_later(GREET_WITHIN, self._transport.abort)

    def write(self, kind: Kind, counter: int, body: bytes, key: bytes) -> None:
        """Send one frame."""
        frame = encode_frame(kind, self._link.links.sender, self.session, counter, body, key)
        self._transport.write(encode_record(frame))

    def data_received(self, data: bytes) -> None:
        try:
            for record in self._records.feed(data):
                frame = parse_frame(record)
                self._take(frame)
        except WrongTag:
            self._link.links.stranger(self._link.member, self._transport)
            self._transport.abort()
        except ValueError as error:
            log.warning("the link to %s ends: %s", self._link.member, error)
            self._transport.abort()

    def _take(self, frame: Frame) -> None:
        link = self._link
        if frame.kind is Kind.FEEDBACK and self.key is not None:
            frame.check(self.key)
            link.confirmed(parse_pair(frame.body)[0])
            return
        frame.check(greeting_key(link.links.secret, link.member, link.links.name))
        if frame.session != self.session or frame.kind is not Kind.WELCOME or self.key is not None:
            raise MalformedFrame(f"an unexpected {frame.kind.name}")
        self._impatience.cancel()
        answer, wanted = parse_pair(frame.body)
        self.key = session_key(link.links.secret, link.links.name, link.member, self.session, answer)
        link.welcomed(self, wanted)

    def pause_writing(self) -> None:
        self.paused = True

    def resume_writing(self) -> None:
        self.paused = False
        self._link.pump()

    def connection_lost(self, exc: Exception | None) -> None:
        self._impatience.cancel()
        if not self.ended.done():
            self.ended.set_result(None)

    def abort(self) -> None:
        """End the connection at once."""
        self._transport.abort()


class TcpLink:
    """What goes to one member, whichever connection carries it."""

    def __init__(self, links: TcpLinks, member: str, address: Address) -> None:
        self.links = links
        self.member = member
        self.address = address
        self.stream = secrets.randbits(63)
        self.first = 0
        self.up = False
        self.waiting_bytes = 0
        self.reconnects = 0
        self._bodies: deque[bytes] = deque()
        self._next = 0  # the number of the next frame to be written to the connection
        self._joining: list[bytes] = []
        self._joined = 0
        self._flushing = False
        self._open: _Sending | None = None
        self._connection: _Sending | None = None
        """The open connection, once the member has answered on it."""
        self._told: bool | None = None
        self._task = asyncio.get_running_loop().create_task(self._run())

    def send(self, payload: bytes) -> bool:
        """Take a message; False where too much waits already."""
        if self.waiting_bytes + len(payload) > self.links.options.queue_bytes and self.waiting_bytes:
            return False
        for fragment in split_message(self.links.identify(), payload, PIECE):
            entry = encode_fragment(fragment)
            self._joining.append(entry)
            self._joined += len(entry)
            self.waiting_bytes += len(entry)
            if self._joined >= BODY:
                self._close_body()
        if not self._flushing:
            self._flushing = True
            asyncio.get_running_loop().call_soon(self._flush)
        return True

    def _flush(self) -> None:
        self._flushing = False
        self._close_body()
        self.pump()

    def _close_body(self) -> None:
        if self._joining:
            self._bodies.append(b"".join(self._joining))
            self._joining, self._joined = [], 0

    def pump(self) -> None:
        """Write what the connection takes."""
        connection = self._connection
        if connection is None or connection.key is None:
            return
        while not connection.paused and self._next < self.first + len(self._bodies):
            body = self._bodies[self._next - self.first]
            connection.write(Kind.DATA, self._next, body, connection.key)
            self.links.frames_sent += 1
            self._next += 1

    def confirmed(self, upto: int) -> None:
        """The member has all frames before this one."""
        while self.first < upto and self._bodies:
            self.waiting_bytes -= len(self._bodies.popleft())
            self.first += 1

    def welcomed(self, connection: _Sending, wanted: int) -> None:
        """A connection is ready; the member wants to go on from that frame."""
        if not self.first <= wanted <= self.first + len(self._bodies):
            raise MalformedFrame(f"frame {wanted} is wanted, and there is {self.first} and later")
        self.confirmed(wanted)
        self._next = wanted
        self._connection = connection
        self.pump()
        self._tell(True)

    async def _run(self) -> None:
        pause = RETRY_FIRST
        while True:
            if await self._connect():
                pause = RETRY_FIRST
            self._tell(False)
            await asyncio.sleep(pause * random.uniform(0.8, 1.2))
            pause = min(2 * pause, RETRY_MAX)

    async def _connect(self) -> bool:
        """Live through one connection; whether the member answered."""
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(GREET_WITHIN):
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

    def _tell(self, up: bool) -> None:
        self.up = up
        if self._told is not up:
            self._told = up
            self.links.on_state(self.member, up)

    def move(self, address: Address) -> None:
        """The member is elsewhere now."""
        self.address = address
        if self._connection is not None:
            self._connection.abort()

    async def close(self, within: float = 0.0) -> int:
        """Stop, if possible after what waits was confirmed; how many bytes were left."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(within):
                while self.waiting_bytes and self.up:  # noqa: ASYNC110
                    await asyncio.sleep(0.005)
        self._task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._task
        if self._open is not None:
            await self._open.ended
        return self.waiting_bytes


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
        self._member = ""
        self._key: bytes | None = None
        self._stream: _Stream

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        _tune(self._transport)
        self._links.connections.add(self)
        self._impatience = asyncio.get_running_loop().call_later(GREET_WITHIN, self._transport.abort)

    def connection_lost(self, exc: Exception | None) -> None:
        self._impatience.cancel()
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
            self._links.stranger(frame.sender, self._transport)
            self._refuse(frame)
        except ValueError as error:
            log.warning("a link from %s ends: %s", self._member or "somebody", error)
            self._links.refused += 1
            self._transport.close()
        else:
            self._report()

    def _greeted(self, frame: Frame) -> None:
        frame.check(greeting_key(self._links.secret, frame.sender, self._links.name))
        if frame.kind is not Kind.HELLO:
            raise MalformedFrame(f"a {frame.kind.name} before any greeting")
        self._impatience.cancel()
        self._member, self._session = frame.sender, frame.session
        self._stream = self._links.stream(frame.sender, *parse_pair(frame.body))
        answer = secrets.randbits(64)
        self._key = session_key(self._links.secret, self._member, self._links.name, frame.session, answer)
        self._reported = self._stream.wanted
        self._write(Kind.WELCOME, encode_pair(answer, self._stream.wanted), self._greeting())

    def _refuse(self, frame: Frame) -> None:
        # The other side cannot read this either, and so learns that the secrets differ.
        self._member, self._session = frame.sender, frame.session
        self._links.refused += 1
        self._write(Kind.RESET, b"", self._greeting())
        self._transport.close()

    def _greeting(self) -> bytes:
        return greeting_key(self._links.secret, self._links.name, self._member)

    def _data(self, frame: Frame, key: bytes) -> None:
        if frame.kind is not Kind.DATA or (frame.sender, frame.session) != (self._member, self._session):
            raise MalformedFrame(f"a {frame.kind.name} frame of {frame.sender!r} in another's session")
        frame.check(key)
        stream = self._stream = self._links.current(self._member, self._stream)
        if frame.counter > stream.wanted:
            raise MalformedFrame(f"frame {frame.counter} came where {stream.wanted} was next")
        if frame.counter < stream.wanted:
            return  # an earlier connection has brought it meanwhile
        stream.wanted += 1
        self._links.frames_received += 1
        for fragment in parse_fragments(frame.body):
            whole = stream.reassembly.add(None, fragment, 0.0)
            if isinstance(whole, Whole):
                self._links.on_message(self._member, whole.content)

    def _report(self) -> None:
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
        self._strangers = Strangers(asyncio.get_running_loop().time)

    async def start(self, listener: socket.socket) -> None:
        """Accept connections."""
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(lambda: _Receiving(self), sock=listener)

    def identify(self) -> int:
        """A number for the next message."""
        self._identification += 1
        return self._identification

    def stranger(self, name: str, transport: asyncio.Transport) -> None:
        """Somebody with another secret is at the other end."""
        self._strangers.note(name, transport.get_extra_info("peername"))

    def set_member(self, member: str, address: Address) -> None:
        """Where a member is; what waits for it goes to its new address."""
        self._addresses[member] = address
        link = self._links.get(member)
        if link is not None and link.address != address:
            link.move(address)

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
        assembly = Reassembly(timeout=1.0, most_bytes=self.options.reassembly_bytes, most_messages=4)
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

    async def close(self, within: float = 1.0) -> None:
        """End all links, if possible after what waits has gone."""
        self._server.close()
        await asyncio.gather(*(link.close(within) for link in self._links.values()), *self._ending)
        for connection in tuple(self.connections):
            connection.abort()
        while self.connections:  # noqa: ASYNC110
            await asyncio.sleep(0)


def _tune(transport: asyncio.Transport) -> None:
    own = transport.get_extra_info("socket")
    with contextlib.suppress(OSError):
        own.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        own.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        own.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, UNHEARD_FOR)
