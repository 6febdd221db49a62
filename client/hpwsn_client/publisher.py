"""Batching of notifications into Notify requests, for `Client.notify_many` and for a client with `linger`.

With `linger`, a notification waits a short time for others to share its request. One request is in flight at
a time, so notifications keep their order. The module sends through a function argument; it does no HTTP and
no SOAP.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from hpwsn_client.wsn.operations.notifications import NotificationMessage

Send = Callable[[Sequence[NotificationMessage], str | None, Sequence[str | None]], Awaitable[None]]
"""Sends messages with a message id, or None, and the traceparent of each, or one for all, or nothing."""

NOTIFY_BYTES = 1 << 20
"""Target size of a Notify: larger requests are not faster, and brokers limit the size."""

_OVERHEAD = 1024


def message_size(message: NotificationMessage) -> int:
    """Estimated bytes of a message in a Notify."""
    topic = 0 if message.topic is None else len(message.topic.text)
    return len(message.payload) + 4 * topic + _OVERHEAD


def batches(messages: Iterable[NotificationMessage], batch: int) -> Iterator[list[NotificationMessage]]:
    """Split messages, in order, into batches of at most `batch` messages and NOTIFY_BYTES.

    A message larger than NOTIFY_BYTES gets its own batch.
    """
    current: list[NotificationMessage] = []
    size = 0
    for message in messages:
        length = message_size(message)
        if current and size + length > NOTIFY_BYTES:
            yield current
            current, size = [], 0
        current.append(message)
        size += length
        if len(current) >= batch:
            yield current
            current, size = [], 0
    if current:
        yield current


@dataclass(slots=True, eq=False)
class _Pending:
    message: NotificationMessage
    message_id: str | None
    done: asyncio.Future[None]
    deadline: float
    trace: str | None


class LingeringPublisher:
    """Delays each message up to `linger` seconds so that others can share its request."""

    def __init__(self, send: Send, linger: float, batch: int) -> None:
        self._send = send
        self._linger = linger
        self._batch = batch
        self._pending: deque[_Pending] = deque()
        self._ready = asyncio.Event()
        self._sending = asyncio.Lock()
        self._task: asyncio.Task[None] | None = None
        self._closing = False

    async def publish(
        self, message: NotificationMessage, message_id: str | None = None, trace: str | None = None
    ) -> None:
        """Publish one message and wait for the reply; a message with an id gets its own request."""
        loop = asyncio.get_running_loop()
        done: asyncio.Future[None] = loop.create_future()
        self._pending.append(_Pending(message, message_id, done, loop.time() + self._linger, trace))
        if len(self._pending) >= self._batch:
            self._ready.set()
        if self._task is None:
            self._task = loop.create_task(self._run())
        await done

    async def send(self, messages: Sequence[NotificationMessage], traces: Sequence[str | None] = ()) -> None:
        """Send a complete batch, after the request in flight."""
        async with self._sending:
            await self._send(messages, None, traces)

    async def close(self) -> None:
        """Send all pending messages without lingering."""
        self._closing = True
        self._ready.set()
        if self._task is not None:
            await self._task

    async def _run(self) -> None:
        try:
            while self._pending:
                await self._linger_for_more()
                await self._send_batch(self._next_batch())
        finally:
            self._task = None
            for entry in self._pending:
                entry.done.cancel()
            self._pending.clear()

    async def _linger_for_more(self) -> None:
        if self._closing or len(self._pending) >= self._batch:
            return
        self._ready.clear()
        try:
            async with asyncio.timeout_at(self._pending[0].deadline):
                await self._ready.wait()
        except TimeoutError:
            pass

    def _next_batch(self) -> list[_Pending]:
        """Remove the oldest entries that fit into one Notify, and skip those whose caller was cancelled."""
        entries: list[_Pending] = []
        size = 0
        while self._pending and len(entries) < self._batch:
            entry = self._pending[0]
            size += message_size(entry.message)
            if entries and (size > NOTIFY_BYTES or entry.message_id or entries[0].message_id):
                break
            self._pending.popleft()
            if entry.done.cancelled():
                size -= message_size(entry.message)
            else:
                entries.append(entry)
        return entries

    async def _send_batch(self, entries: list[_Pending]) -> None:
        if not entries:
            return
        try:
            async with self._sending:
                traces = [entry.trace for entry in entries]
                await self._send([entry.message for entry in entries], entries[0].message_id, traces)
        except BaseException as error:
            _complete(entries, error)
            if not isinstance(error, Exception):
                raise
        else:
            _complete(entries, None)


def _complete(entries: list[_Pending], error: BaseException | None) -> None:
    for entry in entries:
        if entry.done.done():
            continue
        if error is None:
            entry.done.set_result(None)
        elif isinstance(error, Exception):
            entry.done.set_exception(error)
        else:
            entry.done.cancel()
