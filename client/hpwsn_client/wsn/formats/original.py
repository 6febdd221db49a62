"""The messages of the original HPwsn, which its clients still send.

`WsnProcess` contains one of four requests: create a push endpoint, subscribe with it, unsubscribe, or one
notification with its Package. The content of `WsnProcess` is an element, as the original's clients send it,
or escaped text, as its interface declares it: one string in, one string out. The module parses and encodes
these requests, converts them to the standard's messages, and encodes notifications for the original's
receivers. Other requests are rejected.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass

from lxml import etree

from hpwsn_client.wsn.operations.filters import Filter, encode_filter, parse_filter
from hpwsn_client.wsn.operations.messages import Message, Subscribe, encode_message
from hpwsn_client.wsn.operations.notifications import (
    NotificationMessage,
    encode_content,
    parse_payload,
    text_payload,
)
from hpwsn_client.wsn.soap.addressing import EndpointReference, encode_epr, parse_epr
from hpwsn_client.wsn.soap.names import DIALECT_FULL, HPWSN, SERVICEMIX, WSA, hp, wsa, wsnt
from hpwsn_client.wsn.soap.payload_xml import parse_message_xml
from hpwsn_client.wsn.soap.sequence import children_of, encode_sequence, parse_sequence, required, text_of
from hpwsn_client.wsn.soap.soap_faults import ActionNotSupported, InvalidMessage, MalformedXml
from hpwsn_client.wsn.soap.xml import DEFAULT_LIMITS, STORED_LIMITS, Limits, escape, parse_xml
from hpwsn_client.wsn.topics.topic import invalid, shown
from hpwsn_client.wsn.topics.topic_expressions import TopicExpression, parse_topic, parse_topic_expression

ENDPOINT = "endpoint:"
"""The prefix of a push endpoint's address in a Subscribe."""
PROCESS = f"{{{SERVICEMIX}}}WsnProcess"
RESPONSE_ACTION = f"{SERVICEMIX}/IWsnProcess/WsnProcessResponse"

_ORIGINAL = f'<hp:Original xmlns:hp="{HPWSN}"/>'.encode()
_TO = wsa("To")
_BLANKS = " \t\r\n"
_fragment = re.compile(r"([01])-([01])-([01])-([0-9]{1,5})").fullmatch
_may_be_text = re.compile(rb"<(?:[^\s<>:/]+:)?(?:text|Piece)[\s>]").match


@dataclass(frozen=True, slots=True)
class CreateEndpoint:
    """A request for a push endpoint; None as the name lets the node choose."""

    name: str | None = None


@dataclass(frozen=True, slots=True)
class SubscribeEndpoint:
    """A request to subscribe the receiver to a topic and its subtree; the push endpoint is used once."""

    endpoint: str
    topic: TopicExpression
    receiver: str


@dataclass(frozen=True, slots=True)
class EndSubscription:
    """A request to end the subscription with this address."""

    address: str


@dataclass(frozen=True, slots=True)
class Package:
    """The fragment header: the id of the message, and the position of the fragment if it is split."""

    identification: str
    split: bool = False
    more: bool = False
    partial: bool = False
    index: int = 0

    @property
    def fragment(self) -> str:
        """The text of the element Fragment: split-more-partial-offset."""
        return f"{self.split:d}-{self.more:d}-{self.partial:d}-{self.index}"


@dataclass(frozen=True, slots=True)
class PackedNotification:
    """One notification with its Package; None if it has none."""

    message: NotificationMessage
    package: Package | None = None


Request = CreateEndpoint | SubscribeEndpoint | EndSubscription | PackedNotification


def parse_process(body: etree._Element, to: str | None = None, limits: Limits = DEFAULT_LIMITS) -> Request:
    """Parse the request in a WsnProcess; `to` is the header wsa:To, used if the body has none."""
    if body.tag != PROCESS:
        raise ActionNotSupported(
            f"{body.tag} is not supported at this URL; send {PROCESS}, or the standard's requests to /wsn"
        )
    content = _content(body, limits)
    requests = [child for child in content if child.tag != _TO]
    if len(requests) != 1:
        raise InvalidMessage(f"WsnProcess has {len(requests)} requests; send one")
    if requests[0].tag == wsnt("Unsubscribe"):
        addresses = [_text(each) for part in content for each in part.iter(_TO)]
        return EndSubscription(_subscription(addresses, to))
    parse = _PARSERS.get(requests[0].tag)
    if parse is None:
        names = ", ".join(tag.rpartition("}")[2] for tag in _PARSERS)
        raise ActionNotSupported(f"WsnProcess has {requests[0].tag}; send {names} or Unsubscribe")
    return parse(requests[0])


def is_string(body: etree._Element) -> bool:
    """Whether a WsnProcess has its request as escaped text, so that its answer must be a string too."""
    return not len(body) and bool((body.text or "").strip(_BLANKS))


def _content(body: etree._Element, limits: Limits) -> list[etree._Element]:
    if not is_string(body):
        return children_of(body)
    text = (body.text or "").strip(_BLANKS)
    try:
        return [parse_message_xml(text.encode(), limits, "utf-8")]
    except MalformedXml as error:
        raise InvalidMessage(f"WsnProcess has {shown(text)}, which is not a request: {error}") from None


def _subscription(in_body: list[str], in_header: str | None) -> str:
    # The body comes first, because the header may have the address of the node.
    found = {address for address in in_body if address} or {in_header or ""}
    if len(found) > 1 or "" in found:
        raise InvalidMessage(
            "Unsubscribe needs one wsa:To, in the header or the body: the subscription's address"
        )
    return found.pop()


def _parse_create(element: etree._Element) -> CreateEndpoint:
    return CreateEndpoint(_text(element) or None)


def _parse_subscribe(element: etree._Element) -> SubscribeEndpoint:
    (consumer, wanted, receiver), _ = parse_sequence(
        element, "ConsumerReference", "Filter", "SubscriberAddress"
    )
    endpoint = parse_epr(required(element, consumer, "ConsumerReference")).address
    address = _text(required(element, receiver, "SubscriberAddress"))
    if not address:
        raise InvalidMessage("SubscriberAddress is empty; give the address of the receiver")
    topic = _one_topic(parse_filter(required(element, wanted, "Filter")))
    return SubscribeEndpoint(endpoint.removeprefix(ENDPOINT), topic, address)


def _one_topic(wanted: Filter) -> TopicExpression:
    if len(wanted.topics) != 1 or wanted.content or wanted.producer_properties:
        raise InvalidMessage(
            "the Filter must have exactly one TopicExpression; for other filters subscribe at /wsn"
        )
    (topic,) = wanted.topics
    if topic.topic is None:
        raise invalid(topic.text, "a subscription is to one topic and its subtree; name one topic")
    return topic


def _parse_notification(element: etree._Element) -> PackedNotification:
    (topic, producer, package, message), _ = parse_sequence(
        element, "Topic", "ProducerReference", "Package", "Message"
    )
    packed = None if package is None else _parse_package(package)
    content = required(element, message, "Message")
    # A fragment may consist only of white space.
    is_text_piece = packed is not None and packed.split and not len(content) and content.text
    return PackedNotification(
        NotificationMessage(
            parse_topic(required(element, topic, "Topic")),
            text_payload(content.text or "") if is_text_piece else parse_payload(content),
            None if producer is None else parse_epr(producer),
        ),
        packed,
    )


def _parse_package(element: etree._Element) -> Package:
    parts = {etree.QName(child).localname: _text(child) for child in children_of(element)}
    if parts.keys() != {"Identification", "Fragment"} or len(element) != 2:
        raise InvalidMessage(f"{element.tag} must hold Identification and Fragment, each once")
    found = _fragment(parts["Fragment"])
    if found is None:
        raise InvalidMessage(
            f"Fragment is {shown(parts['Fragment'])}, and must be split-more-partial-offset, such as 0-0-1-0"
        )
    split, more, partial = (digit == "1" for digit in found.groups()[:3])
    return Package(parts["Identification"], split, more, partial, int(found[4]))


_PARSERS: dict[str, Callable[[etree._Element], Request]] = {
    wsnt("CreatePullPoint"): _parse_create,
    wsnt("Subscribe"): _parse_subscribe,
    wsnt("NotificationMessage"): _parse_notification,
}


def _text(element: etree._Element) -> str:
    return text_of(element).strip(_BLANKS)


def encode_process(request: Request) -> bytes:
    """Encode a WsnProcess; the address of an Unsubscribe is in its body."""
    content = _encode(request)
    # The prefix org would turn a topic such as org:A into a QName.
    return _wrap("WsnProcess", content, "soap" if b">org:" in content else "org")


def _encode(request: Request) -> bytes:
    if isinstance(request, CreateEndpoint):
        return encode_sequence("CreatePullPoint", escape(request.name or "").encode())
    if isinstance(request, SubscribeEndpoint):
        return encode_sequence(
            "Subscribe",
            encode_epr(EndpointReference(ENDPOINT + request.endpoint), wsnt("ConsumerReference")),
            encode_filter(Filter((request.topic,))),
            encode_sequence("SubscriberAddress", escape(request.receiver).encode()),
        )
    if isinstance(request, EndSubscription):
        to = f'<wsa:To xmlns:wsa="{WSA}">{escape(request.address)}</wsa:To>'
        return encode_sequence("Unsubscribe", to.encode())
    return _encode_notification(request, *encode_content(request.message))


def encode_packed(notification: PackedNotification) -> bytes:
    """Encode a notification as the original's nodes send it to each other: no WsnProcess, text as text."""
    content, start, end = encode_content(notification.message)
    return _encode_notification(notification, original_content(content, start, end), start, end)


def parse_packed(element: etree._Element, limits: Limits = DEFAULT_LIMITS) -> PackedNotification:
    """Parse a notification of an original node, with or without WsnProcess."""
    if element.tag == wsnt("NotificationMessage"):
        return _parse_notification(element)
    request = parse_process(element, None, limits)
    if not isinstance(request, PackedNotification):
        raise ActionNotSupported("nodes send each other a NotificationMessage; other requests go to the door")
    return request


def _encode_notification(notification: PackedNotification, content: bytes, start: int, end: int) -> bytes:
    opens = content.rindex(b"<wsnt:Message", 0, start)
    return encode_sequence(
        "NotificationMessage", content[:opens], _encode_package(notification.package), content[opens:]
    )


def _encode_package(package: Package | None) -> bytes:
    if package is None:
        return b""
    identification = f"<Identification>{escape(package.identification)}</Identification>"
    return encode_sequence("Package", f"{identification}<Fragment>{package.fragment}</Fragment>".encode())


def encode_response(message: Message) -> bytes:
    """Encode a response of the standard for the original's clients, as an element."""
    return _wrap("WsnProcessResponse", encode_message(message), "org")


def encode_string_response(message: Message | None) -> bytes:
    """Encode a response for a client of the WSDL, as escaped text; None is the empty string."""
    content = "" if message is None else encode_message(message).decode()
    return _wrap("WsnProcessResponse", escape(content).encode(), "org")


def _wrap(name: str, content: bytes, prefix: str) -> bytes:
    tag = f"{prefix}:{name}"
    return b"".join((f'<{tag} xmlns:{prefix}="{SERVICEMIX}">'.encode(), content, f"</{tag}>".encode()))


def as_standard(request: SubscribeEndpoint) -> Subscribe:
    """The equivalent Subscribe, with the extension hp:Original; its expression includes the subtree."""
    assert request.topic.topic is not None
    topic = TopicExpression.of(request.topic.topic)
    subtree = parse_topic_expression(f"{topic.text}|{topic.text}//.", DIALECT_FULL, dict(topic.namespaces))
    return Subscribe(EndpointReference(request.receiver), Filter((subtree,)), extensions=(_ORIGINAL,))


def is_original(request: Subscribe) -> bool:
    """Whether the request comes from as_standard."""
    return _ORIGINAL in request.extensions


def original_content(content: bytes, start: int, end: int) -> bytes:
    """The output of encode_content for the original's receivers: plain text without its element."""
    if not _may_be_text(content, start, end):
        return content
    payload = parse_xml(content[start:end], STORED_LIMITS)
    if payload.tag not in (hp("text"), hp("Piece")) or len(payload):
        return content
    return content[:start] + escape(payload.text or "").encode() + content[end:]
