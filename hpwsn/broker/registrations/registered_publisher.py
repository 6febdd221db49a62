"""A publisher's registration as the broker holds it: what was asked for, and where it lives.

State only; `registrations` changes it for its owner, `demand` follows the interest in its topics.

This node as a subscriber of the publishers that registered with it: one SOAP call each.

Owns which message asks for what and what its answer must be; when to ask, and what to do when it fails,
is in demand. A publisher's refusal is raised as its fault, an answer that makes no sense as BadReply. WS-
BaseNotification 1.3, sections 4 and 6, from the subscriber's side.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Protocol, TypeVar

from lxml import etree

from hpwsn_client.errors import BadReply
from hpwsn_client.wsn.operations import messages as wsn
from hpwsn_client.wsn.operations.filters import Filter
from hpwsn_client.wsn.operations.registrations import RegisterPublisher
from hpwsn_client.wsn.soap import faults
from hpwsn_client.wsn.soap.addressing import EndpointReference
from hpwsn_client.wsn.soap.envelope import SoapVersion
from hpwsn_client.wsn.soap.names import request_action
from hpwsn_client.wsn.soap.times import Duration
from hpwsn_client.wsn.topics.topic_expressions import Topic, TopicExpression

_Answer = TypeVar("_Answer")


class Transport(Protocol):
    """The way over HTTP in one SOAP version."""

    async def call(self, target: EndpointReference, action: str, body: bytes) -> etree._Element | None:
        """Send one request and return the answer's body element."""

    async def close(self) -> None:
        """Close the connections."""


class Publishers:
    """Calls publishers in the SOAP version in which each has registered."""

    def __init__(self, transports: Mapping[SoapVersion, Transport], lifetime: float) -> None:
        self._transports = transports
        self._lifetime = Duration(0, lifetime)

    async def close(self) -> None:
        """Close the connections."""
        for transport in self._transports.values():
            await transport.close()

    async def subscribe(
        self, registration: Registration, topic: TopicExpression | None
    ) -> tuple[EndpointReference, float | None]:
        """Subscribe the registration's address to one topic or to all; the EPR and its seconds to live."""
        publisher = registration.request.publisher
        assert publisher is not None
        wanted = Filter() if topic is None else Filter((topic,))
        request = wsn.Subscribe(EndpointReference(registration.address), wanted, self._lifetime)
        version = registration.version
        try:
            answer = await self._call(version, publisher, request, wsn.SubscribeResponse)
        except faults.UnacceptableInitialTerminationTimeFault:
            # It may take no durations, or not this one: then as long as it likes.
            request = wsn.Subscribe(EndpointReference(registration.address), wanted)
            answer = await self._call(version, publisher, request, wsn.SubscribeResponse)
        return answer.subscription, _seconds(answer.termination_time, answer.current_time)

    async def renew(self, version: SoapVersion, subscription: EndpointReference) -> float | None:
        """Prolong a subscription; its seconds to live."""
        request = wsn.Renew(self._lifetime)
        answer = await self._call(version, subscription, request, wsn.RenewResponse)
        return _seconds(answer.termination_time, answer.current_time)

    async def pause(self, version: SoapVersion, subscription: EndpointReference) -> None:
        """Have the publisher hold back."""
        await self._send(version, subscription, wsn.PauseSubscription())

    async def resume(self, version: SoapVersion, subscription: EndpointReference) -> None:
        """Have the publisher send again."""
        await self._send(version, subscription, wsn.ResumeSubscription())

    async def unsubscribe(self, version: SoapVersion, subscription: EndpointReference) -> None:
        """End a subscription."""
        await self._send(version, subscription, wsn.Unsubscribe())

    async def _send(
        self, version: SoapVersion, target: EndpointReference, request: wsn.Message
    ) -> etree._Element | None:
        """The answer whatever it is, if it is no fault: what says nothing may be left out by its sender."""
        action = request_action(type(request).__name__)
        return await self._transports[version].call(target, action, wsn.encode_message(request))

    async def _call(
        self, version: SoapVersion, target: EndpointReference, request: wsn.Message, expected: type[_Answer]
    ) -> _Answer:
        body = await self._send(version, target, request)
        try:
            answer = None if body is None else wsn.parse_message(body)
        except faults.SoapFault as error:
            raise BadReply(f"{target.address} answered badly: {error.reason}", target.address) from error
        if not isinstance(answer, expected):
            found = "nothing" if body is None else body.tag
            raise BadReply(f"{target.address} answered {found}, not {expected.__name__}", target.address)
        return answer


def _seconds(end: datetime | None, now: datetime | None) -> float | None:
    """How long it is to an end on the publisher's own clock; None for never."""
    if end is None:
        return None
    return (end - (now or datetime.now(UTC))).total_seconds()


def is_gone(error: Exception) -> bool:
    """Whether the publisher says that it knows no such subscription."""
    if isinstance(error, BadReply):
        return error.status in (404, 410)
    return isinstance(error, faults.ResourceUnknownFault)


@dataclass(slots=True, eq=False)
class Registration:
    """One publisher's standing announcement; compared by identity."""

    id: str
    request: RegisterPublisher
    version: SoapVersion
    created: float
    terminates: float | None
    address: str
    """Where it is managed, and where its publisher sends its notifications."""

    @property
    def topics(self) -> tuple[TopicExpression, ...]:
        """What it publishes on; none for anything."""
        return self.request.topics

    @property
    def demand(self) -> bool:
        """Whether it wants to be subscribed to only while somebody is interested."""
        return self.request.demand

    def covers(self, topic: Topic | None, simple_subtree: bool) -> bool:
        """Whether the topic is among those it named, or it named none."""
        if not self.topics:
            return True
        return topic is not None and any(each.matches(topic, simple_subtree) for each in self.topics)
