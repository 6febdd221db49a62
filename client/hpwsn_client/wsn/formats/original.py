"""The original's own messages, as its clients still send them (spec/hpwsn.md, its message formats).

Four requests, each inside `WsnProcess`: create a push endpoint, subscribe with it, unsubscribe, and one
notification with its Package. Its interface declares the content of `WsnProcess` a string, so the same
request as escaped text is read too. Owns how they are read and written, what of them the standard's messages
can say, and how a notification is written for its receivers. Refuses whatever is none of the four.
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
"""What a subscriber writes before the address of its push endpoint."""
PROCESS = f"{{{SERVICEMIX}}}WsnProcess"
RESPONSE_ACTION = f"{SERVICEMIX}/IWsnProcess/WsnProcessResponse"

_MARK = f'<hp:Original xmlns:hp="{HPWSN}"/>'.encode()
_TO = wsa("To")
_BLANKS = " \t\r\n"
_fragment = re.compile(r"([01])-([01])-([01])-([0-9]{1,5})").fullmatch
_may_be_text = re.compile(rb"<(?:[^\s<>:/]+:)?(?:text|Piece)[\s>]").match


@dataclass(frozen=True, slots=True)
class CreateEndpoint:
    """A request for a push endpoint, perhaps of this name."""

    name: str | None = None


@dataclass(frozen=True, slots=True)
class SubscribeEndpoint:
    """A request that uses up a push endpoint: what is on the topic, or below it, goes to the receiver."""

    endpoint: str
    topic: TopicExpression
    receiver: str


@dataclass(frozen=True, slots=True)
class EndSubscription:
    """A request to end the subscription of this address."""

    address: str


@dataclass(frozen=True, slots=True)
class Package:
    """Which message a piece belongs to, and which piece it is; a message that is whole is not split."""

    identification: str
    split: bool = False
    more: bool = False
    partial: bool = False
    index: int = 0

    @property
    def fragment(self) -> str:
        """The text of Fragment: split-more-partial-offset."""
        return f"{self.split:d}-{self.more:d}-{self.partial:d}-{self.index}"


@dataclass(frozen=True, slots=True)
class PackedNotification:
    """One notification, with its Package if it has one."""

    message: NotificationMessage
    package: Package | None = None


Request = CreateEndpoint | SubscribeEndpoint | EndSubscription | PackedNotification


def parse_process(body: etree._Element, to: str | None = None, limits: Limits = DEFAULT_LIMITS) -> Request:
    """Read the request in a WsnProcess; `to` is the header wsa:To, where the body has none."""
    if body.tag != PROCESS:
        raise ActionNotSupported(
            f"{body.tag} is no request of this address, which takes {PROCESS}; the standard's go to /wsn"
        )
    content = _content(body, limits)
    requests = [child for child in content if child.tag != _TO]
    if len(requests) != 1:
        raise InvalidMessage(f"WsnProcess holds {len(requests)} requests, and must hold one")
    if requests[0].tag == wsnt("Unsubscribe"):
        addresses = [_text(each) for part in content for each in part.iter(_TO)]
        return EndSubscription(_subscription(addresses, to))
    parse = _PARSERS.get(requests[0].tag)
    if parse is None:
        names = ", ".join(tag.rpartition("}")[2] for tag in _PARSERS)
        raise ActionNotSupported(f"WsnProcess holds {requests[0].tag}; it takes {names}, Unsubscribe")
    return parse(requests[0])


def _content(body: etree._Element, limits: Limits) -> list[etree._Element]:
    text = (body.text or "").strip(_BLANKS)
    if len(body) or not text:
        return children_of(body)
    try:
        return [parse_message_xml(text.encode(), limits, "utf-8")]
    except MalformedXml as error:
        raise InvalidMessage(f"WsnProcess holds {shown(text)}, which is no request: {error}") from None


def _subscription(in_body: list[str], in_header: str | None) -> str:
    # The body goes first: a header may just as well say where the request itself was sent.
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
        raise InvalidMessage("SubscriberAddress is empty, and must have the address of the receiver")
    topic = _one_topic(parse_filter(required(element, wanted, "Filter")))
    return SubscribeEndpoint(endpoint.removeprefix(ENDPOINT), topic, address)


def _one_topic(wanted: Filter) -> TopicExpression:
    if len(wanted.topics) != 1 or wanted.content or wanted.producer_properties:
        raise InvalidMessage(
            "the Filter must hold one TopicExpression alone; for other filters subscribe at /wsn"
        )
    (topic,) = wanted.topics
    if topic.topic is None:
        raise invalid(topic.text, "here a subscription is to one topic, with all below it: name one")
    return topic


def _parse_notification(element: etree._Element) -> PackedNotification:
    (topic, producer, package, message), _ = parse_sequence(
        element, "Topic", "ProducerReference", "Package", "Message"
    )
    packed = None if package is None else _parse_package(package)
    content = required(element, message, "Message")
    # A piece of a message may be nothing but the blanks between two words.
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
    """Write a WsnProcess, with the address of an Unsubscribe in its body."""
    content = _encode(request)
    # Around a topic of ours that begins with its prefix, it would make a QName of the topic.
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
    """Write a notification as nodes of the original send it to each other: in no wrapper, text as text."""
    content, start, end = encode_content(notification.message)
    return _encode_notification(notification, original_content(content, start, end), start, end)


def parse_packed(element: etree._Element, limits: Limits = DEFAULT_LIMITS) -> PackedNotification:
    """Read a notification of a node of the original, bare or in a WsnProcess."""
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
    """Write the standard's answer as the original's clients get it."""
    return _wrap("WsnProcessResponse", encode_message(message), "org")


def _wrap(name: str, content: bytes, prefix: str) -> bytes:
    tag = f"{prefix}:{name}"
    return b"".join((f'<{tag} xmlns:{prefix}="{SERVICEMIX}">'.encode(), content, f"</{tag}>".encode()))


def as_standard(request: SubscribeEndpoint) -> Subscribe:
    """The Subscribe that asks for the same, marked as the original's; it names the subtree in any setting."""
    assert request.topic.topic is not None
    topic = TopicExpression.of(request.topic.topic)
    subtree = parse_topic_expression(f"{topic.text}|{topic.text}//.", DIALECT_FULL, dict(topic.namespaces))
    return Subscribe(EndpointReference(request.receiver), Filter((subtree,)), extensions=(_MARK,))


def is_original(request: Subscribe) -> bool:
    """Whether as_standard has made the request, before it was stored or since."""
    return _MARK in request.extensions


def original_content(content: bytes, start: int, end: int) -> bytes:
    """What encode_content has written, as the original's receivers get it: text stays text, in pieces too."""
    if not _may_be_text(content, start, end):
        return content
    payload = parse_xml(content[start:end], STORED_LIMITS)
    if payload.tag not in (hp("text"), hp("Piece")) or len(payload):
        return content
    return content[:start] + escape(payload.text or "").encode() + content[end:]
