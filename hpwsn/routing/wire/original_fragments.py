"""The original's XML form of fragments: each piece a NotificationMessage with a Package (spec/hpwsn.md).

What is cut is the content of wsnt:Message, as text: pieces of an element are escaped, since half an element
is no XML. Owns the way from a packed notification to a fragment and back, and the form in which a piece is
handed to a subscriber of today (hp:Piece). Refuses an identification that cannot tell messages apart. How
the elements themselves are read and written is the wire's (hpwsn_client.wsn.formats.original).
"""

from __future__ import annotations

from collections.abc import Iterator

from hpwsn.routing.wire.fragments import LAST_INDEX, Fragment, cut_text
from hpwsn_client.wsn.formats.original import Package, PackedNotification, encode_packed
from hpwsn_client.wsn.operations.notifications import NotificationMessage, text_payload
from hpwsn_client.wsn.soap.names import HPWSN
from hpwsn_client.wsn.soap.soap_faults import InvalidMessage, MalformedXml
from hpwsn_client.wsn.soap.xml import (
    STORED_LIMITS,
    Limits,
    encode_element,
    escape,
    escape_attribute,
    parse_xml,
)

PIECE_OVERHEAD = 200
"""Bytes that the element of a piece takes beside its text and its identification."""


def message_content(message: NotificationMessage) -> bytes:
    """What the Message of a notification holds: text as text, an element as it is written."""
    text = message.text
    return message.payload if text is None else text.encode()


def pack(
    message: NotificationMessage, identification: str, room: int, *, partial: bool = False
) -> Iterator[PackedNotification]:
    """A notification as the original sends it: whole, or in pieces whose text has at most `room` bytes."""
    content = message_content(message)
    escaped = escape(content.decode()).encode()
    if len(content if message.text is None else escaped) <= room:
        yield PackedNotification(message, Package(identification, partial=partial))
        return
    pieces = cut_text(escaped, room)
    if len(pieces) > LAST_INDEX + 1:
        raise InvalidMessage(f"the message is {len(pieces)} pieces, and {LAST_INDEX + 1} are the most")
    for index, piece in enumerate(pieces):
        part = NotificationMessage(message.topic, _text_element(piece), message.producer)
        package = Package(identification, True, index < len(pieces) - 1, partial, index)
        yield PackedNotification(part, package)


def datagrams(
    message: NotificationMessage, identification: str, size: int, *, partial: bool = False
) -> Iterator[bytes]:
    """A notification as datagrams of at most `size` bytes for a node of the original."""
    empty = NotificationMessage(message.topic, _text_element(b""), message.producer)
    beside = len(encode_packed(PackedNotification(empty, Package(identification, index=LAST_INDEX))))
    for packed in pack(message, identification, max(size - beside, 64), partial=partial):
        yield encode_packed(packed)


def _text_element(escaped: bytes) -> bytes:
    return b'<hp:text xmlns:hp="%s">%s</hp:text>' % (HPWSN.encode(), escaped)


def fragment_of(notification: PackedNotification) -> Fragment:
    """The fragment that a packed notification is."""
    package = notification.package or Package("")
    if package.split and not package.identification:
        raise InvalidMessage(
            f"Fragment {package.fragment} is a piece, and its Identification is empty:"
            " give each message one of its own"
        )
    return Fragment(
        package.identification,
        message_content(notification.message),
        package.split,
        package.more,
        package.partial,
        package.index,
    )


def complete_message(piece: NotificationMessage, content: bytes, limits: Limits) -> NotificationMessage:
    """The notification that pieces like this one were cut from: an element where the text is one."""
    return NotificationMessage(piece.topic, complete_payload(content, limits), piece.producer)


def complete_payload(content: bytes, limits: Limits = STORED_LIMITS) -> bytes:
    """The payload of a Message with that content."""
    if content.lstrip()[:1] == b"<":
        try:
            return encode_element(parse_xml(content, limits, "utf-8", comments=True))
        except MalformedXml:
            pass  # then it is text that begins like an element
    return text_payload(content.decode())


def piece_message(piece: NotificationMessage, fragment: Fragment) -> NotificationMessage:
    """A piece that is handed out by itself, as a notification of its own."""
    escaped = escape(fragment.content.decode()).encode()
    payload = encode_piece(str(fragment.identification), fragment.index, fragment.more, escaped)
    return NotificationMessage(piece.topic, payload, piece.producer)


def encode_piece(identification: str, index: int, more: bool, escaped: bytes) -> bytes:
    """The element of a piece around its escaped text."""
    head = (
        f'<hp:Piece xmlns:hp="{HPWSN}" identification="{escape_attribute(identification)}"'
        f' index="{index}" more="{more:d}">'
    )
    return b"".join((head.encode(), escaped, b"</hp:Piece>"))


def piece_payloads(content: bytes, identification: str, room: int) -> list[bytes]:
    """The pieces of a Message's content as payloads, none longer than `room`; empty where one is enough."""
    if len(content) <= room:
        return []
    escaped = escape(content.decode()).encode()
    text_room = room - PIECE_OVERHEAD - len(escape_attribute(identification).encode())
    pieces = cut_text(escaped, max(text_room, 64))
    if len(pieces) > LAST_INDEX + 1:
        return []
    last = len(pieces) - 1
    return [encode_piece(identification, i, i < last, piece) for i, piece in enumerate(pieces)]
