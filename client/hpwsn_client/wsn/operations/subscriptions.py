"""Making and managing subscriptions: the messages of NotificationProducer and of the subscription managers.

WS-BaseNotification 1.3 sections 4 and 6 (schema b-2): Subscribe, GetCurrentMessage, Renew, Unsubscribe,
PauseSubscription, ResumeSubscription and their responses. Knows no clock, so a lifetime that is over
already is not its affair; one that is no time at all is the standard's Unacceptable fault.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from lxml import etree

from hpwsn_client.wsn.operations.filters import Filter, encode_filter, parse_filter
from hpwsn_client.wsn.operations.policy import SubscriptionPolicy, encode_policy, parse_policy
from hpwsn_client.wsn.soap.addressing import EndpointReference, encode_epr, parse_epr
from hpwsn_client.wsn.soap.faults import (
    UnacceptableInitialTerminationTimeFault,
    UnacceptableTerminationTimeFault,
)
from hpwsn_client.wsn.soap.names import HPWSN, WSNT, XSI, hp, wsnt
from hpwsn_client.wsn.soap.sequence import (
    children_of,
    encode_sequence,
    is_nil,
    parse_sequence,
    required,
    text_of,
)
from hpwsn_client.wsn.soap.soap_faults import InvalidMessage, SoapFault
from hpwsn_client.wsn.soap.times import Termination, format_time, parse_time
from hpwsn_client.wsn.soap.xml import STORED_LIMITS, encode_element, parse_xml
from hpwsn_client.wsn.topics.topic_expressions import TopicExpression, encode_topic, parse_topic

_WRAPPER = hp("message")
_EVERYTHING = Filter()
_USUAL = SubscriptionPolicy()


@dataclass(frozen=True, slots=True)
class Subscribe:
    """A request for notifications; a termination of None asks for ever."""

    consumer: EndpointReference
    filter: Filter = _EVERYTHING
    termination: Termination = None
    policy: SubscriptionPolicy = _USUAL
    extensions: tuple[bytes, ...] = ()


@dataclass(frozen=True, slots=True)
class SubscribeResponse:
    """Where the subscription lives and until when; a termination_time of None is for ever."""

    subscription: EndpointReference
    current_time: datetime | None = None
    termination_time: datetime | None = None


@dataclass(frozen=True, slots=True)
class Renew:
    """A request for another lifetime; None asks for ever."""

    termination: Termination


@dataclass(frozen=True, slots=True)
class RenewResponse:
    """The lifetime that was granted; None is for ever."""

    termination_time: datetime | None
    current_time: datetime | None = None


@dataclass(frozen=True, slots=True)
class Unsubscribe:
    """A request to end the subscription it is sent to."""


@dataclass(frozen=True, slots=True)
class UnsubscribeResponse:
    """The subscription has ended."""


@dataclass(frozen=True, slots=True)
class PauseSubscription:
    """A request to hold notifications back."""


@dataclass(frozen=True, slots=True)
class PauseSubscriptionResponse:
    """Notifications are held back from now on."""


@dataclass(frozen=True, slots=True)
class ResumeSubscription:
    """A request to send again, what was held back first."""


@dataclass(frozen=True, slots=True)
class ResumeSubscriptionResponse:
    """Notifications are sent again."""


@dataclass(frozen=True, slots=True)
class GetCurrentMessage:
    """A request for the last message on a topic."""

    topic: TopicExpression


@dataclass(frozen=True, slots=True)
class GetCurrentMessageResponse:
    """The payload of that message."""

    payload: bytes


def parse_subscribe(element: etree._Element) -> Subscribe:
    """Read a Subscribe."""
    (consumer, wanted, lifetime, policy), extensions = parse_sequence(
        element, "ConsumerReference", "Filter", "InitialTerminationTime", "SubscriptionPolicy"
    )
    return Subscribe(
        parse_epr(required(element, consumer, "ConsumerReference")),
        _EVERYTHING if wanted is None else parse_filter(wanted),
        None if lifetime is None else _parse_lifetime(lifetime, UnacceptableInitialTerminationTimeFault),
        _USUAL if policy is None else parse_policy(policy),
        tuple(map(encode_element, extensions)),
    )


def encode_subscribe(message: Subscribe) -> bytes:
    """Write a Subscribe, without the parts that say nothing."""
    return encode_sequence(
        "Subscribe",
        encode_epr(message.consumer, wsnt("ConsumerReference")),
        b"" if message.filter == _EVERYTHING else encode_filter(message.filter),
        b"" if message.termination is None else _encode_time("InitialTerminationTime", message.termination),
        b"" if message.policy == _USUAL else encode_policy(message.policy),
        *message.extensions,
    )


def parse_subscribe_response(element: etree._Element) -> SubscribeResponse:
    """Read a SubscribeResponse."""
    (subscription, now, end), _ = parse_sequence(
        element, "SubscriptionReference", "CurrentTime", "TerminationTime"
    )
    reference = parse_epr(required(element, subscription, "SubscriptionReference"))
    return SubscribeResponse(reference, _parse_moment(now), _parse_moment(end))


def encode_subscribe_response(message: SubscribeResponse) -> bytes:
    """Write a SubscribeResponse."""
    return encode_sequence(
        "SubscribeResponse",
        encode_epr(message.subscription, wsnt("SubscriptionReference")),
        b"" if message.current_time is None else _encode_time("CurrentTime", message.current_time),
        _encode_time("TerminationTime", message.termination_time),
    )


def parse_renew(element: etree._Element) -> Renew:
    """Read a Renew."""
    (lifetime,), _ = parse_sequence(element, "TerminationTime")
    return Renew(
        _parse_lifetime(required(element, lifetime, "TerminationTime"), UnacceptableTerminationTimeFault)
    )


def encode_renew(message: Renew) -> bytes:
    """Write a Renew."""
    return encode_sequence("Renew", _encode_time("TerminationTime", message.termination))


def parse_renew_response(element: etree._Element) -> RenewResponse:
    """Read a RenewResponse."""
    (end, now), _ = parse_sequence(element, "TerminationTime", "CurrentTime")
    return RenewResponse(_parse_moment(required(element, end, "TerminationTime")), _parse_moment(now))


def encode_renew_response(message: RenewResponse) -> bytes:
    """Write a RenewResponse."""
    return encode_sequence(
        "RenewResponse",
        _encode_time("TerminationTime", message.termination_time),
        b"" if message.current_time is None else _encode_time("CurrentTime", message.current_time),
    )


def parse_get_current_message(element: etree._Element) -> GetCurrentMessage:
    """Read a GetCurrentMessage."""
    (topic,), _ = parse_sequence(element, "Topic")
    return GetCurrentMessage(parse_topic(required(element, topic, "Topic")))


def encode_get_current_message(message: GetCurrentMessage) -> bytes:
    """Write a GetCurrentMessage."""
    return encode_sequence("GetCurrentMessage", encode_topic(message.topic, wsnt("Topic")))


def parse_get_current_message_response(element: etree._Element) -> GetCurrentMessageResponse:
    """Read a GetCurrentMessageResponse, and the payload out of its wrapper where it has ours."""
    _, payloads = parse_sequence(element)
    if len(payloads) == 1 and payloads[0].tag == _WRAPPER:
        payloads = children_of(payloads[0])
    if len(payloads) != 1:
        raise InvalidMessage(f"{element.tag} has {len(payloads)} payloads, and must have one")
    return GetCurrentMessageResponse(encode_element(payloads[0]))


def encode_get_current_message_response(message: GetCurrentMessageResponse) -> bytes:
    """Write a GetCurrentMessageResponse; what the schema has no place for goes into a wrapper of ours."""
    tag, payload = parse_xml(message.payload, STORED_LIMITS).tag, message.payload
    if not tag.startswith("{") or tag.startswith(f"{{{WSNT}}}") or tag == _WRAPPER:
        payload = b'<hp:message xmlns:hp="%b">%b</hp:message>' % (HPWSN.encode(), payload)
    return encode_sequence("GetCurrentMessageResponse", payload)


def _parse_lifetime(element: etree._Element, fault: Callable[[str], SoapFault]) -> Termination:
    if is_nil(element):
        return None
    try:
        return parse_time(text_of(element))
    except ValueError as error:
        raise fault(f"{error}") from None


def _parse_moment(element: etree._Element | None) -> datetime | None:
    """A time in an answer, None where it is absent or nil."""
    if element is None or is_nil(element):
        return None
    try:
        moment = parse_time(text_of(element))
    except ValueError as error:
        raise InvalidMessage(f"{element.tag}: {error}") from None
    if not isinstance(moment, datetime):
        raise InvalidMessage(
            f"{element.tag} is {text_of(element)!r}, and must be such as 2030-01-31T12:00:00Z"
        )
    return moment


def _encode_time(name: str, value: Termination) -> bytes:
    if value is None:
        return f'<wsnt:{name} xmlns:wsnt="{WSNT}" xmlns:xsi="{XSI}" xsi:nil="true"/>'.encode()
    return f'<wsnt:{name} xmlns:wsnt="{WSNT}">{format_time(value)}</wsnt:{name}>'.encode()
