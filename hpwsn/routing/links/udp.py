"""UDP links: one socket for all members of the cluster, with pacing, authentication and sessions.

This node has a session to each member, which starts with a greeting (hpwsn.routing.wire.frames). Messages
before the answer are queued, in order and up to a limit. Several small messages share a datagram, and large
ones are split. Lost datagrams are not repeated; messages that must arrive use TCP. Frames with a wrong tag,
an unknown session or a used counter are dropped and counted.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import socket
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from hpwsn.notification import LARGE
from hpwsn.routing.links.authentication_failures import AuthenticationFailures
from hpwsn.routing.links.link_traffic import LinkTraffic
from hpwsn.routing.links.udp_sending import GREETING_INTERVAL, Address, LinkOptions, OutgoingSession
from hpwsn.routing.wire.fragments import LAST_INDEX, CompleteMessage, Reassembly, split_message
from hpwsn.routing.wire.frames import (
    ENTRY_OVERHEAD,
    Frame,
    Kind,
    MalformedFrame,
    ReplayWindow,
    WrongTag,
    encode_fragment,
    encode_frame,
    encode_pair,
    greeting_key,
    overhead,
    parse_fragments,
    parse_frame,
    parse_pair,
    session_key,
)
from hpwsn.routing.wire.pacing import SMALLEST_WINDOW, cost

log = logging.getLogger(__name__)

FEEDBACK_DELAY = 0.005
FEEDBACK_BYTES = 64 * 1024
ACTIVE_SECONDS = 5.0
FORGET_SECONDS = 60.0
OnMessage = Callable[[str, bytes], None]


@dataclass(slots=True)
class _Session:
    """A session in which a member sends to this node."""

    number: int
    answer: int
    key: bytes
    replay: ReplayWindow = field(default_factory=ReplayWindow)
    received: int = 0
    unreported: int = 0
    report: asyncio.TimerHandle | None = None
    last_received: float = 0.0


@dataclass(slots=True)
class _Incoming:
    """The sessions of a member that sends: the current one, and a requested one that is not used yet."""

    current: _Session | None = None
    requested: _Session | None = None
    reset_at: float = 0.0


class UdpLinks(asyncio.DatagramProtocol):
    """All UDP links of a node."""

    def __init__(self, name: str, secret: bytes, options: LinkOptions, on_message: OnMessage) -> None:
        self.name = name
        self.secret = secret
        self.options = options
        self.loop = asyncio.get_running_loop()
        self.room = options.fragment_size - overhead(name)
        pieces = min(LAST_INDEX + 1, options.queue_bytes // options.fragment_size)
        self.longest = min(pieces * (self.room - ENTRY_OVERHEAD), LARGE)
        """The bytes of the longest message; longer ones use TCP, since one lost datagram would cost all."""
        self.stalls = 0
        self.family = socket.AF_INET
        self._sender = name.encode()
        self._on_message = on_message
        self._authentication_failures = AuthenticationFailures(self.loop.time)
        self._outgoing: dict[str, OutgoingSession] = {}
        self._incoming: dict[str, _Incoming] = {}
        self._reassembly = Reassembly(
            timeout=options.reassembly_timeout,
            max_bytes=options.reassembly_bytes,
            max_messages=options.reassembly_messages,
        )
        self._identification = secrets.randbits(48)
        self._buffer = 0
        self._feedback_bytes = SMALLEST_WINDOW // 4
        self._sent = self._received = self._messages_sent = self._messages_received = 0
        self._dropped = self._refused = self._replayed = 0

    async def start(self, host: str, port: int) -> None:
        """Bind the port."""
        transport, _ = await self.loop.create_datagram_endpoint(lambda: self, local_addr=(host, port))
        self._transport = transport
        own: socket.socket = transport.get_extra_info("socket")
        self.family = own.family
        for option in (socket.SO_RCVBUF, socket.SO_SNDBUF):
            own.setsockopt(socket.SOL_SOCKET, option, self.options.buffer_bytes)
        self._buffer = own.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF)

    def set_member(self, member: str, address: Address) -> None:
        """Set the address of a member; a new address starts a new session."""
        known = self._outgoing.get(member)
        if known is None:
            self._outgoing[member] = OutgoingSession(self, member, address)
        elif known.address != address:
            known.address = address
            known.reset()

    def remove_member(self, member: str) -> None:
        """Remove a member and its queue; frames that it still sends are accepted."""
        if (known := self._outgoing.pop(member, None)) is not None:
            self._dropped += known.close()

    def send(self, member: str, payload: bytes) -> bool:
        """Send a message; False if the queue is full or the member is unknown."""
        outgoing = self._outgoing.get(member)
        self._identification += 1
        fragments = split_message(self._identification, payload, self.room - ENTRY_OVERHEAD)
        entries = list(map(encode_fragment, fragments))
        if outgoing is None or not outgoing.send(entries, sum(map(len, entries))):
            self._dropped += 1
            return False
        self._messages_sent += 1
        return True

    def waiting(self, member: str) -> int:
        """Return the bytes in the queue for a member."""
        outgoing = self._outgoing.get(member)
        return 0 if outgoing is None else outgoing.waiting_bytes

    def traffic(self) -> Iterator[tuple[str, LinkTraffic]]:
        """Yield each member to which something was sent, with the counters of its link."""
        for member, outgoing in self._outgoing.items():
            if outgoing.messages:
                yield member, outgoing.traffic()

    def greeting_to(self, member: str) -> bytes:
        """Return the key of this node's greetings to a member."""
        return greeting_key(self.secret, self.name, member)

    def write(self, kind: Kind, session: int, counter: int, body: bytes, key: bytes, address: Address) -> int:
        """Send one frame; return its size."""
        data = encode_frame(kind, self._sender, session, counter, body, key)
        self._transport.sendto(data, address)
        self._sent += 1
        return len(data)

    def datagram_received(self, data: bytes, addr: Address) -> None:
        """Handle a datagram from any sender."""
        try:
            frame = parse_frame(data)
            self._take(frame, addr)
        except MalformedFrame:
            self._refused += 1
        except WrongTag:
            self._refused += 1
            self._authentication_failures.report_wrong_secret(frame.sender, addr)

    def error_received(self, exc: Exception) -> None:
        """Ignore errors of the network: pacing detects that nothing arrives."""

    def _take(self, frame: Frame, address: Address) -> None:
        if frame.kind is Kind.DATA:
            self._data(frame, address)
        elif frame.kind is Kind.FEEDBACK:
            if (outgoing := self._outgoing.get(frame.sender)) is not None:
                outgoing.feedback(frame)
        else:
            frame.check(greeting_key(self.secret, frame.sender, self.name))
            self._greeting(frame, address)

    def _greeting(self, frame: Frame, address: Address) -> None:
        outgoing = self._outgoing.get(frame.sender)
        if frame.kind is Kind.HELLO:
            self._welcome(frame, address)
        elif outgoing is not None and frame.session == outgoing.session:
            if frame.kind is Kind.WELCOME:
                outgoing.welcomed(*parse_pair(frame.body))
            else:
                outgoing.reset()

    def _welcome(self, frame: Frame, address: Address) -> None:
        if frame.sender not in self._incoming:
            self._forget_inactive()
        incoming = self._incoming.setdefault(frame.sender, _Incoming())
        session = next(
            (
                s
                for s in (incoming.current, incoming.requested)
                if s is not None and s.number == frame.session
            ),
            None,
        )
        if session is None:
            answer = secrets.randbits(64)
            key = session_key(self.secret, frame.sender, self.name, frame.session, answer)
            session = incoming.requested = _Session(
                frame.session, answer, key, last_received=self.loop.time()
            )
        body = encode_pair(session.answer, self._window())
        self.write(Kind.WELCOME, frame.session, 0, body, self.greeting_to(frame.sender), address)

    def _forget_inactive(self) -> None:
        """Forget senders that are not members and have been silent for FORGET_SECONDS."""
        since = self.loop.time() - FORGET_SECONDS
        for name, incoming in list(self._incoming.items()):
            sessions = (incoming.current, incoming.requested)
            if name not in self._outgoing and all(s is None or s.last_received < since for s in sessions):
                self._cancel_feedback(self._incoming.pop(name))

    @staticmethod
    def _cancel_feedback(incoming: _Incoming) -> None:
        for session in (incoming.current, incoming.requested):
            if session is not None and session.report is not None:
                session.report.cancel()

    def _data(self, frame: Frame, address: Address) -> None:
        session = self._session(frame, address)
        if session is None:
            return
        if not session.replay.take(frame.counter):
            self._replayed += 1
            return
        self._received += 1
        session.received += 1
        now = session.last_received = self.loop.time()
        self._schedule_feedback(session, cost(len(frame.signed)), address)
        for fragment in parse_fragments(frame.body):
            complete = self._reassembly.add((frame.sender, session.number), fragment, now)
            if isinstance(complete, CompleteMessage):
                self._messages_received += 1
                self._on_message(frame.sender, complete.content)

    def _session(self, frame: Frame, address: Address) -> _Session | None:
        incoming = self._incoming.setdefault(frame.sender, _Incoming()) if self._knows(frame.sender) else None
        if incoming is None:
            return None
        current, requested = incoming.current, incoming.requested
        if current is not None and frame.session == current.number:
            frame.check(current.key)
            return current
        if requested is not None and frame.session == requested.number:
            frame.check(requested.key)
            incoming.current, incoming.requested = requested, None
            return requested
        self._reset(incoming, frame, address)
        return None

    def _knows(self, sender: str) -> bool:
        return sender in self._incoming or sender in self._outgoing

    def _reset(self, incoming: _Incoming, frame: Frame, address: Address) -> None:
        self._refused += 1
        now = self.loop.time()
        if now < incoming.reset_at:
            return
        incoming.reset_at = now + GREETING_INTERVAL / 2
        self.write(Kind.RESET, frame.session, 0, b"", self.greeting_to(frame.sender), address)

    def _schedule_feedback(self, session: _Session, size: int, address: Address) -> None:
        session.unreported += size
        if session.unreported >= self._feedback_bytes:
            self._send_feedback(session, address)
        elif session.report is None:
            session.report = self.loop.call_later(FEEDBACK_DELAY, self._send_feedback, session, address)

    def _send_feedback(self, session: _Session, address: Address) -> None:
        if session.report is not None:
            session.report.cancel()
            session.report = None
        session.unreported = 0
        window = self._window()
        self._feedback_bytes = min(window // 4, FEEDBACK_BYTES)
        body = encode_pair(session.replay.highest, window)
        self.write(Kind.FEEDBACK, session.number, session.received, body, session.key, address)

    def _window(self) -> int:
        since = self.loop.time() - ACTIVE_SECONDS
        active = sum(
            1
            for incoming in self._incoming.values()
            for session in (incoming.requested or incoming.current,)
            if session is not None and session.last_received > since
        )
        return max(self._buffer // 2 // max(active, 2), SMALLEST_WINDOW)

    def figures(self) -> dict[str, int]:
        """Return the counters for /status and /metrics."""
        assembly = self._reassembly
        return {
            "datagrams_sent": self._sent,
            "datagrams_received": self._received,
            "messages_sent": self._messages_sent,
            "messages_received": self._messages_received,
            "dropped": self._dropped,
            "refused": self._refused,
            "replayed": self._replayed,
            "stalls": self.stalls,
            "senders": len(self._incoming),
            "waiting_bytes": sum(each.waiting_bytes for each in self._outgoing.values()),
            "incomplete": len(assembly),
            "incomplete_bytes": assembly.bytes,
            "timed_out": assembly.timed_out,
            "crowded_out": assembly.crowded_out,
            "duplicate_fragments": assembly.duplicates,
        }

    def close(self) -> None:
        """Close the socket; queued messages are lost."""
        for outgoing in self._outgoing.values():
            outgoing.close()
        for incoming in self._incoming.values():
            self._cancel_feedback(incoming)
        self._transport.close()
