"""The messages of WS-BrokeredNotification 1.3 (sections 4 and 5, schema br-2).

They are RegisterPublisher, DestroyRegistration and their responses. The module has no clock, so it does not
check whether a time is in the past; an invalid time raises UnacceptableInitialTerminationTimeFault. The
schema allows only a dateTime; a duration or nil is accepted too, as in Subscribe. An unknown dialect raises
InvalidTopicExpressionFault, because the WSDL of RegisterPublisher has no fault for dialects.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from lxml import etree

from hpwsn_client.wsn.soap.addressing import EndpointReference, encode_epr, parse_epr
from hpwsn_client.wsn.soap.faults import (
    InvalidTopicExpressionFault,
    TopicExpressionDialectUnknownFault,
    UnacceptableInitialTerminationTimeFault,
)
from hpwsn_client.wsn.soap.names import WSN_BR, XSI, br
from hpwsn_client.wsn.soap.sequence import children_of, required
from hpwsn_client.wsn.soap.soap_faults import InvalidMessage
from hpwsn_client.wsn.soap.times import Termination, format_time, parse_time
from hpwsn_client.wsn.soap.wrong_namespace import is_mistaken, namespace_hint
from hpwsn_client.wsn.soap.xml import encode_element
from hpwsn_client.wsn.topics.topic import shown
from hpwsn_client.wsn.topics.topic_expressions import TopicExpression, encode_topic, parse_topic

_NIL = f"{{{XSI}}}nil"
_PUBLISHER, _TOPIC, _DEMAND, _TIME = _PARTS = tuple(
    map(br, ("PublisherReference", "Topic", "Demand", "InitialTerminationTime"))
)
_REGISTRATION, _CONSUMER = br("PublisherRegistrationReference"), br("ConsumerReference")
_BOOLEANS = {"true": True, "1": True, "false": False, "0": False}


@dataclass(frozen=True, slots=True)
class RegisterPublisher:
    """A request to register a publisher with its topics; a termination of None means no expiry.

    With `demand`, the broker subscribes at the publisher only while a topic has subscribers.
    """

    publisher: EndpointReference | None = None
    topics: tuple[TopicExpression, ...] = ()
    demand: bool = False
    termination: Termination = None
    extensions: tuple[bytes, ...] = ()


@dataclass(frozen=True, slots=True)
class RegisterPublisherResponse:
    """The endpoint of the registration, and the endpoint to which the publisher publishes."""

    registration: EndpointReference
    consumer: EndpointReference | None = None


@dataclass(frozen=True, slots=True)
class DestroyRegistration:
    """A request to destroy the registration."""


@dataclass(frozen=True, slots=True)
class DestroyRegistrationResponse:
    """The registration is destroyed."""


RegistrationMessage = (
    RegisterPublisher | RegisterPublisherResponse | DestroyRegistration | DestroyRegistrationResponse
)


def parse_register_publisher(element: etree._Element) -> RegisterPublisher:
    """Parse a RegisterPublisher."""
    parts, extensions = _parse_parts(element, _PARTS, repeated=_TOPIC)
    publisher, demand, time = (_one(parts[tag]) for tag in (_PUBLISHER, _DEMAND, _TIME))
    return RegisterPublisher(
        None if publisher is None else parse_epr(publisher),
        tuple(map(_parse_topic, parts[_TOPIC])),
        demand is not None and _parse_boolean(demand),
        None if time is None else _parse_time(time),
        tuple(map(encode_element, extensions)),
    )


def encode_register_publisher(message: RegisterPublisher) -> bytes:
    """Encode a RegisterPublisher without empty parts."""
    return encode_br(
        "RegisterPublisher",
        b"" if message.publisher is None else encode_epr(message.publisher, _PUBLISHER),
        *(encode_topic(topic, _TOPIC) for topic in message.topics),
        encode_br("Demand", b"true") if message.demand else b"",
        b""
        if message.termination is None
        else encode_br("InitialTerminationTime", format_time(message.termination).encode()),
        *message.extensions,
    )


def parse_register_publisher_response(element: etree._Element) -> RegisterPublisherResponse:
    """Parse a RegisterPublisherResponse."""
    parts, _ = _parse_parts(element, (_REGISTRATION, _CONSUMER))
    consumer = _one(parts[_CONSUMER])
    reference = required(element, _one(parts[_REGISTRATION]), "PublisherRegistrationReference", WSN_BR)
    return RegisterPublisherResponse(parse_epr(reference), None if consumer is None else parse_epr(consumer))


def encode_register_publisher_response(message: RegisterPublisherResponse) -> bytes:
    """Encode a RegisterPublisherResponse."""
    return encode_br(
        "RegisterPublisherResponse",
        encode_epr(message.registration, _REGISTRATION),
        b"" if message.consumer is None else encode_epr(message.consumer, _CONSUMER),
    )


def encode_br(name: str, *parts: bytes) -> bytes:
    """Encode an element of WS-BrokeredNotification around encoded parts."""
    return b'<wsn-br:%b xmlns:wsn-br="%b">%b</wsn-br:%b>' % (
        name.encode(),
        WSN_BR.encode(),
        b"".join(parts),
        name.encode(),
    )


_Parts = dict[str, list[etree._Element]]


def _parse_parts(
    element: etree._Element, expected: Sequence[str], repeated: str = ""
) -> tuple[_Parts, list[etree._Element]]:
    """The children by name, which must be in this order, and the extensions after them."""
    found: _Parts = {tag: [] for tag in expected}
    extensions: list[etree._Element] = []
    place = 0
    for child in children_of(element):
        if not extensions and child.tag in expected[place:]:
            place = expected.index(child.tag) + (child.tag != repeated)
            found[child.tag].append(child)
        elif _is_extension(child) and not is_mistaken(child, expected):
            extensions.append(child)
        else:
            raise InvalidMessage(
                f"{element.tag} has the child {child.tag}, which is unknown or misplaced; it may have, in"
                f" this order: {', '.join(tag.rpartition('}')[2] for tag in expected) or 'other elements'}"
                f"{namespace_hint((child,), expected)}"
            )
    return found, extensions


def _is_extension(child: etree._Element) -> bool:
    return child.tag.startswith("{") and not child.tag.startswith(f"{{{WSN_BR}}}")


def _one(found: list[etree._Element]) -> etree._Element | None:
    return found[0] if found else None


def _parse_topic(element: etree._Element) -> TopicExpression:
    try:
        return parse_topic(element)
    except TopicExpressionDialectUnknownFault as fault:
        raise InvalidTopicExpressionFault(fault.description) from None


def _parse_boolean(element: etree._Element) -> bool:
    text = _text(element)
    if not text:
        return False  # the schema's default for an empty element
    if text not in _BOOLEANS:
        raise InvalidMessage(f"Demand is {shown(text)}; give true or false")
    return _BOOLEANS[text]


def _parse_time(element: etree._Element) -> Termination:
    if element.get(_NIL, "").strip(" \t\r\n") in ("true", "1"):
        return None
    try:
        return parse_time(_text(element))
    except ValueError as error:
        raise UnacceptableInitialTerminationTimeFault(f"{error}") from None


def _text(element: etree._Element) -> str:
    if len(element):
        raise InvalidMessage(f"{element.tag} has the child {element[0].tag}; it may have only text")
    return (element.text or "").strip(" \t\r\n")


def _empty(
    kind: type[DestroyRegistration | DestroyRegistrationResponse],
) -> Callable[[etree._Element], RegistrationMessage]:
    def parse(element: etree._Element) -> RegistrationMessage:
        _parse_parts(element, ())
        return kind()

    return parse


REGISTRATION_PARSERS: dict[str, Callable[[etree._Element], RegistrationMessage]] = {
    br("RegisterPublisher"): parse_register_publisher,
    br("RegisterPublisherResponse"): parse_register_publisher_response,
    br("DestroyRegistration"): _empty(DestroyRegistration),
    br("DestroyRegistrationResponse"): _empty(DestroyRegistrationResponse),
}
REGISTRATION_ENCODERS: dict[type[Any], Callable[[Any], bytes]] = {
    RegisterPublisher: encode_register_publisher,
    RegisterPublisherResponse: encode_register_publisher_response,
    DestroyRegistration: lambda _: encode_br("DestroyRegistration"),
    DestroyRegistrationResponse: lambda _: encode_br("DestroyRegistrationResponse"),
}
