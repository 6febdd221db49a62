"""The core's end of a link: what a door has read is checked, admitted and stored here, and settled by number.

A frame is admitted whole where nothing in it is to be refused. Else each Notify is looked at alone; one that
is refused goes to the full door, which has the words for it, and with it all that its connection sent before
the door could know: else that would be stored before it. The door says when it knows.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass
from functools import partial
from typing import cast

from hpwsn.broker.intake import Intake
from hpwsn.broker.publisher import Span
from hpwsn.door.exchange import Post, Reply
from hpwsn.notification import Notification
from hpwsn.workers.bodies import (
    NUMBERS,
    FullReply,
    FullRequest,
    Offer,
    Settled,
    TopicCache,
    decode_full,
    decode_publish,
    decode_seen,
    encode_reply,
    encode_settled,
)
from hpwsn.workers.frames import BadFrame, FrameReader, Kind, encode_frame
from hpwsn_client.wsn.notify_scan import Encoded
from hpwsn_client.wsn.soap_faults import SoapFault


@dataclass(frozen=True, slots=True)
class Core:
    """What is behind all doors."""

    ready: Callable[[Sequence[Encoded]], Sequence[Notification]]
    """The notifications in their final form; raises the fault where they are to be refused."""
    take_once: Callable[[str, Sequence[Notification]], asyncio.Future[Span] | None]
    """What becomes of the first Notify of that id; None if this is it."""
    intake: Intake
    answer_broker: Callable[[Post], Awaitable[Reply]]
    """What the broker's own address answers."""


class CoreLink(asyncio.Protocol):
    """One link, as long as its door lives."""

    def __init__(self, core: Core, longest: int, failed: Callable[[BadFrame], None]) -> None:
        self._core = core
        self._failed = failed
        self._loop = asyncio.get_running_loop()
        self._reader = FrameReader(longest)
        self._topics = TopicCache()
        self._transport: asyncio.Transport | None = None
        self._serial = 0
        self._stored: list[int] = []
        self._refused: list[int] = []
        self._blocked: set[int] = set()
        self._unseen: dict[int, set[int]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self.notifications = 0
        self.ready: asyncio.Future[bool] = self._loop.create_future()

    def drain(self) -> None:
        """Have the door accept no more, finish and end."""
        self._send(Kind.DRAIN, b"")

    def reload(self) -> None:
        """Have the door read its certificate again."""
        self._send(Kind.RELOAD, b"")

    # What the loop calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin."""
        self._transport = cast(asyncio.Transport, transport)

    def connection_lost(self, error: Exception | None) -> None:
        """The door is gone; what it brought is stored without an answer."""
        if not self.ready.done():
            self.ready.set_result(False)

    def data_received(self, data: bytes) -> None:
        """Take what the door has read."""
        try:
            for kind, body in self._reader.feed(data):
                self._receive(kind, body)
        except BadFrame as wrong:
            if self._transport is not None:
                self._transport.abort()
            self._failed(wrong)

    def _receive(self, kind: Kind, body: bytes) -> None:
        if kind is Kind.PUBLISH:
            offers, messages = decode_publish(body, self._topics)
            self._admit(offers, messages, len(body))
        elif kind is Kind.SEEN:
            self._blocked -= self._unseen.pop(decode_seen(body), set())
        elif kind is Kind.FULL:
            self._begin(self._answer(decode_full(body)))
        elif kind is Kind.READY:
            if not self.ready.done():
                self.ready.set_result(True)
        else:
            raise BadFrame(f"{kind.name} is for a door")

    # Notifications

    def _admit(self, offers: Sequence[Offer], messages: Sequence[Encoded], size: int) -> None:
        named = any(offer.message_id is not None for offer in offers)
        if not self._blocked and not named and self._put(offers, messages, size):
            return
        at = 0
        for offer in offers:
            of_it = messages[at : at + offer.messages]
            at += offer.messages
            if offer.connection in self._blocked or not self._put([offer], of_it, offer.size):
                self._refuse(offer)

    def _put(self, offers: Sequence[Offer], messages: Sequence[Encoded], size: int) -> bool:
        try:
            notifications = self._core.ready(messages)
        except SoapFault:
            return False
        numbers = [offer.number for offer in offers]
        id_, settle = offers[0].message_id, partial(self._settle, numbers, len(notifications))
        first = None if id_ is None else self._core.take_once(id_, notifications)
        if first is None:
            self._core.intake.put(notifications, size, settle)
        else:
            first.add_done_callback(lambda ended: settle(not ended.cancelled() and ended.exception() is None))
        return True

    def _refuse(self, offer: Offer) -> None:
        if offer.connection not in self._blocked:
            self._blocked.add(offer.connection)
            # The number that the frame with this refusal is going to have.
            self._unseen.setdefault(self._serial, set()).add(offer.connection)
        self._settle([offer.number], 0, False)

    def _settle(self, numbers: list[int], count: int, stored: bool) -> None:
        if not self._stored and not self._refused:
            self._loop.call_soon(self._flush)
        if stored:
            self.notifications += count
            self._stored += numbers
        else:
            self._refused += numbers

    def _flush(self) -> None:
        settled = Settled(self._serial, self._stored, self._refused)
        self._serial = (self._serial + 1) % NUMBERS
        self._stored, self._refused = [], []
        self._send(Kind.SETTLED, encode_settled(settled))

    # Other requests

    def _begin(self, work: Coroutine[None, None, None]) -> None:
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _answer(self, request: FullRequest) -> None:
        reply = await self._core.answer_broker(Post(request.data, request.charset, request.version))
        written = self._send(
            Kind.REPLY, encode_reply(FullReply(request.number, reply.status, reply.headers, reply.body))
        )
        if reply.tell is not None:
            await reply.tell(written)

    def _send(self, kind: Kind, body: bytes) -> bool:
        if self._transport is None or self._transport.is_closing():
            return False
        self._transport.write(encode_frame(kind, body))
        return True
