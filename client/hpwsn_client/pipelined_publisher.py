"""The pipelined publisher, for high throughput: batches of notifications, several requests in flight.

Notifications are sent in the order of `put`, on one connection. Each request has a MessageId and is repeated,
in order, when its reply is lost: it arrives at least once, and the broker publishes it once. `put` waits
while the queue is full. The next `put`, `flush` or `close` reports a rejected request with its messages;
requests in flight behind it may have been accepted. When the broker is busy, the request is repeated after
the Retry-After time, and may then arrive after requests that were in flight behind it.
"""

from __future__ import annotations

import asyncio
import itertools
import ssl
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self
from uuid import uuid4

from hpwsn_client.arguments import (
    Endpoint,
    Namespaces,
    Payload,
    TopicLike,
    notification_message,
    trace_of_caller,
)
from hpwsn_client.environment import authorization, check_url
from hpwsn_client.errors import (
    BadReply,
    Closed,
    ConnectionFailed,
    FailedBatch,
    PublishFailed,
    TimedOut,
    reason_of,
)
from hpwsn_client.figures import Counters, Figures
from hpwsn_client.pipeline import NotHttp, Pipeline, RawReply, request_head
from hpwsn_client.publisher import NOTIFY_BYTES, message_size
from hpwsn_client.transport import (
    Reply,
    addressing_headers,
    body_of,
    check_soap_action,
    message_id_header,
    tls_failed,
    trace_headers,
)
from hpwsn_client.wsn.operations.notifications import NotificationMessage, encode_notify
from hpwsn_client.wsn.soap.addressing import EndpointReference
from hpwsn_client.wsn.soap.envelope import SoapVersion, encode_envelope
from hpwsn_client.wsn.soap.faults import Busy
from hpwsn_client.wsn.soap.names import ACTION_NOTIFY
from hpwsn_client.wsn.soap.version import SoapAction, request_headers
from hpwsn_client.wsn.soap.xml import DEFAULT_LIMITS, Limits

FIRST_RETRY_DELAY, MAX_RETRY_DELAY = 0.1, 2.0
"""Seconds between attempts to connect: the delay doubles from the first value up to the second."""


@dataclass(slots=True, eq=False)
class _Entry:
    message: NotificationMessage
    done: asyncio.Future[None]
    put_at: float
    trace: str | None


@dataclass(slots=True, eq=False)
class _Batch:
    """The notifications of one request; `first_attempt` and `deadline` are times of the event loop."""

    entries: list[_Entry]
    request: bytes
    first_attempt: float
    deadline: float = field(default=0.0)
    sent_at: float = field(default=0.0)
    """The counters' time of the first attempt; 0 before it."""

    @property
    def messages(self) -> tuple[NotificationMessage, ...]:
        return tuple(entry.message for entry in self.entries)


class Publisher:
    """Publishes many notifications to one broker; create one with `Client.publisher`."""

    def __init__(
        self,
        url: str,
        *,
        soap: SoapVersion = SoapVersion.SOAP11,
        soap_action: SoapAction = "empty",
        linger: float = 0.005,
        batch: int = 100,
        in_flight: int = 8,
        max_waiting: int = 10_000,
        timeout: float = 30.0,
        retry_for: float = 60.0,
        limits: Limits = DEFAULT_LIMITS,
        tls: ssl.SSLContext | None = None,
        token: str = "",
    ) -> None:
        if not 1 <= batch <= limits.messages:
            raise ValueError(f"batch is {batch}; give 1 to {limits.messages} notifications for a Notify")
        if in_flight < 1 or max_waiting < 1 or timeout <= 0 or linger < 0 or retry_for < 0:
            raise ValueError(
                f"in_flight={in_flight}, max_waiting={max_waiting}, timeout={timeout}, linger={linger}, "
                f"retry_for={retry_for}: give in_flight and max_waiting of at least 1, a timeout above 0,"
                " and a linger and retry_for of 0 or more seconds"
            )
        self.url = check_url(url)
        self._soap = soap
        self.linger = linger
        self.batch = batch
        self._max_in_flight = in_flight
        self._max_waiting = max_waiting
        self._timeout = timeout
        self._retry_for = retry_for
        self.limits = limits
        self._tls = tls
        headers = request_headers(soap, ACTION_NOTIFY, check_soap_action(soap_action))
        self._head = request_head(url) + _header_lines({**headers, **authorization(token)})
        self._ids = (f"{uuid4()}-{number}" for number in itertools.count(1))
        self._waiting: deque[_Entry] = deque()
        self._in_flight: deque[_Batch] = deque()
        self._postponed: list[_Batch] = []
        self._failed: list[FailedBatch] = []
        self._connection: Pipeline | None = None
        self._last_error: Exception | None = None
        self._unreachable_since = 0.0
        self._retry_delay = FIRST_RETRY_DELAY
        self._retry_at = 0.0
        self._wake_up = asyncio.Event()
        self._progress = asyncio.Event()
        self._flushing = 0
        self._closing = False
        self._counters = Counters(f"publisher to {self.url}")
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()

    async def put(
        self,
        topic: TopicLike | None,
        payload: Payload,
        *,
        producer: Endpoint | None = None,
        namespaces: Namespaces | None = None,
    ) -> asyncio.Future[None]:
        """Queue one notification; waits while `max_waiting` others are queued.

        The returned future is done when the broker has accepted the notification. It need not be awaited: a
        later call, or `close`, raises PublishFailed for every failure.
        """
        message = notification_message(
            topic, payload, producer=producer, namespaces=namespaces, limits=self.limits
        )
        self.check()
        (done,) = await self.enqueue([(message, trace_of_caller())])
        return done

    async def enqueue(
        self, messages: Iterable[tuple[NotificationMessage, str | None]]
    ) -> list[asyncio.Future[None]]:
        """Queue messages, each with its traceparent, without raising PublishFailed for earlier ones."""
        loop = asyncio.get_running_loop()
        futures = []
        for message, trace in messages:
            while len(self._waiting) >= self._max_waiting and not self._closing:
                self._progress.clear()
                await self._progress.wait()
            if self._closing:
                raise Closed("this publisher is closed; create a new one", self.url)
            entry = _Entry(message, loop.create_future(), loop.time(), trace)
            self._waiting.append(entry)
            futures.append(entry.done)
            if len(self._waiting) in (1, self.batch):
                self._wake_up.set()
            if self._task is None or self._task.done():
                self._task = loop.create_task(self._run())
        return futures

    async def flush(self) -> None:
        """Send all queued notifications now and wait for the replies; may raise PublishFailed."""
        self._flushing += 1
        self._wake_up.set()
        try:
            while self._waiting or self._in_flight or self._postponed:
                self._progress.clear()
                await self._progress.wait()
        finally:
            self._flushing -= 1
        self.check()

    async def close(self) -> None:
        """Flush and close the connection; a second call does nothing."""
        self._closing = True
        try:
            await self.flush()
        finally:
            task, self._task = self._task, None
            if task is not None:
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
            if self._connection is not None:
                self._connection.close()
            self._counters.close()

    def figures(self) -> Figures:
        """What this publisher has published."""
        return self._counters.figures()

    def check(self) -> None:
        """Raise PublishFailed if batches have failed since the last check."""
        if not self._failed:
            return
        failed, self._failed = self._failed, []
        count = sum(len(batch.messages) for batch in failed)
        raise PublishFailed(
            f"{self.url} did not accept {count} notifications in {len(failed)} requests; "
            f"first error: {failed[0].error}; `failed` has the notifications, to publish again or drop",
            self.url,
            failed,
        ) from None

    async def _run(self) -> None:
        """Send requests until the publisher is closed."""
        try:
            while True:
                await self._step()
        except BaseException as error:
            self._fail_all(error if isinstance(error, Exception) else None)
            raise

    async def _step(self) -> None:
        now = asyncio.get_running_loop().time()
        if self._postponed and not self._in_flight and now >= self._retry_at:
            self._in_flight.extend(self._postponed)
            self._postponed.clear()
            self._resend()
        elif self._in_flight and self._connection is None and now >= self._retry_at:
            await self._connect()
        elif self._in_flight and self._connection is not None and now >= self._in_flight[0].deadline:
            self._connection.close(TimeoutError(f"no reply within {self._timeout:g} s"))
            self._on_lost(self._connection, TimeoutError(f"no reply within {self._timeout:g} s"))
        elif self._ready(now):
            self._send(self._next_batch(now))
        else:
            await self._wait(now)

    def _ready(self, now: float) -> bool:
        """Whether to send the next request: it is full or has lingered, and another may be in flight."""
        if not self._waiting or self._postponed or len(self._in_flight) >= self._max_in_flight:
            return False
        full = len(self._waiting) >= self.batch
        return full or bool(self._flushing) or now >= self._waiting[0].put_at + self.linger

    async def _wait(self, now: float) -> None:
        """Wait for a change, or until the next deadline."""
        times = []
        if self._in_flight:
            times.append(self._retry_at if self._connection is None else self._in_flight[0].deadline)
        elif self._postponed:
            times.append(self._retry_at)
        if self._waiting and not self._postponed and len(self._in_flight) < self._max_in_flight:
            times.append(self._waiting[0].put_at + self.linger)
        self._wake_up.clear()
        try:
            async with asyncio.timeout_at(min(times, default=None)):
                await self._wake_up.wait()
        except TimeoutError:
            pass

    def _next_batch(self, now: float) -> _Batch:
        """Remove the oldest entries that fit into one request."""
        entries: list[_Entry] = []
        size = 0
        while self._waiting and len(entries) < self.batch:
            size += message_size(self._waiting[0].message)
            if entries and size > NOTIFY_BYTES:
                break
            entries.append(self._waiting.popleft())
        self._progress.set()
        # While the broker is unreachable, the time in the queue counts as retry time. Otherwise each batch
        # would start its own retry period after the previous one had failed.
        first = now if self._last_error is None else max(entries[0].put_at, self._unreachable_since)
        return _Batch(entries, self._request(entries), first)

    def _request(self, entries: list[_Entry]) -> bytes:
        headers = [
            *addressing_headers(EndpointReference(self.url), ACTION_NOTIFY),
            message_id_header(next(self._ids)),
            *trace_headers([entry.trace for entry in entries]),
        ]
        notify = encode_notify([entry.message for entry in entries])
        body = encode_envelope(self._soap, notify, headers)
        return b"%sContent-Length: %d\r\n\r\n%s" % (self._head, len(body), body)

    def _send(self, batch: _Batch) -> None:
        self._in_flight.append(batch)
        if self._connection is not None:
            self._write(batch)

    def _write(self, batch: _Batch) -> None:
        assert self._connection is not None
        batch.deadline = asyncio.get_running_loop().time() + self._timeout
        if batch.sent_at:
            self._counters.add("repeated")
        else:
            batch.sent_at = self._counters.now
        self._connection.write(batch.request)

    def _resend(self) -> None:
        if self._connection is not None:
            for batch in self._in_flight:
                self._write(batch)

    async def _connect(self) -> None:
        try:
            async with asyncio.timeout(self._timeout):
                self._connection = await Pipeline.open(
                    self.url, self._on_reply, self._on_lost, self.limits.body, self._tls
                )
        except (OSError, UnicodeError) as error:
            # A UnicodeError means an invalid host name.
            self._schedule_retry(error)
        else:
            self._resend()

    def _on_reply(self, connection: Pipeline, raw: RawReply) -> None:
        if connection is not self._connection or not self._in_flight:
            connection.close()
            return
        batch = self._in_flight.popleft()
        self._retry_delay, self._last_error = FIRST_RETRY_DELAY, None
        now = asyncio.get_running_loop().time()
        for other in self._in_flight:
            # Replies come one after the other, so each request has the timeout from the previous reply.
            other.deadline = now + self._timeout
        try:
            body_of(
                Reply(self.url, raw.status, _charset(raw), _Headers(raw.headers), raw.content), self.limits
            )
        except Busy as error:
            self._postpone(batch, error, now)
        except Exception as error:
            self._fail(batch, error)
        else:
            self._accept(batch)

    def _postpone(self, batch: _Batch, error: Busy, now: float) -> None:
        if now - batch.first_attempt >= self._retry_for:
            self._fail(batch, error)
            return
        self._postponed.append(batch)
        self._retry_at = now + min(error.retry_after, self._retry_for)
        self._wake()

    def _on_lost(self, connection: Pipeline, error: Exception | None) -> None:
        if connection is self._connection:
            self._connection = None
            if self._in_flight:
                self._schedule_retry(error or ConnectionError("the broker closed the connection"))
            self._wake()

    def _schedule_retry(self, error: Exception) -> None:
        """Schedule the next attempt, and fail batches whose retry time is over."""
        now = asyncio.get_running_loop().time()
        self._retry_at = now + (self._retry_delay if self._last_error is not None else 0.0)
        if self._last_error is None:
            self._unreachable_since = now
        else:
            self._retry_delay = min(2 * self._retry_delay, MAX_RETRY_DELAY)
        self._last_error = error
        while self._in_flight and now - self._in_flight[0].first_attempt >= self._retry_for:
            self._fail(self._in_flight.popleft(), _client_error(self.url, error))
        if self._unreachable_since < now - self._retry_for:
            self._fail_waiting(now - self._retry_for, _client_error(self.url, error))

    def _fail_waiting(self, before: float, error: Exception) -> None:
        """Fail queued notifications that were put before that time."""
        late = []
        while self._waiting and self._waiting[0].put_at <= before:
            late.append(self._waiting.popleft())
        if late:
            self._fail(_Batch(late, b"", before), error)

    def _accept(self, batch: _Batch) -> None:
        self._counters.published(len(batch.entries), batch.sent_at)
        for entry in batch.entries:
            if not entry.done.done():
                entry.done.set_result(None)
        self._wake()

    def _fail(self, batch: _Batch, error: Exception) -> None:
        self._failed.append(FailedBatch(batch.messages, error))
        self._counters.add("failed", len(batch.entries))
        for entry in batch.entries:
            if not entry.done.done():
                entry.done.set_exception(error)
                # PublishFailed reports the error, so asyncio must not warn that it was never retrieved.
                entry.done.exception()
        self._wake()

    def _fail_all(self, error: Exception | None) -> None:
        """Fail all batches and queued notifications, so that no caller waits for ever."""
        reason = error or Closed("this publisher was closed before the broker replied", self.url)
        for batch in (*self._in_flight, *self._postponed):
            self._fail(batch, reason)
        self._in_flight.clear()
        self._postponed.clear()
        if self._waiting:
            self._fail(_Batch(list(self._waiting), b"", 0.0), reason)
            self._waiting.clear()

    def _wake(self) -> None:
        self._wake_up.set()
        self._progress.set()


class _Headers(dict[str, str]):
    """Headers stored with lower-case names; lookups ignore case."""

    def get(self, name: str, default: str = "") -> str:  # type: ignore[override]
        return super().get(name.lower(), default)


def _header_lines(headers: Mapping[str, str]) -> bytes:
    return "".join(f"{name}: {value}\r\n" for name, value in headers.items()).encode()


def _charset(raw: RawReply) -> str | None:
    _, found, value = raw.headers.get("content-type", "").lower().partition("charset=")
    return value.partition(";")[0].strip(' "') or None if found else None


def _client_error(url: str, error: Exception) -> Exception:
    """The client's exception for a connection error."""
    unknown = "all retries failed; the broker may have processed the last request"
    if isinstance(error, TimeoutError):
        return TimedOut(f"{url}: {str(error) or 'no connection before the timeout'}; {unknown}", url)
    if isinstance(error, NotHttp):
        return BadReply(f"invalid reply from {url}: {error}; check that a broker listens at this URL", url)
    if (failed := tls_failed(url, error)) is not None:
        return failed
    why = reason_of(error) if isinstance(error, OSError) else str(error)
    return ConnectionFailed(f"cannot connect to {url} ({why}); {unknown}", url)
