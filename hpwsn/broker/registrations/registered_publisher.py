"""A registered publisher: its Registration, and the SOAP calls by which this node subscribes at it.

`registrations` changes the Registration; `demand` decides when to call and handles failures. A fault of the
publisher is raised as that fault, an unexpected answer as BadReply. WS-BaseNotification 1.3, sections 4 and
6, from the subscriber's side.
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


@dataclass(slots=True, eq=False)
class Registration:
    """One registration of a publisher; compared by identity."""

    id: str
    request: RegisterPublisher
    version: SoapVersion
    created: float
    terminates: float | None
    address: str
    """The URL for managing the registration, and for notifications of its publisher."""

    @property
    def topics(self) -> tuple[TopicExpression, ...]:
        """The registered topics; empty means any topic."""
        return self.request.topics

    @property
    def demand(self) -> bool:
        """Whether this node subscribes at the publisher only while there is interest."""
        return self.request.demand

    def covers(self, topic: Topic | None, simple_subtree: bool) -> bool:
        """Whether the topic is a registered one; always True for a registration without topics."""
        if not self.topics:
            return True
        return topic is not None and any(each.matches(topic, simple_subtree) for each in self.topics)


class Transport(Protocol):
    """Sends SOAP requests over HTTP in one SOAP version."""

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
        """Subscribe the registration's address to one topic or to all; return the EPR and its lease in s."""
        publisher = registration.request.publisher
        assert publisher is not None
        wanted = Filter() if topic is None else Filter((topic,))
        request = wsn.Subscribe(EndpointReference(registration.address), wanted, self._lifetime)
        version = registration.version
        try:
            answer = await self._call(version, publisher, request, wsn.SubscribeResponse)
        except faults.UnacceptableInitialTerminationTimeFault:
            # The publisher refuses this duration, or all durations: let it choose.
            request = wsn.Subscribe(EndpointReference(registration.address), wanted)
            answer = await self._call(version, publisher, request, wsn.SubscribeResponse)
        return answer.subscription, _seconds(answer.termination_time, answer.current_time)

    async def renew(self, version: SoapVersion, subscription: EndpointReference) -> float | None:
        """Renew a subscription; return its lease in seconds, None for no end."""
        request = wsn.Renew(self._lifetime)
        answer = await self._call(version, subscription, request, wsn.RenewResponse)
        return _seconds(answer.termination_time, answer.current_time)

    async def pause(self, version: SoapVersion, subscription: EndpointReference) -> None:
        """Pause a subscription at the publisher."""
        await self._send(version, subscription, wsn.PauseSubscription())

    async def resume(self, version: SoapVersion, subscription: EndpointReference) -> None:
        """Resume a subscription at the publisher."""
        await self._send(version, subscription, wsn.ResumeSubscription())

    async def unsubscribe(self, version: SoapVersion, subscription: EndpointReference) -> None:
        """End a subscription."""
        await self._send(version, subscription, wsn.Unsubscribe())

    async def _send(
        self, version: SoapVersion, target: EndpointReference, request: wsn.Message
    ) -> etree._Element | None:
        """Send a request; return the body unchecked, because a publisher may omit an empty response."""
        action = request_action(type(request).__name__)
        return await self._transports[version].call(target, action, wsn.encode_message(request))

    async def _call(
        self, version: SoapVersion, target: EndpointReference, request: wsn.Message, expected: type[_Answer]
    ) -> _Answer:
        body = await self._send(version, target, request)
        try:
            answer = None if body is None else wsn.parse_message(body)
        except faults.SoapFault as error:
            raise BadReply(
                f"the answer of {target.address} is not valid: {error.reason}", target.address
            ) from error
        if not isinstance(answer, expected):
            found = "nothing" if body is None else body.tag
            raise BadReply(f"{target.address} answered {found}, not {expected.__name__}", target.address)
        return answer


def _seconds(end: datetime | None, now: datetime | None) -> float | None:
    """Seconds until an end on the publisher's own clock; None for no end."""
    if end is None:
        return None
    return (end - (now or datetime.now(UTC))).total_seconds()


def is_gone(error: Exception) -> bool:
    """Whether the publisher says that the subscription does not exist."""
    if isinstance(error, BadReply):
        return error.status in (404, 410)
    return isinstance(error, faults.ResourceUnknownFault)
