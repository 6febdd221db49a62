"""The messages of NotificationProducer and of the subscription managers.

They are Subscribe, GetCurrentMessage, Renew, Unsubscribe, PauseSubscription, ResumeSubscription and their
responses (WS-BaseNotification 1.3 sections 4 and 6, schema b-2). The module has no clock, so it does not
check whether a time is in the past; an invalid time raises the standard's Unacceptable…TerminationTimeFault.
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
_DEFAULT_POLICY = SubscriptionPolicy()


@dataclass(frozen=True, slots=True)
class Subscribe:
    """A request for a subscription; a termination of None means no expiry."""

    consumer: EndpointReference
    filter: Filter = _EVERYTHING
    termination: Termination = None
    policy: SubscriptionPolicy = _DEFAULT_POLICY
    extensions: tuple[bytes, ...] = ()


@dataclass(frozen=True, slots=True)
class SubscribeResponse:
    """The endpoint and the termination time of the subscription; None means no expiry."""

    subscription: EndpointReference
    current_time: datetime | None = None
    termination_time: datetime | None = None


@dataclass(frozen=True, slots=True)
class Renew:
    """A request for a new termination time; None means no expiry."""

    termination: Termination


@dataclass(frozen=True, slots=True)
class RenewResponse:
    """The granted termination time; None means no expiry."""

    termination_time: datetime | None
    current_time: datetime | None = None


@dataclass(frozen=True, slots=True)
class Unsubscribe:
    """A request to end the subscription."""


@dataclass(frozen=True, slots=True)
class UnsubscribeResponse:
    """The subscription has ended."""


@dataclass(frozen=True, slots=True)
class PauseSubscription:
    """A request to pause delivery."""


@dataclass(frozen=True, slots=True)
class PauseSubscriptionResponse:
    """Delivery is paused."""


@dataclass(frozen=True, slots=True)
class ResumeSubscription:
    """A request to resume delivery; notifications kept meanwhile come first."""


@dataclass(frozen=True, slots=True)
class ResumeSubscriptionResponse:
    """Delivery is resumed."""


@dataclass(frozen=True, slots=True)
class GetCurrentMessage:
    """A request for the last message on a topic."""

    topic: TopicExpression


@dataclass(frozen=True, slots=True)
class GetCurrentMessageResponse:
    """The payload of the last message."""

    payload: bytes


def parse_subscribe(element: etree._Element) -> Subscribe:
    """Parse a Subscribe."""
    (consumer, wanted, lifetime, policy), extensions = parse_sequence(
        element, "ConsumerReference", "Filter", "InitialTerminationTime", "SubscriptionPolicy"
    )
    return Subscribe(
        parse_epr(required(element, consumer, "ConsumerReference")),
        _EVERYTHING if wanted is None else parse_filter(wanted),
        None if lifetime is None else _parse_lifetime(lifetime, UnacceptableInitialTerminationTimeFault),
        _DEFAULT_POLICY if policy is None else parse_policy(policy),
        tuple(map(encode_element, extensions)),
    )


def encode_subscribe(message: Subscribe) -> bytes:
    """Encode a Subscribe without empty parts."""
    return encode_sequence(
        "Subscribe",
        encode_epr(message.consumer, wsnt("ConsumerReference")),
        b"" if message.filter == _EVERYTHING else encode_filter(message.filter),
        b"" if message.termination is None else _encode_time("InitialTerminationTime", message.termination),
        b"" if message.policy == _DEFAULT_POLICY else encode_policy(message.policy),
        *message.extensions,
    )


def parse_subscribe_response(element: etree._Element) -> SubscribeResponse:
    """Parse a SubscribeResponse."""
    (subscription, now, end), _ = parse_sequence(
        element, "SubscriptionReference", "CurrentTime", "TerminationTime"
    )
    reference = parse_epr(required(element, subscription, "SubscriptionReference"))
    return SubscribeResponse(reference, _parse_date_time(now), _parse_date_time(end))


def encode_subscribe_response(message: SubscribeResponse) -> bytes:
    """Encode a SubscribeResponse."""
    return encode_sequence(
        "SubscribeResponse",
        encode_epr(message.subscription, wsnt("SubscriptionReference")),
        b"" if message.current_time is None else _encode_time("CurrentTime", message.current_time),
        _encode_time("TerminationTime", message.termination_time),
    )


def parse_renew(element: etree._Element) -> Renew:
    """Parse a Renew."""
    (lifetime,), _ = parse_sequence(element, "TerminationTime")
    return Renew(
        _parse_lifetime(required(element, lifetime, "TerminationTime"), UnacceptableTerminationTimeFault)
    )


def encode_renew(message: Renew) -> bytes:
    """Encode a Renew."""
    return encode_sequence("Renew", _encode_time("TerminationTime", message.termination))


def parse_renew_response(element: etree._Element) -> RenewResponse:
    """Parse a RenewResponse."""
    (end, now), _ = parse_sequence(element, "TerminationTime", "CurrentTime")
    return RenewResponse(_parse_date_time(required(element, end, "TerminationTime")), _parse_date_time(now))


def encode_renew_response(message: RenewResponse) -> bytes:
    """Encode a RenewResponse."""
    return encode_sequence(
        "RenewResponse",
        _encode_time("TerminationTime", message.termination_time),
        b"" if message.current_time is None else _encode_time("CurrentTime", message.current_time),
    )


def parse_get_current_message(element: etree._Element) -> GetCurrentMessage:
    """Parse a GetCurrentMessage."""
    (topic,), _ = parse_sequence(element, "Topic")
    return GetCurrentMessage(parse_topic(required(element, topic, "Topic")))


def encode_get_current_message(message: GetCurrentMessage) -> bytes:
    """Encode a GetCurrentMessage."""
    return encode_sequence("GetCurrentMessage", encode_topic(message.topic, wsnt("Topic")))


def parse_get_current_message_response(element: etree._Element) -> GetCurrentMessageResponse:
    """Parse a GetCurrentMessageResponse, with or without the wrapper hp:message."""
    _, payloads = parse_sequence(element)
    if len(payloads) == 1 and payloads[0].tag == _WRAPPER:
        payloads = children_of(payloads[0])
    if len(payloads) != 1:
        raise InvalidMessage(f"{element.tag} has {len(payloads)} payloads, and must have one")
    return GetCurrentMessageResponse(encode_element(payloads[0]))


def encode_get_current_message_response(message: GetCurrentMessageResponse) -> bytes:
    """Encode a GetCurrentMessageResponse; a payload that the schema does not allow is put in hp:message."""
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


def _parse_date_time(element: etree._Element | None) -> datetime | None:
    """A time in a response; None if it is absent or nil."""
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
