"""The pipelined publisher: one Python program that loads a broker.

Notifications gather into Notify requests, several of which are under way on one connection. They reach the
broker in the order they were put. Each request has a MessageId, and is sent again, in order, when its answer
got lost, so that every notification is accepted at least once and published once. Too many that wait make
`put` wait. A request that the broker refuses is reported, with its messages, by the next `put`, `flush` or
`close`; what was under way behind it may have been accepted. One that it is too busy for is sent again after
the time it asks for, and may so come after those that were under way behind it.
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

from hpwsn_client.arguments import Endpoint, Namespaces, Payload, TopicLike, notification_message
from hpwsn_client.environment import check_url
from hpwsn_client.errors import (
    BadReply,
    Closed,
    ConnectionFailed,
    FailedBatch,
    PublishFailed,
    TimedOut,
    reason_of,
)
from hpwsn_client.pipeline import NotHttp, Pipeline, RawReply, request_head
from hpwsn_client.publisher import NOTIFY_BYTES, message_size
from hpwsn_client.transport import (
    Reply,
    addressing_headers,
    body_of,
    check_soap_action,
    message_id_header,
    tls_failed,
)
from hpwsn_client.wsn.operations.notifications import NotificationMessage, encode_notify
from hpwsn_client.wsn.soap.addressing import EndpointReference
from hpwsn_client.wsn.soap.envelope import SoapVersion, encode_envelope
from hpwsn_client.wsn.soap.faults import Busy
from hpwsn_client.wsn.soap.names import ACTION_NOTIFY
from hpwsn_client.wsn.soap.version import SoapAction, request_headers
from hpwsn_client.wsn.soap.xml import DEFAULT_LIMITS, Limits

FIRST_PAUSE, LONGEST_PAUSE = 0.1, 2.0
"""Seconds between attempts to reach a broker that is away."""


@dataclass(slots=True, eq=False)
class _Entry:
    message: NotificationMessage
    done: asyncio.Future[None]
    put: float


@dataclass(slots=True, eq=False)
class _Lot:
    """What travels in one request."""

    entries: list[_Entry]
    request: bytes
    first: float
    due: float = field(default=0.0)

    @property
    def messages(self) -> tuple[NotificationMessage, ...]:
        return tuple(entry.message for entry in self.entries)


class Publisher:
    """Publishes many notifications to one broker; made by `Client.publisher`."""

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
    ) -> None:
        if not 1 <= batch <= limits.messages:
            raise ValueError(f"batch is {batch}; a Notify holds 1 to {limits.messages} notifications")
        if in_flight < 1 or max_waiting < 1 or timeout <= 0 or linger < 0 or retry_for < 0:
            raise ValueError(
                f"in_flight={in_flight}, max_waiting={max_waiting}, timeout={timeout}, linger={linger}, "
                f"retry_for={retry_for}: give at least one request and one message, and times from 0 on"
            )
        self.url = check_url(url)
        self._soap = soap
        self.linger = linger
        self.batch = batch
        self._in_flight = in_flight
        self._most = max_waiting
        self._timeout = timeout
        self._retry_for = retry_for
        self._limits = limits
        self._tls = tls
        headers = request_headers(soap, ACTION_NOTIFY, check_soap_action(soap_action))
        self._head = request_head(url) + _header_lines(headers)
        self._ids = (f"{uuid4()}-{number}" for number in itertools.count(1))
        self._waiting: deque[_Entry] = deque()
        self._under_way: deque[_Lot] = deque()
        self._again: list[_Lot] = []
        self._failed: list[FailedBatch] = []
        self._connection: Pipeline | None = None
        self._trouble: Exception | None = None
        self._away_since = 0.0
        self._pause = FIRST_PAUSE
        self._retry_at = 0.0
        self._changed = asyncio.Event()
        self._progress = asyncio.Event()
        self._hurry = 0
        self._closing = False
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
        """Publish one notification soon; waits only while `max_waiting` others wait.

        The future it returns is done when the broker has accepted it. Nobody needs to look at it: what fails
        is raised, as PublishFailed, by a later call, or at the end.
        """
        message = notification_message(topic, payload, producer=producer, namespaces=namespaces)
        self.check()
        (done,) = await self.enqueue([message])
        return done

    async def enqueue(self, messages: Iterable[NotificationMessage]) -> list[asyncio.Future[None]]:
        """Put messages that are made already, and raise nothing about earlier ones."""
        loop = asyncio.get_running_loop()
        made = []
        for message in messages:
            while len(self._waiting) >= self._most and not self._closing:
                self._progress.clear()
                await self._progress.wait()
            if self._closing:
                raise Closed("this publisher was closed; make a new one", self.url)
            entry = _Entry(message, loop.create_future(), loop.time())
            self._waiting.append(entry)
            made.append(entry.done)
            if len(self._waiting) in (1, self.batch):
                self._changed.set()
            if self._task is None or self._task.done():
                self._task = loop.create_task(self._run())
        return made

    async def flush(self) -> None:
        """Send all that waits without lingering; returns when it is accepted, or raises PublishFailed."""
        self._hurry += 1
        self._changed.set()
        try:
            while self._waiting or self._under_way or self._again:
                self._progress.clear()
                await self._progress.wait()
        finally:
            self._hurry -= 1
        self.check()

    async def close(self) -> None:
        """Flush, and close the connection; a second time does nothing."""
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

    def check(self) -> None:
        """Raise PublishFailed where batches have failed since the last time."""
        if not self._failed:
            return
        failed, self._failed = self._failed, []
        count = sum(len(batch.messages) for batch in failed)
        raise PublishFailed(
            f"{count} notifications in {len(failed)} requests were not accepted by {self.url}; "
            f"the first: {failed[0].error}; `failed` has them all, to be put again or dropped",
            self.url,
            failed,
        ) from None

    async def _run(self) -> None:
        """Take the next step, whatever it is, for as long as somebody may put something."""
        try:
            while True:
                await self._step()
        except BaseException as error:
            self._give_up(error if isinstance(error, Exception) else None)
            raise

    async def _step(self) -> None:
        now = asyncio.get_running_loop().time()
        if self._again and not self._under_way and now >= self._retry_at:
            self._under_way.extend(self._again)
            self._again.clear()
            self._rewrite()
        elif self._under_way and self._connection is None and now >= self._retry_at:
            await self._connect()
        elif self._under_way and self._connection is not None and now >= self._under_way[0].due:
            self._connection.close(TimeoutError(f"no answer within {self._timeout:g} s"))
            self._lost(self._connection, TimeoutError(f"no answer within {self._timeout:g} s"))
        elif self._ready(now):
            self._send(self._take(now))
        else:
            await self._wait(now)

    def _ready(self, now: float) -> bool:
        """Whether the next request can go: it is full, or has lingered, and there is room for it."""
        if not self._waiting or self._again or len(self._under_way) >= self._in_flight:
            return False
        full = len(self._waiting) >= self.batch
        return full or bool(self._hurry) or now >= self._waiting[0].put + self.linger

    async def _wait(self, now: float) -> None:
        """Until something changes, or the next time that something is due."""
        times = []
        if self._under_way:
            times.append(self._retry_at if self._connection is None else self._under_way[0].due)
        elif self._again:
            times.append(self._retry_at)
        if self._waiting and not self._again and len(self._under_way) < self._in_flight:
            times.append(self._waiting[0].put + self.linger)
        self._changed.clear()
        try:
            async with asyncio.timeout_at(min(times, default=None)):
                await self._changed.wait()
        except TimeoutError:
            pass

    def _take(self, now: float) -> _Lot:
        """The oldest that go into one request."""
        entries: list[_Entry] = []
        size = 0
        while self._waiting and len(entries) < self.batch:
            size += message_size(self._waiting[0].message)
            if entries and size > NOTIFY_BYTES:
                break
            entries.append(self._waiting.popleft())
        self._progress.set()
        # While the broker is away, waiting is trying too: else lots had their time one after the other.
        first = now if self._trouble is None else max(entries[0].put, self._away_since)
        return _Lot(entries, self._request([entry.message for entry in entries]), first)

    def _request(self, messages: list[NotificationMessage]) -> bytes:
        headers = [
            *addressing_headers(EndpointReference(self.url), ACTION_NOTIFY),
            message_id_header(next(self._ids)),
        ]
        body = encode_envelope(self._soap, encode_notify(messages), headers)
        return b"%sContent-Length: %d\r\n\r\n%s" % (self._head, len(body), body)

    def _send(self, lot: _Lot) -> None:
        self._under_way.append(lot)
        if self._connection is not None:
            self._write(lot)

    def _write(self, lot: _Lot) -> None:
        assert self._connection is not None
        lot.due = asyncio.get_running_loop().time() + self._timeout
        self._connection.write(lot.request)

    def _rewrite(self) -> None:
        if self._connection is not None:
            for lot in self._under_way:
                self._write(lot)

    async def _connect(self) -> None:
        try:
            async with asyncio.timeout(self._timeout):
                self._connection = await Pipeline.open(
                    self.url, self._answered, self._lost, self._limits.body, self._tls
                )
        except (OSError, UnicodeError) as error:
            # A UnicodeError is about a host name that cannot be one.
            self._set_back(error)
        else:
            self._rewrite()

    def _answered(self, connection: Pipeline, raw: RawReply) -> None:
        if connection is not self._connection or not self._under_way:
            connection.close()
            return
        lot = self._under_way.popleft()
        self._pause, self._trouble = FIRST_PAUSE, None
        now = asyncio.get_running_loop().time()
        for other in self._under_way:
            # They are answered one after the other: each has its time from the answer before it.
            other.due = now + self._timeout
        try:
            body_of(
                Reply(self.url, raw.status, _charset(raw), _Headers(raw.headers), raw.content), self._limits
            )
        except Busy as error:
            self._postpone(lot, error, now)
        except Exception as error:
            self._fail(lot, error)
        else:
            self._accept(lot)

    def _postpone(self, lot: _Lot, error: Busy, now: float) -> None:
        if now - lot.first >= self._retry_for:
            self._fail(lot, error)
            return
        self._again.append(lot)
        self._retry_at = now + min(error.retry_after, self._retry_for)
        self._tell()

    def _lost(self, connection: Pipeline, error: Exception | None) -> None:
        if connection is self._connection:
            self._connection = None
            if self._under_way:
                self._set_back(error or ConnectionError("the broker closed it"))
            self._tell()

    def _set_back(self, error: Exception) -> None:
        """Try again soon, and give up those that were tried for too long."""
        now = asyncio.get_running_loop().time()
        self._retry_at = now + (self._pause if self._trouble is not None else 0.0)
        if self._trouble is None:
            self._away_since = now
        else:
            self._pause = min(2 * self._pause, LONGEST_PAUSE)
        self._trouble = error
        while self._under_way and now - self._under_way[0].first >= self._retry_for:
            self._fail(self._under_way.popleft(), _explain(self.url, error))
        if self._away_since < now - self._retry_for:
            self._fail_waiting(now - self._retry_for, _explain(self.url, error))

    def _fail_waiting(self, before: float, error: Exception) -> None:
        """Give up what was put before that time and had no turn."""
        late = []
        while self._waiting and self._waiting[0].put <= before:
            late.append(self._waiting.popleft())
        if late:
            self._fail(_Lot(late, b"", before), error)

    def _accept(self, lot: _Lot) -> None:
        for entry in lot.entries:
            if not entry.done.done():
                entry.done.set_result(None)
        self._tell()

    def _fail(self, lot: _Lot, error: Exception) -> None:
        self._failed.append(FailedBatch(lot.messages, error))
        for entry in lot.entries:
            if not entry.done.done():
                entry.done.set_exception(error)
                # It is reported in any case, so nobody needs to be reminded to look.
                entry.done.exception()
        self._tell()

    def _give_up(self, error: Exception | None) -> None:
        """Leave nobody waiting."""
        reason = error or Closed("this publisher was closed before the broker had answered", self.url)
        for lot in (*self._under_way, *self._again):
            self._fail(lot, reason)
        self._under_way.clear()
        self._again.clear()
        if self._waiting:
            self._fail(_Lot(list(self._waiting), b"", 0.0), reason)
            self._waiting.clear()

    def _tell(self) -> None:
        self._changed.set()
        self._progress.set()


class _Headers(dict[str, str]):
    """Headers whose names are in lower case, asked for in any."""

    def get(self, name: str, default: str = "") -> str:  # type: ignore[override]
        return super().get(name.lower(), default)


def _header_lines(headers: Mapping[str, str]) -> bytes:
    return "".join(f"{name}: {value}\r\n" for name, value in headers.items()).encode()


def _charset(raw: RawReply) -> str | None:
    _, found, value = raw.headers.get("content-type", "").lower().partition("charset=")
    return value.partition(";")[0].strip(' "') or None if found else None


def _explain(url: str, error: Exception) -> Exception:
    """Our exception for what is wrong with the connection."""
    unknown = "it was tried again and again; whether the last request was carried out is not known"
    if isinstance(error, TimeoutError):
        return TimedOut(f"{url}: {str(error) or 'no connection in time'}; {unknown}", url)
    if isinstance(error, NotHttp):
        return BadReply(f"{url} answered badly: {error}; see that a broker listens at this URL", url)
    if (failed := tls_failed(url, error)) is not None:
        return failed
    why = reason_of(error) if isinstance(error, OSError) else str(error)
    return ConnectionFailed(f"{url} cannot be reached ({why}); {unknown}", url)
