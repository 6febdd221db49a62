"""Fragments in the XML form of the original: each is a NotificationMessage with a Package.

The content of wsnt:Message is split as text. Pieces of an element are escaped, because half an element is
not XML. This module converts packed notifications to fragments and back, and encodes a piece for a
subscriber of today (hp:Piece). It rejects an empty identification, which cannot distinguish messages.
hpwsn_client.wsn.formats.original parses and encodes the elements.
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

_FRAGMENT_OPEN, _FRAGMENT_CLOSE, _MESSAGE_CLOSE = b"<Fragment>", b"</Fragment>", b"</wsnt:Message>"
PIECE_OVERHEAD = 200
"""Bytes of the element of a piece without its text and its identification."""


def message_content(message: NotificationMessage) -> bytes:
    """Return the content of the Message of a notification: its text, or its element as XML."""
    text = message.text
    return message.payload if text is None else text.encode()


def pack(
    message: NotificationMessage, identification: str, room: int, *, partial: bool = False
) -> Iterator[PackedNotification]:
    """Yield a notification as the original sends it: complete, or in pieces of `room` bytes of text."""
    pieces = _cut(message, room)
    if not pieces:
        yield PackedNotification(message, Package(identification, partial=partial))
    for package, piece in _packages(pieces, identification, partial):
        part = NotificationMessage(message.topic, _text_element(piece), message.producer)
        yield PackedNotification(part, package)


def _cut(message: NotificationMessage, room: int) -> list[bytes]:
    """Return the escaped pieces of a message; none if it fits as it is."""
    text = message.text
    escaped = escape(message.payload.decode() if text is None else text).encode()
    if len(message.payload if text is None else escaped) <= room:
        return []
    pieces = cut_text(escaped, room)
    if len(pieces) > LAST_INDEX + 1:
        raise InvalidMessage(f"the message has {len(pieces)} pieces; at most {LAST_INDEX + 1} are possible")
    return pieces


def _packages(pieces: list[bytes], identification: str, partial: bool) -> Iterator[tuple[Package, bytes]]:
    for index, piece in enumerate(pieces):
        yield Package(identification, True, index < len(pieces) - 1, partial, index), piece


def datagrams(
    message: NotificationMessage, identification: str, size: int, *, partial: bool = False
) -> Iterator[bytes]:
    """Yield a notification as datagrams of at most `size` bytes for a node of the original."""
    empty = NotificationMessage(message.topic, _text_element(b""), message.producer)
    frame = encode_packed(PackedNotification(empty, Package(identification, index=LAST_INDEX)))
    pieces = _cut(message, max(size - len(frame), 64))
    if not pieces:
        yield encode_packed(PackedNotification(message, Package(identification, partial=partial)))
    # Pieces differ in two places, so that the rest is encoded once.
    before, _, rest = frame.partition(_FRAGMENT_OPEN)
    end = rest.rindex(_MESSAGE_CLOSE)
    between = rest[rest.index(_FRAGMENT_CLOSE) : end]
    for package, piece in _packages(pieces, identification, partial):
        fragment = package.fragment.encode()
        yield b"".join((before, _FRAGMENT_OPEN, fragment, between, piece, rest[end:]))


def _text_element(escaped: bytes) -> bytes:
    return b'<hp:text xmlns:hp="%s">%s</hp:text>' % (HPWSN.encode(), escaped)


def fragment_of(notification: PackedNotification) -> Fragment:
    """Convert a packed notification to a fragment."""
    package = notification.package or Package("")
    if package.split and not package.identification:
        raise InvalidMessage(
            f"Fragment {package.fragment} has an empty Identification; give each message its own"
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
    """Return the notification from which a piece was split, with its complete content."""
    return NotificationMessage(piece.topic, complete_payload(content, limits), piece.producer)


def complete_payload(content: bytes, limits: Limits = STORED_LIMITS) -> bytes:
    """Return the payload for a content: an element if the content is XML, else text."""
    if content.lstrip()[:1] == b"<":
        try:
            return encode_element(parse_xml(content, limits, "utf-8", comments=True))
        except MalformedXml:
            pass  # it is text that begins with <
    return text_payload(content.decode())


def piece_message(piece: NotificationMessage, fragment: Fragment) -> NotificationMessage:
    """Return a separately delivered piece as a notification."""
    escaped = escape(fragment.content.decode()).encode()
    payload = encode_piece(str(fragment.identification), fragment.index, fragment.more, escaped)
    return NotificationMessage(piece.topic, payload, piece.producer)


def encode_piece(identification: str, index: int, more: bool, escaped: bytes) -> bytes:
    """Encode the element of a piece with its escaped text."""
    head = (
        f'<hp:Piece xmlns:hp="{HPWSN}" identification="{escape_attribute(identification)}"'
        f' index="{index}" more="{more:d}">'
    )
    return b"".join((head.encode(), escaped, b"</hp:Piece>"))


def piece_payloads(content: bytes, identification: str, room: int) -> list[bytes]:
    """Return a content as payloads of at most `room` bytes; empty if no split is needed or possible."""
    if len(content) <= room:
        return []
    escaped = escape(content.decode()).encode()
    text_room = room - PIECE_OVERHEAD - len(escape_attribute(identification).encode())
    pieces = cut_text(escaped, max(text_room, 64))
    if len(pieces) > LAST_INDEX + 1:
        return []
    last = len(pieces) - 1
    return [encode_piece(identification, i, i < last, piece) for i, piece in enumerate(pieces)]
