"""The HTTP lane: ordinary POSTs to the broker without aiohttp, in a Protocol of callbacks.

Every connection of the port starts here. At the first request that is not ordinary
(hpwsn.door.listener.request_head), the lane answers all earlier requests and then hands the transport, with
the unread bytes, to aiohttp for the rest of the connection. Ordinary Notifies go through the Notify lane;
those of one read are one batch with one outcome. Any other body goes alone to the full SOAP door, so that
the requests of a connection take effect in their order. Answers keep that order. The number and the bytes of
unanswered requests are bounded; beyond that, reading pauses.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable, Sequence
from time import perf_counter
from typing import cast

from hpwsn.background import switch_sooner
from hpwsn.door.listener.http_exchange import BrokerDoor, Post, Responses
from hpwsn.door.listener.http_statistics import HttpStatistics
from hpwsn.door.listener.pending_requests import PendingRequests
from hpwsn.door.listener.request_head import Head, Heads, may_be_ordinary
from hpwsn.notification import LARGE

MOST_UNANSWERED = 256
"""Maximum number of unanswered requests of one connection."""
MOST_BYTES = 4 << 20
"""Maximum bytes of unanswered requests of one connection."""
TOGETHER = 32
"""Maximum number of requests in a batch; the requests after a refused one are offered again."""
HEAD_READS = 3
"""Reads after which an incomplete head goes to the full lane."""
IDLE_FOR = 3630.0
"""Idle timeout between requests in seconds, as in the full lane."""
LINGER = 10.0
"""Seconds for which a closing connection lets the client read its last answer, as in the full lane."""
DRAIN_LINGER = 1.0
"""The same while the node is stopping."""

_END = b"\r\n\r\n"

Offer = Callable[[Sequence[bytes], Callable[[bool], None], Sequence[str | None]], int]
"""Accepts bodies in order and returns how many it took; 0 if the first needs the full lane.

The last argument has the trace of each body in the HTTP headers, or nothing if no body has one.

All bodies taken are stored, or none. The callback is called later, never during the call, with the outcome.
"""


class Lanes:
    """All connections in the lane, and their shared state."""

    def __init__(
        self,
        soap: BrokerDoor,
        offer: Offer,
        *,
        heads: Heads,
        arrive_within: float,
        hand_over: Callable[[asyncio.Transport, bytes], None],
        statistics: HttpStatistics,
    ) -> None:
        self.soap = soap
        self.statistics = statistics
        self.offer = offer
        self.heads = heads
        self.responses = Responses()
        self.hand_over = hand_over
        self.loop = asyncio.get_running_loop()
        self.draining = False
        self._arrive_within = arrive_within
        self._open: set[Lane] = set()
        self._told: list[Lane] = []
        self._empty = asyncio.Event()
        self._timer: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        return len(self._open)

    def __call__(self) -> Lane:
        """The protocol for a connection that has just been accepted."""
        return Lane(self)

    def entered(self, lane: Lane) -> None:
        """Add a connection to the lane."""
        self._open.add(lane)
        if self._timer is None:
            self._sweep_later()

    def left(self, lane: Lane) -> None:
        """Remove a connection that has ended or moved to the full lane."""
        self._open.discard(lane)
        if not self._open:
            self._empty.set()

    def _sweep_later(self) -> None:
        # One timer for all connections is cheaper than one timer per request.
        pause = min(1.0, self._arrive_within / 4)
        self._timer = self.loop.call_later(pause, self._sweep)

    def _sweep(self) -> None:
        now = self.loop.time()
        for lane in list(self._open):
            lane.check_time(now, self._arrive_within)
        self._timer = None
        if self._open:
            self._sweep_later()

    def proceed_soon(self, lane: Lane) -> None:
        """Schedule `proceed` of a connection for the end of this loop iteration."""
        if not self._told:
            self.loop.call_soon(self._proceed)
        self._told.append(lane)

    def _proceed(self) -> None:
        told, self._told = self._told, []
        for lane in told:
            lane.proceed()

    async def close(self, within: float) -> None:
        """Answer pending requests for at most `within` seconds, then close every connection."""
        self.draining = True
        for lane in list(self._open):
            lane.drain()
        if self._open:
            self._empty.clear()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._empty.wait(), within)
        for lane in list(self._open):
            lane.abort()
        if self._timer is not None:
            self._timer.cancel()


class Lane(asyncio.Protocol):
    """One connection."""

    def __init__(self, lanes: Lanes) -> None:
        self.responses = lanes.responses
        self._lanes = lanes
        self._find_head = lanes.heads.find
        self._offer = lanes.offer
        self._time = lanes.loop.time
        self._transport: asyncio.Transport
        self._unanswered: deque[PendingRequests] = deque()
        self._count = 0
        self._bytes = 0
        self._full = 0
        self._task: asyncio.Task[None] | None = None
        self._buffer = b""
        self._reads = 0
        self._traced = False
        """Whether a request of this connection had a trace."""
        self._usual: tuple[bytes, Head] | None = None
        """The bytes and the meaning of the last head; most heads are equal to it."""
        self._head: Head | None = None
        self._parts: list[bytes] = []
        self._missing = 0
        self._since = 0.0
        self._begun = False
        self._paused = False
        self._writing_paused = False
        self._stuck_since = 0.0
        self._proceeding = False
        self._at_end = False
        self._leaving = False
        self._ending = False
        self._lost = False

    # What the loop calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Enter the lane."""
        self._transport = cast(asyncio.Transport, transport)
        self._since = self._time()
        self._lanes.entered(self)

    def connection_lost(self, error: Exception | None) -> None:
        """Drop incomplete requests; requests in progress finish without an answer."""
        self._ending = self._lost = True
        self._buffer = b""
        self._parts.clear()
        self._lanes.left(self)

    def pause_writing(self) -> None:
        """Stop to read requests while the client does not read its answers."""
        self._writing_paused = True
        self._stuck_since = self._time()
        self._pause()

    def eof_received(self) -> bool:
        """The client has half-closed and may wait for answers; TLS does not support that."""
        self._at_end = True
        return bool(self._unanswered) and self._transport.can_write_eof()

    def resume_writing(self) -> None:
        """Continue: the client reads its answers again."""
        self._writing_paused = False
        self.go_on()

    def data_received(self, data: bytes) -> None:
        """Process the requests that are now complete."""
        if self._ending:
            return
        if self._paused:
            self._buffer += data
        elif self._missing:
            self._continue_body(data)
        else:
            self._consume(self._buffer + data if self._buffer else data)

    # Bytes to requests

    def _continue_body(self, data: bytes) -> None:
        missing, head = self._missing, self._head
        self._parts.append(data[:missing])
        if len(data) < missing:
            self._missing -= len(data)
            if missing >= LARGE:
                switch_sooner()
            return
        parts = self._parts
        self._parts, self._missing, self._head = [], 0, None
        assert head is not None
        if head.length < LARGE:
            self._begin([head], [b"".join(parts)])
        else:
            self._begin_full(PendingRequests(self, [head], [b""], parts=parts))
        self._consume(data[missing:])

    def _consume(self, data: bytes) -> None:
        at, size = 0, len(data)
        while at < size and not self._ending:
            if self._is_full():
                self._buffer = data[at:]
                self._pause()
                return
            heads, bodies, ends = self._cut(data, at)
            if not heads:
                self._await_rest(data[at:])
                return
            at = ends[self._begin(heads, bodies) - 1]
        self._buffer = b""
        self._reads = 0

    def _cut(self, data: bytes, at: int) -> tuple[list[Head], list[bytes], list[int]]:
        """The next complete, ordinary requests, and the position where each ends."""
        heads: list[Head] = []
        bodies: list[bytes] = []
        ends: list[int] = []
        size, room = len(data), MOST_BYTES - self._bytes
        most = min(TOGETHER, MOST_UNANSWERED - self._count)
        usual = self._usual
        while len(heads) < most and room >= 0:
            if usual is None or not data.startswith(usual[0], at):
                usual = self._read_head(data, at)
                if usual is None:
                    break
                self._usual = usual
            begin, head = at + len(usual[0]), usual[1]
            at = begin + head.length
            if at > size:
                break
            heads.append(head)
            bodies.append(data[begin:at])
            ends.append(at)
            room -= head.length
            if head.close:
                break
        return heads, bodies, ends

    def _read_head(self, data: bytes, at: int) -> tuple[bytes, Head] | None:
        end = data.find(_END, at)
        head = self._find_head(data[at:end]) if end >= 0 else None
        if head is None:
            return None
        if head.trace is not None:
            self._traced = True
        return data[at : end + len(_END)], head

    def _await_rest(self, data: bytes) -> None:
        """Wait for the rest of an incomplete request, or hand over one that is not ordinary."""
        found = self._read_head(data, 0)
        if found is not None:
            whole, head = found
            self._await_body(head, data[len(whole) :], len(whole) + head.length - len(data))
        elif _END in data:
            self._leave(data)
        else:
            self._await_head(data)

    def _await_head(self, data: bytes) -> None:
        self._reads += 1
        if self._reads >= HEAD_READS or not may_be_ordinary(data):
            self._leave(data)
            return
        if self._reads == 1:
            self._since = self._time()
        self._buffer = data

    def _await_body(self, head: Head, data: bytes, missing: int) -> None:
        self._buffer, self._reads, self._begun = b"", 0, True
        self._head, self._parts, self._missing = head, [data], missing
        self._since = self._time()

    # Requests to answers

    def _begin(self, heads: list[Head], bodies: list[bytes]) -> int:
        """Start the first request and those in its batch; return their number."""
        self._begun = True
        pending = PendingRequests(self, heads, bodies)
        traces = [head.trace for head in heads] if self._traced else ()
        taken = 0 if self._full else self._offer(bodies, pending.stored, traces)
        full, taken = not taken, taken or 1
        if taken < len(bodies):
            pending.heads, pending.bodies = heads[:taken], bodies[:taken]
        if full:
            self._begin_full(pending)
        else:
            self._enter(pending)
        return taken

    def _enter(self, pending: PendingRequests) -> None:
        self._unanswered.append(pending)
        self._count += len(pending.heads)
        self._bytes += pending.size
        if pending.heads[-1].close:
            self._ending = True

    def _begin_full(self, pending: PendingRequests) -> None:
        """Start a request that goes to the full SOAP door."""
        self._enter(pending)
        self.needs_full(pending)
        self.proceed()

    def needs_full(self, pending: PendingRequests) -> None:
        """Send these requests to the full SOAP door, one by one in their order."""
        self._full += len(pending.heads)
        pending.full = True
        if len(pending.heads) > 1:
            self._unanswered = deque(
                one for each in self._unanswered for one in (each.singly() if each is pending else [each])
            )

    def proceed_soon(self) -> None:
        """Schedule `proceed`, so that many outcomes in one loop iteration cause one write."""
        if not self._proceeding:
            self._proceeding = True
            self._lanes.proceed_soon(self)

    def proceed(self) -> None:
        """Write the answers that are next in order, and start the next full request."""
        self._proceeding = False
        answers, waiting = [], self._unanswered
        now = perf_counter()
        while waiting and (reply := waiting[0].reply) is not None:
            answers.append(reply)
            pending = waiting.popleft()
            if not pending.full:
                self._lanes.statistics.accepted(now - pending.since, len(pending.heads))
            self._count -= len(pending.heads)
            self._bytes -= pending.size
        if answers and not self._transport.is_closing():
            self._transport.write(answers[0] if len(answers) == 1 else b"".join(answers))
        if self._lost:
            return
        if not waiting:
            self._all_answered()
        elif self._full and waiting[0].full and self._task is None and self._all_settled():
            self._task = self._lanes.loop.create_task(self._answer(waiting[0]))
        if self._paused:
            self.go_on()

    def _all_settled(self) -> bool:
        """Whether the outcome of every request in the Notify lane is known."""
        return all(other.full or other.reply is not None for other in self._unanswered)

    async def _answer(self, request: PendingRequests) -> None:
        head = request.heads[0]
        post = Post(await request.body(), head.charset, head.hint, trace=head.trace)
        if any(not other.full for other in self._unanswered):
            # A retry would reorder it after later requests without the client knowing.
            reply = self._lanes.soap.overtaken(post)
        else:
            reply = await self._lanes.soap.answer_broker(post)
        self._task = None
        self._full -= 1
        request.reply = self.responses.encode(reply, head.close)
        self._lanes.statistics.answered(post.path, reply.status, perf_counter() - request.since)
        self.proceed()
        if reply.tell is not None:
            await reply.tell(not self._transport.is_closing())

    def _all_answered(self) -> None:
        if self._transport.is_closing():
            return
        self._since = self._time()
        draining = self._lanes.draining and not self._missing
        if self._at_end and (self._leaving or not self._buffer):
            # aiohttp would not see the end of the stream, so close here.
            self._end(LINGER)
        elif self._leaving and not draining:
            self._hand_over()
        elif self._ending or draining:
            self._end(DRAIN_LINGER if draining else LINGER)

    def _end(self, within: float) -> None:
        """Close after the last answer, when the client has read it or after `within` seconds.

        A close with unread requests in the socket would reset the connection and lose answers in flight.
        """
        self._ending = True
        if not self._transport.can_write_eof() or self._at_end:
            self._transport.close()
            return
        self._transport.write_eof()
        if self._paused:
            self._paused = False
            self._transport.resume_reading()
        self._lanes.loop.call_later(within, self._transport.abort)

    # Bounds

    def _is_full(self) -> bool:
        return bool(
            self._full
            or self._writing_paused
            or self._lanes.draining
            or self._bytes > MOST_BYTES
            or self._count >= MOST_UNANSWERED
        )

    def _pause(self) -> None:
        if not self._paused and not self._transport.is_closing():
            self._paused = True
            self._transport.pause_reading()

    def go_on(self) -> None:
        """Resume reading, if no limit prevents it."""
        if self._leaving or self._ending or not self._paused or self._is_full():
            return
        self._paused = False
        self._transport.resume_reading()
        data, self._buffer = self._buffer, b""
        if self._missing:
            self._continue_body(data)
        elif data:
            self._consume(data)

    def check_time(self, now: float, arrive_within: float) -> None:
        """Close a connection whose request is late, with an answer if its head is complete.

        A client that does not read its answers gets the same time as for a request.
        """
        waited = now - self._since
        if self._writing_paused and now - self._stuck_since > arrive_within:
            self.abort()
            return
        if self._unanswered or self._paused or self._ending:
            return
        if self._missing and waited > arrive_within:
            self._refuse_late()
        elif waited > arrive_within and (self._buffer or not self._begun):
            self.abort()
        elif waited > IDLE_FOR:
            self._transport.close()

    def _refuse_late(self) -> None:
        assert self._head is not None
        reply = self._lanes.soap.too_late(self._head.hint)
        self._ending = True
        self._transport.write(self.responses.encode(reply, close=False))
        # Read and drop further bytes: an immediate close could reset the connection and lose the answer.
        self._lanes.loop.call_later(LINGER, self._transport.close)

    # Ends

    def _leave(self, data: bytes) -> None:
        self._buffer, self._leaving = data, True
        if self._unanswered:
            self._pause()
        else:
            self._hand_over()

    def _hand_over(self) -> None:
        self._lanes.left(self)
        self._ending = True
        if self._paused:
            self._transport.resume_reading()
        self._lanes.hand_over(self._transport, self._buffer)
        self._buffer = b""

    def drain(self) -> None:
        """Close as soon as the pending requests are answered."""
        if not self._unanswered and not self._missing:
            self._ending = True
            self._transport.close()

    def abort(self) -> None:
        """Close at once."""
        self._ending = True
        self._transport.abort()
