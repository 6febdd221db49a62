"""The door's end of the link: the Notify lane and the full door as they look from a process without a broker.

What all connections bring in one turn of the event loop is one frame. Each Notify is settled by its number:
stored, or to be tried again by the full door, which is a frame of its own with the whole request. The order
of a connection is kept by the core: behind a Notify that it refused it takes no other of that connection
until this end has seen the refusal, and then the lane waits for the full door anyway.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from itertools import count
from typing import cast

from hpwsn.door.exchange import Post, Refusals, Reply
from hpwsn.door.lane import Offer as LaneOffer
from hpwsn.workers.bodies import (
    NUMBERS,
    FullRequest,
    Offer,
    decode_reply,
    decode_settled,
    encode_full,
    encode_publish,
    encode_seen,
)
from hpwsn.workers.frames import LONGEST_REPLY, BadFrame, FrameReader, Kind, encode_frame
from hpwsn_client.wsn.notify_scan import Encoded, NotifyScan
from hpwsn_client.wsn.xml import Limits

MOST = 2048
"""Notifications after which a frame goes at once."""
MOST_BYTES = 1 << 20
BEHIND = 4 << 20
"""Bytes that the core has not read, at which connections are read no more."""

Stored = Callable[[bool], None]


class DoorLink(asyncio.Protocol):
    """One link, as long as the door lives."""

    def __init__(
        self,
        limits: Limits,
        refusals: Refusals,
        *,
        hold: Callable[[bool], None],
        drain: Callable[[], None],
        reload: Callable[[], None],
    ) -> None:
        self._most = limits.body
        self._scan = NotifyScan(limits)
        self._hold = hold
        self._drain = drain
        self._reload = reload
        self._loop = asyncio.get_running_loop()
        self._reader = FrameReader(LONGEST_REPLY)
        self._transport: asyncio.Transport
        self._numbers = count()
        self._connections = count()
        self._offers: list[Offer] = []
        self._messages: list[Encoded] = []
        self._bytes = 0
        self._told: dict[int, Stored] = {}
        self._asked: dict[int, asyncio.Future[Reply]] = {}
        self.overtaken = refusals.overtaken
        self.too_late = refusals.too_late
        self.lost: asyncio.Future[BadFrame | None] = self._loop.create_future()

    # What the lane asks for

    def connect(self) -> LaneOffer:
        """What takes the bodies of one more connection, in their order."""
        return partial(self._offer, next(self._connections) % NUMBERS)

    def _offer(self, connection: int, bodies: Sequence[bytes], stored: Stored) -> int:
        """Notifies in a row are one offer to the core, which takes it whole; one with an id is by itself."""
        together: list[Encoded] = []
        taken = size = length = 0
        for data in bodies:
            messages = self._scan.read(data)
            # How a notification travels to other nodes is for the core's full door, which reads the header.
            if messages is None or any(self._scan.routing) or (of_it := _size(messages)) > self._most:
                break
            alone = messages[0].message_id is not None
            if taken and (alone or size + of_it > self._most):
                break
            together += messages
            taken, size, length = taken + 1, size + of_it, length + len(data)
            if alone:
                break
        if taken:
            self._put(connection, together, size, length, stored)
        return taken

    def _put(
        self, connection: int, messages: Sequence[Encoded], size: int, length: int, stored: Stored
    ) -> None:
        number = next(self._numbers) % NUMBERS
        if not self._offers:
            self._loop.call_soon(self._flush)
        self._offers.append(Offer(number, connection, length, len(messages), messages[0].message_id))
        self._messages += messages
        self._told[number] = stored
        self._bytes += size
        if self._bytes >= MOST_BYTES or len(self._messages) >= MOST:
            self._flush()

    def _flush(self) -> None:
        offers, messages = self._offers, self._messages
        if offers:
            self._offers, self._messages, self._bytes = [], [], 0
            self._send(Kind.PUBLISH, encode_publish(offers, messages))

    async def answer_broker(self, post: Post) -> Reply:
        """What the broker's own address answers."""
        number = next(self._numbers) % NUMBERS
        reply: asyncio.Future[Reply] = self._loop.create_future()
        self._asked[number] = reply
        self._flush()
        self._send(Kind.FULL, encode_full(FullRequest(number, post.hint, post.charset, post.data)))
        return await reply

    def ready(self) -> None:
        """Tell the core that connections can come."""
        self._send(Kind.READY, b"")

    async def close(self) -> None:
        """Let the core have all that was sent, and end."""
        self._transport.close()
        await self.lost

    def _send(self, kind: Kind, body: bytes) -> None:
        if not self._transport.is_closing():
            self._transport.write(encode_frame(kind, body))

    # What the loop calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin."""
        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(BEHIND)

    def connection_lost(self, error: Exception | None) -> None:
        """The core is gone, and nobody can be answered any more."""
        self._end(None)

    def pause_writing(self) -> None:
        """The core is behind."""
        self._hold(True)

    def resume_writing(self) -> None:
        """It is not any more."""
        self._hold(False)

    def data_received(self, data: bytes) -> None:
        """Tell each connection what became of its requests."""
        try:
            for kind, body in self._reader.feed(data):
                self._receive(kind, body)
        except BadFrame as wrong:
            self.fail(wrong)

    def _receive(self, kind: Kind, body: bytes) -> None:
        if kind is Kind.SETTLED:
            self._settle(body)
        elif kind is Kind.REPLY:
            reply = decode_reply(body)
            waiting = self._asked.pop(reply.number, None)
            if waiting is not None and not waiting.done():
                waiting.set_result(Reply(reply.status, reply.body, reply.headers))
        elif kind is Kind.DRAIN:
            self._drain()
        elif kind is Kind.RELOAD:
            self._reload()
        else:
            raise BadFrame(f"{kind.name} is for the core")

    def _settle(self, body: bytes) -> None:
        settled = decode_settled(body)
        if settled.refused:
            # Before anything that follows from it: whatever was sent till now did not know of it.
            self._flush()
            self._send(Kind.SEEN, encode_seen(settled.serial))
        for numbers, stored in ((settled.stored, True), (settled.refused, False)):
            for number in numbers:
                tell = self._told.pop(number, None)
                if tell is not None:
                    tell(stored)

    def fail(self, wrong: BadFrame) -> None:
        """End the door: what the core sends makes no sense, and the next door begins anew."""
        self._transport.abort()
        self._end(wrong)

    def _end(self, wrong: BadFrame | None) -> None:
        if not self.lost.done():
            self.lost.set_result(wrong)


def _size(messages: Sequence[Encoded]) -> int:
    """At most how many bytes they have on the link."""
    size, known = 0, None
    for topic, content, _, _, _ in messages:
        size += len(content)
        if topic is not None and topic is not known:
            known = topic
            size += 4 * len(str(topic))
    return size + 4 * len(messages[0].message_id or "") + 36 * len(messages)
