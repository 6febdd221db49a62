"""The demand-based publisher: an HTTP server at which brokers subscribe while a topic has subscribers.

It implements Subscribe, Renew, PauseSubscription, ResumeSubscription and Unsubscribe (WS-BaseNotification
1.3, sections 4 and 6) in both SOAP versions, and sends notifications to the current subscribers.
Subscriptions are kept in memory: after a restart, register the publisher again, and the broker subscribes
again. Only topic filters are supported; other filters get InvalidFilterFault.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from types import TracebackType
from typing import Self

from aiohttp import web
from lxml import etree

from hpwsn_client.arguments import Payload, TopicLike, concrete_topic, notification_message
from hpwsn_client.environment import check_url
from hpwsn_client.tls import Tls, tls_context
from hpwsn_client.transport import Transport, http_url, listen
from hpwsn_client.wsn.operations.messages import (
    Message,
    PauseSubscription,
    PauseSubscriptionResponse,
    Renew,
    RenewResponse,
    ResumeSubscription,
    ResumeSubscriptionResponse,
    Subscribe,
    SubscribeResponse,
    Unsubscribe,
    UnsubscribeResponse,
    encode_message,
    parse_message,
)
from hpwsn_client.wsn.operations.notifications import encode_notify
from hpwsn_client.wsn.soap.addressing import Addressing, EndpointReference, encode_addressing
from hpwsn_client.wsn.soap.envelope import Envelope, SoapVersion, encode_envelope, parse_envelope
from hpwsn_client.wsn.soap.faults import (
    ActionNotSupported,
    InvalidFilterFault,
    InvalidMessage,
    ResourceUnknownFault,
    SoapFault,
    SubscribeCreationFailedFault,
    UnacceptableInitialTerminationTimeFault,
    UnacceptableTerminationTimeFault,
    encode_fault,
)
from hpwsn_client.wsn.soap.names import ACTION_NOTIFY, response_action, wsnt
from hpwsn_client.wsn.soap.times import Duration, Termination
from hpwsn_client.wsn.soap.version import SoapAction
from hpwsn_client.wsn.topics.topic_expressions import Topic

MOST_SUBSCRIBERS = 1000
"""Maximum number of subscriptions: the brokers times the topics of each."""


@dataclass(slots=True)
class _Subscriber:
    request: Subscribe
    version: SoapVersion
    terminates: datetime | None
    paused: bool = False

    def wants(self, topic: Topic | None) -> bool:
        if self.paused or (self.terminates is not None and self.terminates <= datetime.now(UTC)):
            return False
        topics = self.request.filter.topics
        return all(topic is not None and expression.matches(topic) for expression in topics)


class DemandPublisher:
    """Publishes to subscribed brokers; `on_change` is called after each change of the subscriptions."""

    def __init__(
        self,
        host: str = "127.0.0.1",
        port: int = 0,
        *,
        path: str = "/",
        public_url: str | None = None,
        soap_action: SoapAction = "empty",
        timeout: float = 30.0,
        on_change: Callable[[], object] | None = None,
        tls: Tls | None = None,
    ) -> None:
        self._host = host
        self._port = port
        self._path = path.rstrip("/")
        self._public_url = None if public_url is None else check_url(public_url).rstrip("/")
        self._on_change = on_change
        self._subscribers: dict[str, _Subscriber] = {}
        secure = tls_context(tls)
        self._transports = {
            version: Transport(version, soap_action=soap_action, timeout=timeout, tls=secure)
            for version in SoapVersion
        }
        self._changed = asyncio.Event()
        self._runner: web.AppRunner | None = None

    async def __aenter__(self) -> Self:
        return await self.open()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()

    async def open(self) -> Self:
        """Start listening; port 0 means any free port."""
        app = web.Application()
        app.router.add_post(self._path or "/", self._serve)
        app.router.add_post(f"{self._path}/{{id}}", self._serve)
        self._runner, self._port = await listen(app, self._host, self._port, self._path)
        return self

    async def close(self) -> None:
        """Stop listening; the broker retries to subscribe until the registration ends."""
        runner, self._runner = self._runner, None
        if runner is not None:
            await runner.cleanup()
        for transport in self._transports.values():
            await transport.close()

    @property
    def epr(self) -> EndpointReference:
        """The publisher's endpoint reference."""
        return EndpointReference(self._public_url or http_url(self._host, self._port, self._path or "/"))

    def wanted(self, topic: TopicLike | None) -> bool:
        """Whether a broker is subscribed to this topic now."""
        named = None if topic is None else concrete_topic(topic).topic
        return any(subscriber.wants(named) for subscriber in self._subscribers.values())

    async def wait_until_wanted(self, topic: TopicLike | None) -> None:
        """Wait until a broker is subscribed to this topic."""
        while not self.wanted(topic):
            self._changed.clear()
            await self._changed.wait()

    async def notify(self, topic: TopicLike | None, payload: Payload) -> int:
        """Publish one notification to the subscribed brokers and return their number, possibly 0."""
        named = None if topic is None else concrete_topic(topic).topic
        consumers = {s.request.consumer: s.version for s in self._subscribers.values() if s.wants(named)}
        if not consumers:
            return 0
        body = encode_notify([notification_message(topic, payload, producer=self.epr)])
        for consumer, version in consumers.items():
            await self._transports[version].call(consumer, ACTION_NOTIFY, body)
        return len(consumers)

    async def _serve(self, request: web.Request) -> web.Response:
        version = SoapVersion.SOAP12 if "soap+xml" in request.content_type else SoapVersion.SOAP11
        relates_to = None
        try:
            envelope = parse_envelope(await request.read(), charset=request.charset)
            version, relates_to = envelope.version, envelope.addressing.message_id
            answer = self._handle(envelope, request.match_info.get("id"))
        except SoapFault as fault:
            return _fault_response(fault, version, relates_to)
        self._subscriptions_changed()
        data = encode_envelope(version, encode_message(answer), _reply_headers(envelope))
        return web.Response(body=data, headers={"Content-Type": version.content_type})

    def _subscriptions_changed(self) -> None:
        self._changed.set()
        if self._on_change is not None:
            self._on_change()

    def _handle(self, envelope: Envelope, id_: str | None) -> Message:
        if envelope.body is None:
            raise InvalidMessage("the SOAP body is empty; send one request element")
        request = parse_message(envelope.body)
        if id_ is None and isinstance(request, Subscribe):
            return self._subscribe(request, envelope.version)
        if id_ is None:
            raise ActionNotSupported(f"a publisher does not support {envelope.body.tag}; send wsnt:Subscribe")
        return self._manage(id_, request)

    def _subscribe(self, request: Subscribe, version: SoapVersion) -> SubscribeResponse:
        if request.filter.content or request.filter.producer_properties:
            unknown = (wsnt("MessageContent" if request.filter.content else "ProducerProperties"),)
            raise InvalidFilterFault(
                "this publisher supports only topic filters; leave the other filters out",
                unknown_filters=unknown,
            )
        now = datetime.now(UTC)
        end = _termination_time(request.termination, now, UnacceptableInitialTerminationTimeFault)
        self._drop_expired(now)
        known = (id_ for id_, each in self._subscribers.items() if _same_subscription(each.request, request))
        id_ = next(known, secrets.token_hex(8))
        if id_ not in self._subscribers and len(self._subscribers) >= MOST_SUBSCRIBERS:
            raise SubscribeCreationFailedFault(
                f"this publisher has its limit of {MOST_SUBSCRIBERS} subscribers; end one first"
            )
        self._subscribers[id_] = _Subscriber(request, version, end)
        address = EndpointReference(f"{self.epr.address.rstrip('/')}/{id_}")
        return SubscribeResponse(address, now, end)

    def _drop_expired(self, now: datetime) -> None:
        for id_, subscriber in list(self._subscribers.items()):
            if subscriber.terminates is not None and subscriber.terminates <= now:
                del self._subscribers[id_]

    def _manage(self, id_: str, request: Message) -> Message:
        self._drop_expired(datetime.now(UTC))
        subscriber = self._subscribers.get(id_)
        if subscriber is None:
            raise ResourceUnknownFault(f"subscription {id_[:80]!r} does not exist; subscribe again")
        if isinstance(request, Renew):
            now = datetime.now(UTC)
            subscriber.terminates = _termination_time(
                request.termination, now, UnacceptableTerminationTimeFault
            )
            return RenewResponse(subscriber.terminates, now)
        if isinstance(request, Unsubscribe):
            del self._subscribers[id_]
            return UnsubscribeResponse()
        if isinstance(request, PauseSubscription | ResumeSubscription):
            subscriber.paused = isinstance(request, PauseSubscription)
            return PauseSubscriptionResponse() if subscriber.paused else ResumeSubscriptionResponse()
        raise ActionNotSupported(f"a subscription does not support {type(request).__name__}")


def _same_subscription(one: Subscribe, other: Subscribe) -> bool:
    return (one.consumer, one.filter) == (other.consumer, other.filter)


def _termination_time(
    termination: Termination,
    now: datetime,
    fault: type[UnacceptableInitialTerminationTimeFault | UnacceptableTerminationTimeFault],
) -> datetime | None:
    try:
        end = termination.after(now) if isinstance(termination, Duration) else termination
    except ValueError as error:
        raise fault(f"the requested duration ends outside the calendar: {error}") from None
    if end is not None and end <= now:
        raise fault(f"the requested time {end.isoformat()} is not in the future")
    return end


def _fault_response(fault: SoapFault, version: SoapVersion, relates_to: str | None) -> web.Response:
    version = fault.version or version
    body = encode_fault(fault, version, datetime.now(UTC), relates_to)
    headers = {"Content-Type": version.content_type}
    return web.Response(status=fault.http_status(version), body=body, headers=headers)


def _reply_headers(envelope: Envelope) -> tuple[bytes, ...]:
    addressing = envelope.addressing
    if addressing.message_id is None or envelope.body is None:
        return ()
    action = response_action(etree.QName(envelope.body).localname)
    return encode_addressing(
        Addressing(
            action=action, message_id=f"urn:uuid:{secrets.token_hex(16)}", relates_to=addressing.message_id
        )
    )
