"""The receiver: an HTTP server that implements NotificationConsumer (WS-BaseNotification 1.3 section 3).

It accepts Notify in SOAP 1.1 and 1.2, and the bare payload of a raw delivery. It replies to the broker after
the callback has returned, or after the notifications are in the mailbox, the bounded queue for `get` and
`async for`. So a slow reader slows down the broker's deliveries. If the callback fails (500), or the mailbox
stays full (503), the broker retries the delivery. A callback may then see a notification twice; the mailbox
takes all notifications of a delivery or none. Receipts for a publisher have a mailbox of their own.
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime
from inspect import isawaitable
from types import TracebackType
from typing import Generic, Protocol, Self, TypeVar

from aiohttp import web

from hpwsn_client.announcing import announce
from hpwsn_client.environment import bearer_token, check_url
from hpwsn_client.errors import Closed, HpwsnClientError, TimedOut
from hpwsn_client.figures import Counters, Figures
from hpwsn_client.notification import Notification
from hpwsn_client.tls import tls_context
from hpwsn_client.transport import SHUTDOWN, http_url, listen
from hpwsn_client.wsn.operations.notifications import parse_notify
from hpwsn_client.wsn.operations.receipts import RECEIPT, Receipt, parse_receipt
from hpwsn_client.wsn.soap.addressing import EndpointReference
from hpwsn_client.wsn.soap.envelope import Envelope, SoapVersion, check_must_understand, parse_envelope
from hpwsn_client.wsn.soap.faults import Busy, FaultCode, InvalidMessage, SoapFault, TooLarge, encode_fault
from hpwsn_client.wsn.soap.names import hp, wsa, wsnt
from hpwsn_client.wsn.soap.trace_context import TRACEPARENT, parse_traceparent, parse_traces
from hpwsn_client.wsn.soap.xml import DEFAULT_LIMITS, Limits, encode_element

Callback = Callable[[Notification], Awaitable[object] | object]
T = TypeVar("T")

log = logging.getLogger(__name__)

_MAX_WAIT_FOR_ROOM = 10.0
"""Seconds that a delivery waits for room; shorter than the request timeout of brokers."""
_RETRY_AFTER = 1
ANNOUNCE_WITHIN = 5.0
"""Seconds within which the broker must answer an announcement."""
_UNDERSTOOD = {
    *map(wsa, ("Action", "To", "MessageID", "RelatesTo", "ReplyTo", "FaultTo", "From")),
    *map(hp, ("MessageId", "Routing", "Traceparent")),
}


class Receiver:
    """Receives notifications at `url` and passes them to the callback, or to `get` and `async for`."""

    def __init__(
        self,
        host: str = "127.0.0.1",
        port: int = 0,
        *,
        path: str = "/",
        callback: Callback | None = None,
        public_url: str | None = None,
        announce_to: str | None = None,
        max_waiting: int = 1000,
        limits: Limits = DEFAULT_LIMITS,
    ) -> None:
        """`announce_to` is the URL of an HPwsn broker that is told of each start of this receiver.

        It then delivers at once what waits for this URL. An announcement that fails is only logged.
        """
        if not path.startswith("/"):
            raise ValueError(f"the path {path!r} does not begin with '/'; write it like /notifications")
        if max_waiting < 1:
            raise ValueError(f"max_waiting is {max_waiting}; give at least 1")
        if public_url is None and _is_wildcard(host):
            raise ValueError(
                f"the host {host!r} is not an address that the broker can use; give a public_url"
            )
        self._host = host
        self._port = port
        self._path = path
        self._public_url = None if public_url is None else check_url(public_url)
        self._announce_to = None if announce_to is None else check_url(announce_to)
        self._callback = callback
        self._limits = limits
        self._mailbox: Mailbox[Notification] = Mailbox(max_waiting)
        self._receipts: Mailbox[Receipt] = Mailbox(max_waiting)
        self._runner: web.AppRunner | None = None
        self._closed = False
        self._ends_subscriptions = port == 0 and public_url is None
        self._subscriptions: list[EndableSubscription] = []
        self._counters = Counters("receiver")

    async def __aenter__(self) -> Self:
        return await self.open()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()

    async def open(self) -> Self:
        """Start listening; port 0 means any free port."""
        if self._closed:
            raise Closed("this receiver is closed; create a new one", self._public_url or "")
        if self._runner is not None:
            return self
        app = web.Application(client_max_size=self._limits.body)
        app.router.add_post(self._path, self._serve)
        self._runner, self._port = await listen(app, self._host, self._port, self._path)
        if self._announce_to is not None:
            await self._announce(self._announce_to)
        return self

    async def _announce(self, broker: str) -> None:
        try:
            await announce(
                broker, self.url, within=ANNOUNCE_WITHIN, tls=tls_context(None), token=bearer_token()
            )
        except HpwsnClientError as error:
            log.warning("the broker was not told of this receiver, and retries later: %s", error)

    async def close(self) -> None:
        """Stop listening; notifications that were acknowledged can still be read.

        With port 0 and no public URL, the subscriptions of this receiver end too, because no later receiver
        would have the same URL.
        """
        self._closed = True
        await asyncio.gather(*map(_unsubscribe, self._subscriptions))
        self._subscriptions.clear()
        await self._mailbox.close()
        await self._receipts.close()
        runner, self._runner = self._runner, None
        if runner is not None:
            await runner.cleanup()
        self._counters.close()

    def figures(self) -> Figures:
        """What was delivered here."""
        return self._counters.figures()

    def leads_here(self, subscription: EndableSubscription) -> None:
        """Called by a client that has subscribed this receiver."""
        if self._ends_subscriptions:
            self._subscriptions.append(subscription)

    @property
    def url(self) -> str:
        """The URL to which the broker delivers."""
        if self._public_url is None and self._port == 0:
            raise RuntimeError(
                "the receiver is not open and has no URL yet; use `async with` or call open() first"
            )
        return self._public_url or http_url(self._host, self._port, self._path)

    @property
    def epr(self) -> EndpointReference:
        """The receiver's endpoint reference, usable as a consumer."""
        return EndpointReference(self.url)

    async def get(self, timeout: float | None = None) -> Notification:  # noqa: ASYNC109
        """The next notification; TimedOut after `timeout` seconds without one, Closed after `close`."""
        return await self._next(self._mailbox, "notification", timeout)

    async def get_receipt(self, timeout: float | None = None) -> Receipt:  # noqa: ASYNC109
        """The next receipt for notifications published with `receipt_to=` this receiver; see `get`."""
        return await self._next(self._receipts, "receipt", timeout)

    async def _next(self, mailbox: Mailbox[T], what: str, timeout: float | None) -> T:  # noqa: ASYNC109
        try:
            found = await mailbox.get(timeout)
        except TimeoutError:
            raise TimedOut(f"no {what} came to {self.url} within {timeout:g} s", self.url) from None
        if found is None:
            raise Closed(f"the receiver at {self.url} is closed, and all was read", self.url)
        return found

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Notification:
        notification = await self._mailbox.get()
        if notification is None:
            raise StopAsyncIteration
        return notification

    async def _serve(self, request: web.Request) -> web.Response:
        version = SoapVersion.SOAP12 if "soap+xml" in request.content_type else SoapVersion.SOAP11
        relates_to = None
        try:
            envelope = parse_envelope(await self._body(request), self._limits, request.charset, raw=True)
            version, relates_to = envelope.version, envelope.addressing.message_id
            if envelope.body is not None and envelope.body.tag == RECEIPT:
                await self._put(self._receipts, [parse_receipt(envelope.body)])
            else:
                sent = request.headers.get("traceparent", "")
                delivery = _notifications(envelope, self._limits, parse_traceparent(sent))
                await self._deliver(delivery)
                self._counters.received(len(delivery))
        except SoapFault as fault:
            self._counters.add("refused")
            return _fault_response(fault, fault.version or version, relates_to)
        return web.Response(status=202)

    async def _body(self, request: web.Request) -> bytes:
        try:
            return await request.read()
        except web.HTTPRequestEntityTooLarge:
            raise TooLarge(
                f"the request is larger than this receiver's limit of {self._limits.body} bytes"
            ) from None

    async def _deliver(self, delivery: Sequence[Notification]) -> None:
        if self._callback is not None:
            for notification in delivery:
                await self._call_back(self._callback, notification)
        else:
            await self._put(self._mailbox, delivery)

    async def _put(self, mailbox: Mailbox[T], delivery: Sequence[T]) -> None:
        if not await mailbox.put(delivery, _MAX_WAIT_FOR_ROOM):
            raise Busy(
                "the receiver's queue is full, or it is closing; deliver again later",
                retry_after=_RETRY_AFTER,
            )

    async def _call_back(self, callback: Callback, notification: Notification) -> None:
        try:
            result = callback(notification)
            if isawaitable(result):
                await result
        except Exception as error:
            log.exception(
                "the callback failed for a notification on %s; the broker will retry", notification.topic
            )
            raise SoapFault("the receiver's callback failed", code=FaultCode.RECEIVER) from error


class Mailbox(Generic[T]):
    """A bounded queue; a delivery larger than `capacity` is accepted when it is empty."""

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._waiting: deque[T] = deque()
        self._changed = asyncio.Condition()
        self._put_lock = asyncio.Lock()
        self._closed = False

    # There is no await between the end of a wait and the change, so a cancelled reader loses nothing.

    async def put(self, delivery: Sequence[T], max_wait: float) -> bool:
        """Add a delivery as a whole; False after `max_wait` seconds without room, or when closed."""
        try:
            async with asyncio.timeout(max_wait), self._put_lock, self._changed:
                await self._changed.wait_for(lambda: self._closed or self._has_room(len(delivery)))
                if not self._closed:
                    self._waiting.extend(delivery)
                    self._changed.notify_all()
                return not self._closed
        except TimeoutError:
            return False

    async def get(self, timeout: float | None = None) -> T | None:  # noqa: ASYNC109
        """Remove the oldest entry; None when closed and empty, TimeoutError after the timeout."""
        async with asyncio.timeout(timeout), self._changed:
            await self._changed.wait_for(lambda: self._closed or self._waiting)
            self._changed.notify_all()
            return self._waiting.popleft() if self._waiting else None

    async def close(self) -> None:
        """Accept no more deliveries; readers can still empty the queue."""
        async with self._changed:
            self._closed = True
            self._changed.notify_all()

    def _has_room(self, number: int) -> bool:
        return not self._waiting or len(self._waiting) + number <= self._capacity


class EndableSubscription(Protocol):
    """The part of a subscription that a receiver uses."""

    ended: bool

    async def unsubscribe(self) -> None:
        """End the subscription."""


async def _unsubscribe(subscription: EndableSubscription) -> None:
    if subscription.ended:
        return
    with contextlib.suppress(HpwsnClientError, SoapFault, TimeoutError):
        async with asyncio.timeout(SHUTDOWN):
            await subscription.unsubscribe()


def _notifications(envelope: Envelope, limits: Limits, traceparent: str | None) -> list[Notification]:
    """The notifications of a request; `traceparent` is that of its HTTP header, after the SOAP header."""
    references = {h.tag for h in envelope.headers if h.get(wsa("IsReferenceParameter")) in ("true", "1")}
    check_must_understand(envelope, _UNDERSTOOD | references)
    if envelope.body is None:
        raise InvalidMessage("the SOAP body is empty; send wsnt:Notify or one raw payload")
    message_id = _message_id(envelope)
    if envelope.body.tag == wsnt("Notify"):
        messages = parse_notify(envelope.body, limits)
        traces = _traces(envelope, len(messages)) or [traceparent] * len(messages)
        pairs = zip(messages, traces, strict=True)
        return [Notification.of(message, message_id, trace) for message, trace in pairs]
    (trace,) = _traces(envelope, 1) or [traceparent]
    return [Notification(None, encode_element(envelope.body), message_id=message_id, traceparent=trace)]


def _traces(envelope: Envelope, count: int) -> list[str | None]:
    header = envelope.header(TRACEPARENT) if envelope.headers else None
    return [] if header is None else parse_traces(header.text or "", count)


def _message_id(envelope: Envelope) -> str | None:
    """The publisher's message id if the broker forwards it, else the id of the delivery."""
    header = envelope.header(hp("MessageId"))
    return envelope.addressing.message_id if header is None else (header.text or "").strip()


def _fault_response(fault: SoapFault, version: SoapVersion, relates_to: str | None) -> web.Response:
    headers = {"Content-Type": version.content_type}
    if isinstance(fault, Busy):
        headers["Retry-After"] = str(_RETRY_AFTER)
    body = encode_fault(fault, version, datetime.now(UTC), relates_to)
    return web.Response(status=fault.http_status(version), body=body, headers=headers)


def _is_wildcard(host: str) -> bool:
    try:
        return not host or ipaddress.ip_address(host).is_unspecified
    except ValueError:
        return False
