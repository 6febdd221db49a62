"""Parsing and encoding of Notify and NotificationMessage (WS-BaseNotification 1.3 section 3).

Plain text is carried in the element hp:text, because the schema requires an element. The code is optimized,
because every notification passes through it: children are visited once, and output is joined from encoded
bytes. Rejects a Notify without messages or with too many, and a Message without exactly one element or text.
Trees come from parse_message_xml, which keeps comments and processing instructions only in payloads.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from lxml import etree

from hpwsn_client.wsn.soap.addressing import EndpointReference, encode_epr, parse_epr
from hpwsn_client.wsn.soap.names import HPWSN, WSNT, hp, wsnt
from hpwsn_client.wsn.soap.payload_xml import encode_standalone, inherited_size
from hpwsn_client.wsn.soap.sequence import children_of, is_extension, misplaced
from hpwsn_client.wsn.soap.soap_faults import InvalidMessage
from hpwsn_client.wsn.soap.wrong_namespace import is_mistaken, namespace_hint
from hpwsn_client.wsn.soap.xml import DEFAULT_LIMITS, STORED_LIMITS, Limits, escape, parse_xml
from hpwsn_client.wsn.topics.topic_expressions import TopicExpression, encode_topic, parse_topic

_DECLARED = f' xmlns:wsnt="{WSNT}"'.encode()
NOTIFY_OPEN = b"<wsnt:Notify%b>" % _DECLARED
NOTIFY_CLOSE = b"</wsnt:Notify>"
NOTIFICATION_OPEN = f'<wsnt:NotificationMessage xmlns:wsnt="{WSNT}">'.encode()
NOTIFICATION_CLOSE = b"</wsnt:NotificationMessage>"
MESSAGE_OPEN = f'<wsnt:Message xmlns:wsnt="{WSNT}">'.encode()
MESSAGE_CLOSE = b"</wsnt:Message>"

_NOTIFICATION = wsnt("NotificationMessage")
_SUBSCRIPTION, _TOPIC, _PRODUCER, _MESSAGE = _PARTS = tuple(
    map(wsnt, ("SubscriptionReference", "Topic", "ProducerReference", "Message"))
)
_PLACE = {tag: place for place, tag in enumerate(_PARTS, 1)}
_TEXT = hp("text")
_is_other_element = re.compile(rb"<(?![?!])(?!(?:[^\s<>:/]+:)?text[\s/>])").match


@dataclass(frozen=True, slots=True)
class NotificationMessage:
    """One notification; the payload is one self-contained XML element."""

    topic: TopicExpression | None
    payload: bytes
    producer: EndpointReference | None = None
    subscription: EndpointReference | None = None

    @property
    def text(self) -> str | None:
        """The plain text of the payload; None if the payload is another element."""
        return payload_text(self.payload)


@dataclass(frozen=True, slots=True)
class Notify:
    """One or more notifications for a consumer or a broker."""

    messages: tuple[NotificationMessage, ...]


def text_payload(text: str) -> bytes:
    """Encode plain text as the element hp:text."""
    return f'<hp:text xmlns:hp="{HPWSN}">{escape(text)}</hp:text>'.encode()


def payload_text(payload: bytes) -> str | None:
    """The plain text of a stored payload; None if it is another element."""
    # Most payloads are other elements, which need not be parsed to know it.
    if _is_other_element(payload):
        return None
    element = parse_xml(payload, STORED_LIMITS)
    return element.text or "" if element.tag == _TEXT and not len(element) else None


MOST_DECLARATIONS = 320_000
"""Maximum of the namespaces in scope of a Notify times its messages: each payload is stored with all of them.

It allows 32 namespaces for 10,000 messages, as the fast parser of the node does.
"""

MOST_REPEATED = 32 << 20
"""Maximum of the characters of these namespaces and of inherited `xml:` attributes, times the messages."""


def parse_notify(element: etree._Element, limits: Limits = DEFAULT_LIMITS) -> tuple[NotificationMessage, ...]:
    """Parse the messages of a Notify."""
    messages = parse_notifications(element, limits)
    if not messages:
        hint = namespace_hint(element, (_NOTIFICATION,))
        raise InvalidMessage(f"the Notify is empty; send at least one NotificationMessage{hint}")
    return messages


def parse_notifications(element: etree._Element, limits: Limits) -> tuple[NotificationMessage, ...]:
    """Parse the NotificationMessages at the beginning of an element, possibly none."""
    if len(element) > limits.messages:
        raise InvalidMessage(
            f"{element.tag} has {len(element)} parts, more than the {limits.messages} accepted; send several"
        )
    _check_declarations(element)
    messages: list[NotificationMessage] = []
    extended = False
    for child in children_of(element):
        if child.tag == _NOTIFICATION and not extended:
            messages.append(parse_notification_message(child))
        elif is_extension(child) and not is_mistaken(child, (_NOTIFICATION,)):
            extended = True
        else:
            raise misplaced(element, child, "NotificationMessage (any number)")
    return tuple(messages)


def _check_declarations(element: etree._Element) -> None:
    if len(element) < 2:
        return  # nothing is repeated
    declared = element.nsmap
    if len(declared) * len(element) > MOST_DECLARATIONS:
        raise InvalidMessage(
            f"{len(declared)} namespaces are declared around {len(element)} messages, and each message is"
            " kept with all of them; declare fewer, or where they are used"
        )
    size = sum(len(prefix or "") + len(uri) for prefix, uri in declared.items()) + inherited_size(element)
    if size * len(element) > MOST_REPEATED:
        raise InvalidMessage(
            f"namespaces and xml: attributes of {size} characters are around {len(element)} messages, and"
            " each message is kept with all of them; write shorter ones, or send fewer messages at once"
        )


def parse_notification_message(element: etree._Element) -> NotificationMessage:
    """Parse one NotificationMessage."""
    subscription = topic = producer = payload = None
    before = 0
    for child in children_of(element):
        place = _PLACE.get(child.tag, 0)
        if place <= before:
            raise misplaced(element, child, "SubscriptionReference", "Topic", "ProducerReference", "Message")
        before = place
        if place == 4:
            payload = parse_payload(child)
        elif place == 2:
            topic = parse_topic(child)
        elif place == 3:
            producer = parse_epr(child)
        else:
            subscription = parse_epr(child)
    if payload is None:
        raise InvalidMessage("the NotificationMessage has no Message, and must have one")
    return NotificationMessage(topic, payload, producer, subscription)


def parse_payload(message: etree._Element) -> bytes:
    """Parse the payload of a Message as one self-contained element."""
    children = children_of(message) if len(message) else ()
    if len(children) == 1:
        return encode_standalone(children[0])
    if children:
        raise InvalidMessage(
            f"the Message has {len(children)} elements, and must have one: put them into one"
        )
    text = message.text or ""
    if not text.strip(" \t\r\n"):
        raise InvalidMessage("the Message is empty, and must have one element or some text")
    return text_payload(text)


def encode_notify(messages: Iterable[NotificationMessage]) -> bytes:
    """Encode a Notify of at least one message."""
    content = b"".join(map(_encode_inside, messages))
    if not content:
        raise ValueError("a Notify must have at least one message")
    return NOTIFY_OPEN + content + NOTIFY_CLOSE


def _encode_inside(message: NotificationMessage) -> bytes:
    """Encode one NotificationMessage inside a Notify, which declares the prefix."""
    subscription, topic, producer = message.subscription, message.topic, message.producer
    return b"".join(
        (
            b"<wsnt:NotificationMessage>",
            b"" if subscription is None else _undeclared(encode_epr(subscription, _SUBSCRIPTION)),
            b"" if topic is None else _undeclared(encode_topic(topic, _TOPIC)),
            b"" if producer is None else _undeclared(encode_epr(producer, _PRODUCER)),
            b"<wsnt:Message>",
            message.payload,
            b"</wsnt:Message></wsnt:NotificationMessage>",
        )
    )


def _undeclared(element: bytes) -> bytes:
    """The element without its repeated declaration of wsnt."""
    at = element.find(_DECLARED, 0, element.find(b">"))
    return element if at < 0 else element[:at] + element[at + len(_DECLARED) :]


def encode_notification_message(message: NotificationMessage) -> bytes:
    """Encode one NotificationMessage."""
    return join_notification(encode_content(message)[0], message.subscription)


def encode_content(message: NotificationMessage) -> tuple[bytes, int, int]:
    """Encode Topic to Message, which all subscribers share; return it with the payload's start and end."""
    topic = b"" if message.topic is None else encode_topic(message.topic, _TOPIC)
    producer = b"" if message.producer is None else encode_epr(message.producer, _PRODUCER)
    start = len(topic) + len(producer) + len(MESSAGE_OPEN)
    content = b"".join((topic, producer, MESSAGE_OPEN, message.payload, MESSAGE_CLOSE))
    return content, start, start + len(message.payload)


def join_notification(content: bytes, subscription: EndpointReference | None = None) -> bytes:
    """Encode a NotificationMessage around the content from encode_content."""
    reference = b"" if subscription is None else encode_epr(subscription, _SUBSCRIPTION)
    return b"".join((NOTIFICATION_OPEN, reference, content, NOTIFICATION_CLOSE))
