"""Gathers notifications into Notify requests: in bounded lots for many at once, or by lingering for calls
that come together.

Owns the order of what one client publishes with a linger: one request is under way at a time, and each
carries what waited, oldest first. It sends through a function it is given, and knows neither HTTP nor SOAP.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from hpwsn_client.wsn.operations.notifications import NotificationMessage

Send = Callable[[Sequence[NotificationMessage], str | None], Awaitable[None]]

NOTIFY_BYTES = 1 << 20
"""A Notify is not filled beyond this many bytes: more gains nothing, and brokers refuse it somewhere."""

_AROUND_PAYLOAD = 1024


def message_size(message: NotificationMessage) -> int:
    """About the bytes that a message takes in a Notify."""
    topic = 0 if message.topic is None else len(message.topic.text)
    return len(message.payload) + 4 * topic + _AROUND_PAYLOAD


def lots(messages: Iterable[NotificationMessage], batch: int) -> Iterator[list[NotificationMessage]]:
    """The messages in order, in lots of at most `batch`, and of NOTIFY_BYTES but for single larger ones."""
    lot: list[NotificationMessage] = []
    size = 0
    for message in messages:
        length = message_size(message)
        if lot and size + length > NOTIFY_BYTES:
            yield lot
            lot, size = [], 0
        lot.append(message)
        size += length
        if len(lot) >= batch:
            yield lot
            lot, size = [], 0
    if lot:
        yield lot


@dataclass(slots=True, eq=False)
class _Waiting:
    message: NotificationMessage
    message_id: str | None
    done: asyncio.Future[None]
    deadline: float


class LingeringPublisher:
    """Holds each message up to `linger` seconds for others to join it."""

    def __init__(self, send: Send, linger: float, batch: int) -> None:
        self._send = send
        self._linger = linger
        self._batch = batch
        self._waiting: deque[_Waiting] = deque()
        self._ready = asyncio.Event()
        self._sending = asyncio.Lock()
        self._task: asyncio.Task[None] | None = None
        self._closing = False

    async def publish(self, message: NotificationMessage, message_id: str | None = None) -> None:
        """Publish one message with those that come near it, alone if it has an id; returns when answered."""
        loop = asyncio.get_running_loop()
        done: asyncio.Future[None] = loop.create_future()
        self._waiting.append(_Waiting(message, message_id, done, loop.time() + self._linger))
        if len(self._waiting) >= self._batch:
            self._ready.set()
        if self._task is None:
            self._task = loop.create_task(self._run())
        await done

    async def send(self, messages: Sequence[NotificationMessage]) -> None:
        """Send a Notify that is complete already, in turn with the others."""
        async with self._sending:
            await self._send(messages, None)

    async def close(self) -> None:
        """Send all that waits, at once."""
        self._closing = True
        self._ready.set()
        if self._task is not None:
            await self._task

    async def _run(self) -> None:
        try:
            while self._waiting:
                await self._linger_for_more()
                await self._send_lot(self._take())
        finally:
            self._task = None
            for entry in self._waiting:
                entry.done.cancel()
            self._waiting.clear()

    async def _linger_for_more(self) -> None:
        if self._closing or len(self._waiting) >= self._batch:
            return
        self._ready.clear()
        try:
            async with asyncio.timeout_at(self._waiting[0].deadline):
                await self._ready.wait()
        except TimeoutError:
            pass

    def _take(self) -> list[_Waiting]:
        """The oldest entries that go into one Notify, without those whose caller has given up."""
        lot: list[_Waiting] = []
        size = 0
        while self._waiting and len(lot) < self._batch:
            entry = self._waiting[0]
            size += message_size(entry.message)
            if lot and (size > NOTIFY_BYTES or entry.message_id or lot[0].message_id):
                break
            self._waiting.popleft()
            if entry.done.cancelled():
                size -= message_size(entry.message)
            else:
                lot.append(entry)
        return lot

    async def _send_lot(self, lot: list[_Waiting]) -> None:
        if not lot:
            return
        try:
            async with self._sending:
                await self._send([entry.message for entry in lot], lot[0].message_id)
        except BaseException as error:
            _settle(lot, error)
            if not isinstance(error, Exception):
                raise
        else:
            _settle(lot, None)


def _settle(lot: list[_Waiting], error: BaseException | None) -> None:
    for entry in lot:
        if entry.done.done():
            continue
        if error is None:
            entry.done.set_result(None)
        elif isinstance(error, Exception):
            entry.done.set_exception(error)
        else:
            entry.done.cancel()
