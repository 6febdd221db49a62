"""The messages of pull points: WS-BaseNotification 1.3 section 5 (schema b-2).

They are CreatePullPoint, GetMessages, DestroyPullPoint and their responses. The name of a pull point is in
the attribute wsnt:pullPointQueueName, as in Apache CXF and ServiceMix. The attribute hp:lifetime, an
extension of HPwsn, asks for a pull point that ends when nobody reads it for so long.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from lxml import etree

from hpwsn_client.wsn.operations.notifications import (
    NotificationMessage,
    encode_notification_message,
    parse_notifications,
)
from hpwsn_client.wsn.soap.addressing import EndpointReference, encode_epr, parse_epr
from hpwsn_client.wsn.soap.names import HPWSN, WSNT, hp, wsnt
from hpwsn_client.wsn.soap.sequence import encode_sequence, parse_sequence, required
from hpwsn_client.wsn.soap.soap_faults import InvalidMessage
from hpwsn_client.wsn.soap.times import Duration, format_time, parse_time
from hpwsn_client.wsn.soap.wsn_faults import UnableToCreatePullPointFault
from hpwsn_client.wsn.soap.xml import DEFAULT_LIMITS, Limits, escape, escape_attribute
from hpwsn_client.wsn.topics.topic import shown

_NAME, _LIFETIME = wsnt("pullPointQueueName"), hp("lifetime")
_CONFIRM, _BATCH = hp("Confirm"), hp("Batch")
_is_count = re.compile(r"\+?[0-9]{1,18}|-0{1,18}").fullmatch


@dataclass(frozen=True, slots=True)
class CreatePullPoint:
    """A request for a pull point; a name that exists returns its pull point.

    `lifetime` is how long the pull point may be unread before the broker destroys it; None means for ever.
    """

    name: str | None = None
    lifetime: Duration | None = None


@dataclass(frozen=True, slots=True)
class CreatePullPointResponse:
    """The endpoint of the pull point."""

    pull_point: EndpointReference


@dataclass(frozen=True, slots=True)
class GetMessages:
    """A request for at most `maximum` messages; None means no maximum.

    `confirm` is an extension of HPwsn: the id of the last received batch, "" before the first. With it, the
    broker repeats each batch until it is confirmed. Without it, the next request acknowledges the batch.
    """

    maximum: int | None = None
    confirm: str | None = None


@dataclass(frozen=True, slots=True)
class GetMessagesResponse:
    """The messages, possibly none, and the batch id with which to confirm them."""

    messages: tuple[NotificationMessage, ...] = ()
    batch: str | None = None


@dataclass(frozen=True, slots=True)
class DestroyPullPoint:
    """A request to destroy the pull point."""


@dataclass(frozen=True, slots=True)
class DestroyPullPointResponse:
    """The pull point is destroyed."""


def parse_create_pull_point(element: etree._Element) -> CreatePullPoint:
    """Parse a CreatePullPoint."""
    parse_sequence(element)
    name = element.get(_NAME, "").strip(" \t\r\n") or None
    return CreatePullPoint(name, _parse_lifetime(element.get(_LIFETIME)))


def _parse_lifetime(text: str | None) -> Duration | None:
    if text is None:
        return None
    try:
        lifetime = parse_time(text)
    except ValueError as error:
        raise UnableToCreatePullPointFault(f"hp:lifetime: {error}") from None
    if (
        not isinstance(lifetime, Duration)
        or lifetime.months < 0
        or lifetime.seconds < 0
        or lifetime == Duration()
    ):
        raise UnableToCreatePullPointFault(
            f"hp:lifetime is {shown(text)}; give a duration that is longer than zero, such as PT5M"
        )
    return lifetime


def encode_create_pull_point(message: CreatePullPoint) -> bytes:
    """Encode a CreatePullPoint."""
    name = f' wsnt:pullPointQueueName="{escape_attribute(message.name)}"' if message.name else ""
    lifetime = message.lifetime
    idle = "" if lifetime is None else f' xmlns:hp="{HPWSN}" hp:lifetime="{format_time(lifetime)}"'
    return f'<wsnt:CreatePullPoint xmlns:wsnt="{WSNT}"{name}{idle}/>'.encode()


def parse_create_pull_point_response(element: etree._Element) -> CreatePullPointResponse:
    """Parse a CreatePullPointResponse."""
    (pull_point,), _ = parse_sequence(element, "PullPoint")
    return CreatePullPointResponse(parse_epr(required(element, pull_point, "PullPoint")))


def encode_create_pull_point_response(message: CreatePullPointResponse) -> bytes:
    """Encode a CreatePullPointResponse."""
    return encode_sequence("CreatePullPointResponse", encode_epr(message.pull_point, wsnt("PullPoint")))


def parse_get_messages(element: etree._Element) -> GetMessages:
    """Parse a GetMessages."""
    (maximum,), extensions = parse_sequence(element, "MaximumNumber")
    confirm = _extension(extensions, _CONFIRM)
    if maximum is None:
        return GetMessages(confirm=confirm)
    text = (maximum.text or "").strip(" \t\r\n")
    if len(maximum) or not _is_count(text):
        raise InvalidMessage(f"MaximumNumber is {shown(text)}; give a whole number of at most 18 digits")
    return GetMessages(int(text), confirm)


def encode_get_messages(message: GetMessages) -> bytes:
    """Encode a GetMessages."""
    maximum = message.maximum
    return encode_sequence(
        "GetMessages",
        b"" if maximum is None else b"<wsnt:MaximumNumber>%d</wsnt:MaximumNumber>" % maximum,
        _encode_extension("Confirm", message.confirm),
    )


def parse_get_messages_response(
    element: etree._Element, limits: Limits = DEFAULT_LIMITS
) -> GetMessagesResponse:
    """Parse a GetMessagesResponse."""
    messages = parse_notifications(element, limits)
    return GetMessagesResponse(messages, _extension(list(element)[len(messages) :], _BATCH))


def encode_get_messages_response(message: GetMessagesResponse) -> bytes:
    """Encode a GetMessagesResponse."""
    return join_get_messages_response(map(encode_notification_message, message.messages), message.batch)


def join_get_messages_response(messages: Iterable[bytes], batch: str | None = None) -> bytes:
    """Encode a GetMessagesResponse around encoded NotificationMessages."""
    return encode_sequence("GetMessagesResponse", *messages, _encode_extension("Batch", batch))


def _extension(elements: Iterable[etree._Element], tag: str) -> str | None:
    for element in elements:
        if element.tag == tag:
            return (element.text or "").strip(" \t\r\n")
    return None


def _encode_extension(name: str, text: str | None) -> bytes:
    if text is None:
        return b""
    return f'<hp:{name} xmlns:hp="{HPWSN}">{escape(text)}</hp:{name}>'.encode()
