"""The HTTP lane: ordinary POSTs to the broker without aiohttp, in a Protocol of callbacks.

Every connection of the port begins here. At the first request that is not ordinary (hpwsn.door.heads) the
transport goes, with the bytes so far and once all before is answered, to a request handler of aiohttp for the
rest of the connection's life. An ordinary Notify goes through the Notify lane, several at a time; any other
body gets the full SOAP door, alone, so that requests of one connection take effect in their order. Answers
are in order too. What waits is bounded: beyond that, reading pauses.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable
from typing import cast

from hpwsn.door.exchange import BrokerDoor, Post
from hpwsn.door.heads import Head, Heads, may_be_ordinary
from hpwsn.door.response import Responses

MOST_UNANSWERED = 256
"""Requests of one connection that are taken before the first of them is answered."""
MOST_BYTES = 4 << 20
"""Bytes of such requests."""
HEAD_READS = 3
"""Reads after which a head that is still not whole goes to the full lane."""
IDLE_FOR = 3630.0
"""Seconds that a connection may be quiet between requests, as in the full lane."""
LINGER = 10.0
"""Seconds that a connection stays for its last answer to be read, as in the full lane."""
DRAIN_LINGER = 1.0
"""The same while the node is stopping."""

_END = b"\r\n\r\n"

Offer = Callable[[bytes, Callable[[bool], None]], bool]
"""Takes the body of a Notify and whom to tell whether it is stored; False if that is not for here."""


class Lanes:
    """All connections that are in the lane, with what they share."""

    def __init__(
        self,
        soap: BrokerDoor,
        offer: Offer,
        *,
        body_limit: int,
        arrive_within: float,
        hand_over: Callable[[asyncio.Transport, bytes], None],
    ) -> None:
        self.soap = soap
        self.offer = offer
        self.heads = Heads(body_limit)
        self.responses = Responses()
        self.hand_over = hand_over
        self.loop = asyncio.get_running_loop()
        self.draining = False
        self._arrive_within = arrive_within
        self._open: set[Lane] = set()
        self._empty = asyncio.Event()
        self._timer: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        return len(self._open)

    def __call__(self) -> Lane:
        """The protocol for a connection that has just been accepted."""
        return Lane(self)

    def entered(self, lane: Lane) -> None:
        """A connection is in the lane from now on."""
        self._open.add(lane)
        if self._timer is None:
            self._sweep_later()

    def left(self, lane: Lane) -> None:
        """A connection has ended, or is the full lane's."""
        self._open.discard(lane)
        if not self._open:
            self._empty.set()

    def _sweep_later(self) -> None:
        # One timer for all, so that none is set and cancelled with every request.
        pause = min(1.0, self._arrive_within / 4)
        self._timer = self.loop.call_later(pause, self._sweep)

    def _sweep(self) -> None:
        now = self.loop.time()
        for lane in list(self._open):
            lane.check_time(now, self._arrive_within)
        self._timer = None
        if self._open:
            self._sweep_later()

    async def close(self, within: float) -> None:
        """Answer what is under way, within that time, and end every connection."""
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


class _Request:
    """A request on its way; `reply` is what to write, once that is known."""

    __slots__ = ("body", "full", "head", "lane", "reply")

    def __init__(self, lane: Lane, head: Head, body: bytes) -> None:
        self.lane = lane
        self.head = head
        self.body = body
        self.full = False
        self.reply: bytes | None = None

    def stored(self, stored: bool) -> None:
        """What the Notify lane tells: answered, or to be tried again by the full door."""
        if stored:
            self.reply = self.lane.responses.accepted(self.head.close)
        else:
            self.lane.needs_full(self)
        self.lane.proceed_soon()


class Lane(asyncio.Protocol):
    """One connection."""

    def __init__(self, lanes: Lanes) -> None:
        self.responses = lanes.responses
        self._lanes = lanes
        self._find_head = lanes.heads.find
        self._offer = lanes.offer
        self._time = lanes.loop.time
        self._transport: asyncio.Transport
        self._unanswered: deque[_Request] = deque()
        self._bytes = 0
        self._full = 0
        self._task: asyncio.Task[None] | None = None
        self._buffer = b""
        self._reads = 0
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
        """Forget what is not begun; what is published or running goes on without an answer."""
        self._ending = self._lost = True
        self._buffer = b""
        self._parts.clear()
        self._lanes.left(self)

    def pause_writing(self) -> None:
        """The client does not read its answers: take no more from it."""
        self._writing_paused = True
        self._stuck_since = self._time()
        self._pause()

    def eof_received(self) -> bool:
        """The client sends no more, and may still wait for its answers; over TLS there is no such state."""
        self._at_end = True
        return bool(self._unanswered) and self._transport.can_write_eof()

    def resume_writing(self) -> None:
        """It does again."""
        self._writing_paused = False
        self.go_on()

    def data_received(self, data: bytes) -> None:
        """Take the requests that are whole now."""
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
            return
        body = b"".join(self._parts)
        self._parts, self._missing, self._head = [], 0, None
        assert head is not None
        self._begin(head, body)
        self._consume(data[missing:])

    def _consume(self, data: bytes) -> None:
        at, size = 0, len(data)
        while at < size and not self._ending:
            if self._is_full():
                self._buffer = data[at:]
                self._pause()
                return
            end = data.find(_END, at)
            if end < 0:
                self._await_head(data[at:])
                return
            head = self._find_head(data[at:end])
            if head is None:
                self._leave(data[at:])
                return
            at = end + 4 + head.length
            if at > size:
                self._await_body(head, data[end + 4 :], at - size)
                return
            self._begin(head, data[end + 4 : at])
        self._buffer = b""
        self._reads = 0

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

    def _begin(self, head: Head, body: bytes) -> None:
        request = _Request(self, head, body)
        self._begun = True
        self._unanswered.append(request)
        self._bytes += len(body)
        if head.close:
            self._ending = True
        if not self._full and self._offer(body, request.stored):
            return
        self.needs_full(request)
        self.proceed()

    def needs_full(self, request: _Request) -> None:
        """Have the full SOAP door answer a request when its turn comes."""
        request.full = True
        self._full += 1

    def proceed_soon(self) -> None:
        """Proceed at the end of this turn: many are told at once, and their answers go out together."""
        if not self._proceeding:
            self._proceeding = True
            self._lanes.loop.call_soon(self.proceed)

    def proceed(self) -> None:
        """Write the answers whose turn it is, and begin what was waiting for them."""
        self._proceeding = False
        answers, waiting = [], self._unanswered
        while waiting and (reply := waiting[0].reply) is not None:
            answers.append(reply)
            self._bytes -= len(waiting.popleft().body)
        if answers and not self._transport.is_closing():
            self._transport.write(answers[0] if len(answers) == 1 else b"".join(answers))
        if self._lost:
            return
        if waiting and waiting[0].full and self._task is None and self._all_settled():
            self._task = self._lanes.loop.create_task(self._answer(waiting[0]))
        elif not waiting:
            self._all_answered()
        if self._paused:
            self.go_on()

    def _all_settled(self) -> bool:
        """Whether the Notify lane has told what it made of each: some may share the fate of the first."""
        return all(other.full or other.reply is not None for other in self._unanswered)

    async def _answer(self, request: _Request) -> None:
        head = request.head
        post = Post(request.body, head.charset, head.hint)
        if any(not other.full for other in self._unanswered):
            # To try it again would put it behind those, and nobody would know.
            reply = self._lanes.soap.overtaken(post)
        else:
            reply = await self._lanes.soap.answer_broker(post)
        self._task = None
        self._full -= 1
        request.reply = self.responses.encode(reply, head.close)
        self.proceed()
        if reply.tell is not None:
            await reply.tell(not self._transport.is_closing())

    def _all_answered(self) -> None:
        if self._transport.is_closing():
            return
        self._since = self._time()
        draining = self._lanes.draining and not self._missing
        if self._at_end and (self._leaving or not self._buffer):
            # Nobody else would hear that the client sends no more.
            self._end(LINGER)
        elif self._leaving and not draining:
            self._hand_over()
        elif self._ending or draining:
            self._end(DRAIN_LINGER if draining else LINGER)

    def _end(self, within: float) -> None:
        """End after the last answer, once the client has read it, or when it had time enough to do so.

        A close while more requests wait in the system would make it take back the answers on their way.
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
            or len(self._unanswered) >= MOST_UNANSWERED
        )

    def _pause(self) -> None:
        if not self._paused and not self._transport.is_closing():
            self._paused = True
            self._transport.pause_reading()

    def go_on(self) -> None:
        """Take up reading, if nothing stands against it any more."""
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
        """End a connection that says nothing whole, with an answer if there is something to answer.

        One that does not read its answers has as much time as for a request.
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
        # What still comes is read and forgotten: a close at once could take the answer away with it.
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
        """End as soon as what has begun is answered."""
        if not self._unanswered and not self._missing:
            self._ending = True
            self._transport.close()

    def abort(self) -> None:
        """End now."""
        self._ending = True
        self._transport.abort()
