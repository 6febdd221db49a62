"""The sending side of a UDP link: the session to one member, its pacing and its queue.

A session starts with a greeting that is repeated until it is answered. Messages before the answer are
queued, in order and up to a limit. Several small messages share a datagram. Without feedback the session
slows down, and after several stalls it starts again. `LinkOptions` has the sizes and times of all links.
"""

from __future__ import annotations

import asyncio
import secrets
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hpwsn.routing.links.link_traffic import LinkTraffic
from hpwsn.routing.wire.frames import Frame, Kind, encode_pair, parse_pair, session_key
from hpwsn.routing.wire.pacing import Pacer

if TYPE_CHECKING:
    from hpwsn.routing.links.udp import UdpLinks


GREETING_INTERVAL = 0.2
STALL_TIMEOUT = 0.5
"""Seconds without feedback that count as a stall; a receiver on a busy machine can take almost as long."""
Address = tuple[Any, ...]


class OutgoingSession:
    """The session to one member, and its queue."""

    def __init__(self, links: UdpLinks, member: str, address: Address) -> None:
        self._links = links
        self.member = member
        self.address = address
        self._waiting: deque[bytes] = deque()
        self.waiting_bytes = 0
        self.messages = self.bytes_sent = 0
        self._flushing = False
        self._timer: asyncio.TimerHandle | None = None
        self._begin()

    def _begin(self) -> None:
        self.session = secrets.randbits(64)
        self._key: bytes | None = None
        self._counter = 0
        self._pacer = Pacer()
        self._greetings = 0

    def send(self, entries: list[bytes], size: int) -> bool:
        """Queue the fragments of a message; False if they do not all fit."""
        if self.waiting_bytes + size > self._links.options.queue_bytes:
            return False
        self._waiting += entries
        self.waiting_bytes += size
        self.messages += 1
        if not self._flushing:
            self._flushing = True
            self._links.loop.call_soon(self.flush)
        return True

    def flush(self) -> None:
        """Send what pacing allows; without a session, greet first."""
        self._flushing = False
        if not self._waiting:
            return
        if self._key is None:
            if self._timer is None:
                self._greet()
            return
        while self._waiting and self._pacer.may_send():
            self._send_one(self._key)
        if self._timer is None:
            self._timer = self._links.loop.call_later(STALL_TIMEOUT, self._stalled)

    def _send_one(self, key: bytes) -> None:
        waiting, room = self._waiting, self._links.room
        parts = [waiting.popleft()]
        size = len(parts[0])
        while waiting and size + len(waiting[0]) <= room:
            parts.append(waiting.popleft())
            size += len(parts[-1])
        self.waiting_bytes -= size
        data = self._links.write(Kind.DATA, self.session, self._counter, b"".join(parts), key, self.address)
        self._pacer.sent(self._counter, data)
        self.bytes_sent += data
        self._counter += 1

    def _greet(self) -> None:
        key = self._links.greeting_to(self.member)
        self._links.write(Kind.HELLO, self.session, 0, encode_pair(0, 0), key, self.address)
        pause = min(GREETING_INTERVAL * 2**self._greetings, 2.0)
        self._greetings = min(self._greetings + 1, 10)
        self._timer = self._links.loop.call_later(pause, self._greet)

    def welcomed(self, answer: int, window: int) -> None:
        """Begin the session, because the member has sent a Welcome."""
        if self._key is not None:
            return
        self._stop_timer()
        links = self._links
        self._key = session_key(links.secret, links.name, self.member, self.session, answer)
        self._pacer.feedback(-1, 0, window)
        self.flush()

    def feedback(self, frame: Frame) -> None:
        """Handle the Feedback of the member."""
        if self._key is None or frame.session != self.session:
            return
        frame.check(self._key)
        highest, allowed = parse_pair(frame.body)
        self._pacer.feedback(highest, frame.counter, allowed)
        self._stop_timer()
        if self._pacer.in_flight:
            self._timer = self._links.loop.call_later(STALL_TIMEOUT, self._stalled)
        self.flush()

    def _stalled(self) -> None:
        self._timer = None
        if not self._pacer.in_flight:
            return
        self._links.stalls += 1
        if self._pacer.stalled():
            self.flush()
        else:
            self.reset()

    def reset(self) -> None:
        """Start a new session; the queue is kept."""
        self._stop_timer()
        self._begin()
        self.flush()

    def traffic(self) -> LinkTraffic:
        """Return the counters of the link; bytes that the member has not confirmed may be lost."""
        unconfirmed = self.waiting_bytes + self._pacer.in_flight
        return LinkTraffic("udp", self._key is not None, self.messages, self.bytes_sent, unconfirmed)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def close(self) -> int:
        """Close the session; return the number of fragments in the queue."""
        self._stop_timer()
        left = len(self._waiting)
        self._waiting.clear()
        self.waiting_bytes = 0
        return left


@dataclass(frozen=True, slots=True)
class LinkOptions:
    """Sizes and times of links, from the settings `routing`."""

    fragment_size: int = 8000
    buffer_bytes: int = 4 << 20
    queue_bytes: int = 64 << 20
    reassembly_timeout: float = 5.0
    reassembly_bytes: int = 64 << 20
    reassembly_messages: int = 1024
