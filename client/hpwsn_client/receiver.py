"""The subscriber's own web service: a NotificationConsumer (WS-BaseNotification 1.3 section 3) on
aiohttp.

It takes Notify in SOAP 1.1 and 1.2 with any number of messages, and the bare payload of a raw delivery.
The broker has its answer only when the notification is in the user's hands: the callback has returned, or
there was room among those that wait for the iterator. So a slow reader slows the broker's deliveries to
it, and nothing acknowledged is lost on the way. Where a callback fails (500) or there is no room for too
long (503), the broker keeps the delivery and tries again, and the subscriber may see a part of it twice.

A bounded queue of notifications between a receiver's HTTP service and the code that reads it.

All notifications of one delivery go in together or not at all, so that a delivery refused for want of
room can be repeated without doubling a part of it. Closing lets readers finish what is in it.
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
from typing import Protocol, Self

from aiohttp import web

from hpwsn_client.environment import check_url
from hpwsn_client.errors import Closed, HpwsnClientError, TimedOut
from hpwsn_client.notification import Notification
from hpwsn_client.transport import SHUTDOWN, http_url, listen
from hpwsn_client.wsn.operations.notifications import parse_notify
from hpwsn_client.wsn.soap.addressing import EndpointReference
from hpwsn_client.wsn.soap.envelope import Envelope, SoapVersion, check_must_understand, parse_envelope
from hpwsn_client.wsn.soap.faults import Busy, FaultCode, InvalidMessage, SoapFault, TooLarge, encode_fault
from hpwsn_client.wsn.soap.names import hp, wsa, wsnt
from hpwsn_client.wsn.soap.xml import DEFAULT_LIMITS, Limits, encode_element


class Mailbox:
    """Holds up to `capacity` notifications; a delivery larger than that goes into an empty one."""

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._waiting: deque[Notification] = deque()
        self._changed = asyncio.Condition()
        self._turn = asyncio.Lock()
        self._closed = False

    # Nothing is awaited between a wait that ends well and the change: a cancelled reader loses nothing.

    async def put(self, delivery: Sequence[Notification], patience: float) -> bool:
        """Add a whole delivery once there is room; False where there was none in time, or all is closed."""
        try:
            async with asyncio.timeout(patience), self._turn, self._changed:
                await self._changed.wait_for(lambda: self._closed or self._has_room(len(delivery)))
                if not self._closed:
                    self._waiting.extend(delivery)
                    self._changed.notify_all()
                return not self._closed
        except TimeoutError:
            return False

    async def get(self, timeout: float | None = None) -> Notification | None:  # noqa: ASYNC109
        """Take the oldest; TimeoutError where none came in time, None where all is closed and read."""
        async with asyncio.timeout(timeout), self._changed:
            await self._changed.wait_for(lambda: self._closed or self._waiting)
            self._changed.notify_all()
            return self._waiting.popleft() if self._waiting else None

    async def close(self) -> None:
        """Take nothing more, and wake everyone who waits."""
        async with self._changed:
            self._closed = True
            self._changed.notify_all()

    def _has_room(self, number: int) -> bool:
        return not self._waiting or len(self._waiting) + number <= self._capacity


Callback = Callable[[Notification], Awaitable[object] | object]

log = logging.getLogger(__name__)

_PATIENCE = 10.0
"""Seconds a delivery waits for room: less than brokers wait for an answer."""
_RETRY_AFTER = 1
_UNDERSTOOD = {
    *map(wsa, ("Action", "To", "MessageID", "RelatesTo", "ReplyTo", "FaultTo", "From")),
    *map(hp, ("MessageId", "Routing")),
}


class Ending(Protocol):
    """A subscription, as far as its receiver needs to know it."""

    ended: bool

    async def unsubscribe(self) -> None:
        """End it."""


async def _end(subscription: Ending) -> None:
    if subscription.ended:
        return
    with contextlib.suppress(HpwsnClientError, SoapFault, TimeoutError):
        async with asyncio.timeout(SHUTDOWN):
            await subscription.unsubscribe()


class Receiver:
    """Receives notifications at `url`, for a callback, or for `async for` and `get`."""

    def __init__(
        self,
        host: str = "127.0.0.1",
        port: int = 0,
        *,
        path: str = "/",
        callback: Callback | None = None,
        public_url: str | None = None,
        max_waiting: int = 1000,
        limits: Limits = DEFAULT_LIMITS,
    ) -> None:
        if not path.startswith("/"):
            raise ValueError(f"the path {path!r} does not begin with '/'; write it like /notifications")
        if max_waiting < 1:
            raise ValueError(f"max_waiting is {max_waiting}; a receiver holds at least one notification")
        if public_url is None and _is_wildcard(host):
            raise ValueError(
                f"a receiver on {host!r} does not know how the broker can reach it; give a public_url"
            )
        self._host = host
        self._port = port
        self._path = path
        self._public_url = None if public_url is None else check_url(public_url)
        self._callback = callback
        self._limits = limits
        self._mailbox = Mailbox(max_waiting)
        self._runner: web.AppRunner | None = None
        self._closed = False
        self._passing = port == 0 and public_url is None
        self._subscriptions: list[Ending] = []

    async def __aenter__(self) -> Self:
        return await self.open()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()

    async def open(self) -> Self:
        """Start listening; port 0 takes a free one."""
        if self._closed:
            raise Closed("this receiver was closed; make a new one", self._public_url or "")
        if self._runner is not None:
            return self
        app = web.Application(client_max_size=self._limits.body)
        app.router.add_post(self._path, self._serve)
        self._runner, self._port = await listen(app, self._host, self._port, self._path)
        return self

    async def close(self) -> None:
        """Stop listening; what was acknowledged can still be read, then the iteration ends.

        Subscriptions that lead to a port that was free by chance end with it, as nobody can come back to it.
        """
        self._closed = True
        await asyncio.gather(*map(_end, self._subscriptions))
        self._subscriptions.clear()
        await self._mailbox.close()
        runner, self._runner = self._runner, None
        if runner is not None:
            await runner.cleanup()

    def leads_here(self, subscription: Ending) -> None:
        """Told by a client of a subscription whose consumer is this receiver."""
        if self._passing:
            self._subscriptions.append(subscription)

    @property
    def url(self) -> str:
        """Where the broker delivers to."""
        if self._public_url is None and self._port == 0:
            raise RuntimeError("the receiver has no URL before it is open; use `async with` or open() first")
        return self._public_url or http_url(self._host, self._port, self._path)

    @property
    def epr(self) -> EndpointReference:
        """The receiver as a consumer reference."""
        return EndpointReference(self.url)

    async def get(self, timeout: float | None = None) -> Notification:  # noqa: ASYNC109
        """The next notification; TimedOut where none comes in time, Closed where none will come."""
        try:
            notification = await self._mailbox.get(timeout)
        except TimeoutError:
            raise TimedOut(f"no notification came to {self.url} within {timeout:g} s", self.url) from None
        if notification is None:
            raise Closed(f"the receiver at {self.url} is closed, and all was read", self.url)
        return notification

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
            await self._hand_over(_notifications(envelope, self._limits))
        except SoapFault as fault:
            return _fault_response(fault, fault.version or version, relates_to)
        return web.Response(status=202)

    async def _body(self, request: web.Request) -> bytes:
        try:
            return await request.read()
        except web.HTTPRequestEntityTooLarge:
            raise TooLarge(
                f"the request is larger than this receiver's limit of {self._limits.body} bytes"
            ) from None

    async def _hand_over(self, delivery: Sequence[Notification]) -> None:
        if self._callback is not None:
            for notification in delivery:
                await self._call_back(self._callback, notification)
        elif not await self._mailbox.put(delivery, _PATIENCE):
            raise Busy(
                "the subscriber reads too slowly, or is closing; deliver again later",
                retry_after=_RETRY_AFTER,
            )

    async def _call_back(self, callback: Callback, notification: Notification) -> None:
        try:
            result = callback(notification)
            if isawaitable(result):
                await result
        except Exception as error:
            log.exception(
                "the callback failed on a notification on %s; the broker will retry", notification.topic
            )
            raise SoapFault(
                "the subscriber could not handle the notification", code=FaultCode.RECEIVER
            ) from error


def _notifications(envelope: Envelope, limits: Limits) -> list[Notification]:
    references = {h.tag for h in envelope.headers if h.get(wsa("IsReferenceParameter")) in ("true", "1")}
    check_must_understand(envelope, _UNDERSTOOD | references)
    if envelope.body is None:
        raise InvalidMessage("the SOAP body is empty; a receiver takes wsnt:Notify or one raw payload")
    message_id = _message_id(envelope)
    if envelope.body.tag == wsnt("Notify"):
        return [Notification.of(message, message_id) for message in parse_notify(envelope.body, limits)]
    return [Notification(None, encode_element(envelope.body), message_id=message_id)]


def _message_id(envelope: Envelope) -> str | None:
    """The publisher's id where the broker hands it on, else the delivery's own."""
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
