"""A publisher on demand: a small web service at which a broker subscribes while somebody is interested.

It takes Subscribe, Renew, PauseSubscription, ResumeSubscription and Unsubscribe (WS-BaseNotification 1.3,
sections 4 and 6), in either SOAP version, and sends notifications to those subscribers that want them now.
Subscriptions are in memory: after a restart of the publisher, registering again makes the broker ask again.
A topic filter is all that it knows; another filter is refused with InvalidFilterFault.
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
"""Brokers, times the topics that each of them wants."""


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
    """Publishes to the brokers that want it; `on_change` is called after each change of what they want."""

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
        """Start listening; port 0 takes a free one."""
        app = web.Application()
        app.router.add_post(self._path or "/", self._serve)
        app.router.add_post(f"{self._path}/{{id}}", self._serve)
        self._runner, self._port = await listen(app, self._host, self._port, self._path)
        return self

    async def close(self) -> None:
        """Stop listening; the broker will try to come back as long as the registration lives."""
        runner, self._runner = self._runner, None
        if runner is not None:
            await runner.cleanup()
        for transport in self._transports.values():
            await transport.close()

    @property
    def epr(self) -> EndpointReference:
        """The publisher as a publisher reference."""
        return EndpointReference(self._public_url or http_url(self._host, self._port, self._path or "/"))

    def wanted(self, topic: TopicLike | None) -> bool:
        """Whether somebody wants notifications on this topic now."""
        named = None if topic is None else concrete_topic(topic).topic
        return any(subscriber.wants(named) for subscriber in self._subscribers.values())

    async def wait_until_wanted(self, topic: TopicLike | None) -> None:
        """Wait until somebody wants notifications on this topic."""
        while not self.wanted(topic):
            self._changed.clear()
            await self._changed.wait()

    async def notify(self, topic: TopicLike | None, payload: Payload) -> int:
        """Publish one notification to those who want it, and return how many they are, perhaps none."""
        named = None if topic is None else concrete_topic(topic).topic
        found = {s.request.consumer: s.version for s in self._subscribers.values() if s.wants(named)}
        if not found:
            return 0
        body = encode_notify([notification_message(topic, payload, producer=self.epr)])
        for consumer, version in found.items():
            await self._transports[version].call(consumer, ACTION_NOTIFY, body)
        return len(found)

    async def _serve(self, request: web.Request) -> web.Response:
        version = SoapVersion.SOAP12 if "soap+xml" in request.content_type else SoapVersion.SOAP11
        relates_to = None
        try:
            envelope = parse_envelope(await request.read(), charset=request.charset)
            version, relates_to = envelope.version, envelope.addressing.message_id
            answer = self._run(envelope, request.match_info.get("id"))
        except SoapFault as fault:
            return _refuse(fault, version, relates_to)
        self._tell()
        data = encode_envelope(version, encode_message(answer), _headers(envelope))
        return web.Response(body=data, headers={"Content-Type": version.content_type})

    def _tell(self) -> None:
        self._changed.set()
        if self._on_change is not None:
            self._on_change()

    def _run(self, envelope: Envelope, id_: str | None) -> Message:
        if envelope.body is None:
            raise InvalidMessage("the SOAP body is empty; it must hold one request element")
        request = parse_message(envelope.body)
        if id_ is None and isinstance(request, Subscribe):
            return self._subscribe(request, envelope.version)
        if id_ is None:
            raise ActionNotSupported(f"{envelope.body.tag} is not for a publisher; it takes wsnt:Subscribe")
        return self._manage(id_, request)

    def _subscribe(self, request: Subscribe, version: SoapVersion) -> SubscribeResponse:
        if request.filter.content or request.filter.producer_properties:
            unknown = (wsnt("MessageContent" if request.filter.content else "ProducerProperties"),)
            raise InvalidFilterFault("a publisher knows topic filters alone", unknown_filters=unknown)
        now = datetime.now(UTC)
        end = _end(request.termination, now, UnacceptableInitialTerminationTimeFault)
        self._drop_expired(now)
        known = (id_ for id_, each in self._subscribers.items() if _is_same(each.request, request))
        id_ = next(known, secrets.token_hex(8))
        if id_ not in self._subscribers and len(self._subscribers) >= MOST_SUBSCRIBERS:
            raise SubscribeCreationFailedFault(
                f"this publisher has its limit of {MOST_SUBSCRIBERS} subscribers"
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
            raise ResourceUnknownFault(f"there is no subscription {id_[:80]!r} here; subscribe again")
        if isinstance(request, Renew):
            now = datetime.now(UTC)
            subscriber.terminates = _end(request.termination, now, UnacceptableTerminationTimeFault)
            return RenewResponse(subscriber.terminates, now)
        if isinstance(request, Unsubscribe):
            del self._subscribers[id_]
            return UnsubscribeResponse()
        if isinstance(request, PauseSubscription | ResumeSubscription):
            subscriber.paused = isinstance(request, PauseSubscription)
            return PauseSubscriptionResponse() if subscriber.paused else ResumeSubscriptionResponse()
        raise ActionNotSupported(f"{type(request).__name__} is no operation of a subscription")


def _is_same(one: Subscribe, other: Subscribe) -> bool:
    return (one.consumer, one.filter) == (other.consumer, other.filter)


def _end(
    termination: Termination,
    now: datetime,
    fault: type[UnacceptableInitialTerminationTimeFault | UnacceptableTerminationTimeFault],
) -> datetime | None:
    try:
        end = termination.after(now) if isinstance(termination, Duration) else termination
    except ValueError as error:
        raise fault(f"the duration asked for leads outside of the calendar: {error}") from None
    if end is not None and end <= now:
        raise fault(f"the time asked for, {end.isoformat()}, is not in the future")
    return end


def _refuse(fault: SoapFault, version: SoapVersion, relates_to: str | None) -> web.Response:
    version = fault.version or version
    body = encode_fault(fault, version, datetime.now(UTC), relates_to)
    headers = {"Content-Type": version.content_type}
    return web.Response(status=fault.http_status(version), body=body, headers=headers)


def _headers(envelope: Envelope) -> tuple[bytes, ...]:
    asked = envelope.addressing
    if asked.message_id is None or envelope.body is None:
        return ()
    action = response_action(etree.QName(envelope.body).localname)
    return encode_addressing(
        Addressing(action=action, message_id=f"urn:uuid:{secrets.token_hex(16)}", relates_to=asked.message_id)
    )
