"""Bodies of the frames on the link: notifications and their outcomes, requests for the full door and replies.

A PUBLISH holds many Notifies of many connections, each under a number by which it is settled. Its tables are
whole numbers of four bytes, big-endian, in one run, so that one call reads them: how many Notifies,
notifications and topics; the lengths of the topics; number, connection, bytes, count and length of the id of
each Notify (0 for none); topic (from 1, 0 for none), length, start and end of each notification. Topics, ids
and contents follow. Pure; refuses whatever does not fit to the byte.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from struct import Struct, error, pack, unpack_from
from typing import NamedTuple

from hpwsn.workers.frames import BadFrame
from hpwsn_client.wsn.notify_scan import Encoded
from hpwsn_client.wsn.soap import SoapVersion
from hpwsn_client.wsn.soap_faults import SoapFault
from hpwsn_client.wsn.topics import Topic

NUMBERS = 1 << 32
"""How many numbers there are, for Notifies and for connections; they begin again after the last."""
TOPICS = 4096
"""Topics that are remembered by their bytes."""

_OFFER = 5
"""Numbers of a Notify in the table."""

_counts = Struct("!III")
_settled = Struct("!II")
_seen = Struct("!I")
_full = Struct("!IBB")
_reply = Struct("!IHI")
_VERSIONS = {SoapVersion.SOAP11: 1, SoapVersion.SOAP12: 2}
_VERSION_OF = {number: version for version, number in _VERSIONS.items()}


class Offer(NamedTuple):
    """One Notify: its number, its connection's, how many bytes the request had, how many messages, its id."""

    number: int
    connection: int
    size: int
    messages: int
    message_id: str | None = None


class Settled(NamedTuple):
    """What became of some Notifies; a door says that it has seen the serial if there are refused ones."""

    serial: int
    stored: Sequence[int]
    refused: Sequence[int]


class FullRequest(NamedTuple):
    """A request for the full door."""

    number: int
    version: SoapVersion
    charset: str | None
    data: bytes


class FullReply(NamedTuple):
    """Its answer."""

    number: int
    status: int
    headers: Mapping[str, str]
    body: bytes


class TopicCache:
    """Topics by their bytes, since the same ones come again and again."""

    def __init__(self) -> None:
        self._known: dict[bytes, Topic] = {}

    def find(self, text: bytes) -> Topic:
        """The topic that is written so."""
        found = self._known.get(text)
        if found is None:
            found = Topic.parse(text.decode())
            if len(self._known) >= TOPICS:
                self._known.clear()
            self._known[text] = found
        return found


def encode_publish(offers: Sequence[Offer], messages: Iterable[Encoded]) -> bytes:
    """The Notifies, with the messages of all of them in one row."""
    numbers: dict[Topic | None, int] = {None: 0}
    entries: list[int] = []
    contents: list[bytes] = []
    for topic, content, start, end, _ in messages:
        entries += (numbers.setdefault(topic, len(numbers)), len(content), start, end)
        contents.append(content)
    topics = [str(topic).encode() for topic in numbers if topic is not None]
    ids = [(offer.message_id or "").encode() for offer in offers]
    noted = (value for offer, id_ in zip(offers, ids, strict=True) for value in (*offer[:4], len(id_)))
    table = [*map(len, topics), *noted, *entries]
    return b"".join(
        (
            _counts.pack(len(offers), len(contents), len(topics)),
            pack(f"!{len(table)}I", *table),
            *topics,
            *ids,
            *contents,
        )
    )


def decode_publish(body: bytes, topics: TopicCache) -> tuple[list[Offer], list[Encoded]]:
    """The Notifies, and the messages of all of them in one row."""
    try:
        offers, messages = _read_publish(body, topics)
    except (error, IndexError, UnicodeDecodeError, SoapFault) as wrong:
        raise BadFrame(f"notifications cannot be read: {wrong}") from wrong
    if not offers or sum(offer.messages for offer in offers) != len(messages):
        raise BadFrame("Notifies and their notifications are not as many as they say")
    return offers, messages


def _read_publish(body: bytes, topics: TopicCache) -> tuple[list[Offer], list[Encoded]]:
    offered, noted, named = _counts.unpack_from(body)
    size = named + _OFFER * offered + 4 * noted
    at = _counts.size + 4 * size
    if at > len(body):
        raise BadFrame(f"the tables have {at} bytes, and the body {len(body)}")
    table = unpack_from(f"!{size}I", body, _counts.size)
    known: list[Topic | None] = [None]
    for length in table[:named]:
        known.append(topics.find(body[at : at + length]))
        at += length
    offers = []
    for begin in range(named, named + _OFFER * offered, _OFFER):
        number, connection, taken, count, length = table[begin : begin + _OFFER]
        message_id = body[at : at + length].decode() if length else None
        at += length
        offers.append(Offer(number, connection, taken, count, message_id))
    ids = (offer.message_id for offer in offers for _ in range(min(offer.messages, noted)))
    entries = iter(table[named + _OFFER * offered :])
    messages = []
    for topic, length, start, end in zip(entries, entries, entries, entries, strict=True):
        if not start <= end <= length:
            raise BadFrame(f"a payload is from {start} to {end} of {length} bytes")
        messages.append(Encoded(known[topic], body[at : at + length], start, end, next(ids, None)))
        at += length
    if at != len(body):
        raise BadFrame(f"the contents have {at} bytes, and the body {len(body)}")
    return offers, messages


def encode_settled(settled: Settled) -> bytes:
    """What became of some Notifies."""
    numbers = (*settled.stored, *settled.refused)
    return _settled.pack(settled.serial, len(settled.stored)) + pack(f"!{len(numbers)}I", *numbers)


def decode_settled(body: bytes) -> Settled:
    """What became of some Notifies."""
    try:
        serial, stored = _settled.unpack_from(body)
        numbers = unpack_from(f"!{(len(body) - _settled.size) // 4}I", body, _settled.size)
    except error as wrong:
        raise BadFrame(f"outcomes cannot be read: {wrong}") from wrong
    if len(body) % 4 or stored > len(numbers):
        raise BadFrame(f"{stored} of {len(numbers)} are stored")
    return Settled(serial, numbers[:stored], numbers[stored:])


def encode_seen(serial: int) -> bytes:
    """That refusals have been seen."""
    return _seen.pack(serial)


def decode_seen(body: bytes) -> int:
    """The serial whose refusals have been seen."""
    try:
        (serial,) = _seen.unpack(body)
    except error as wrong:
        raise BadFrame(f"a serial cannot be read: {wrong}") from wrong
    return int(serial)


def encode_full(request: FullRequest) -> bytes:
    """A request for the full door."""
    charset = (request.charset or "").encode()
    return b"".join(
        (_full.pack(request.number, _VERSIONS[request.version], len(charset)), charset, request.data)
    )


def decode_full(body: bytes) -> FullRequest:
    """A request for the full door."""
    try:
        number, version, length = _full.unpack_from(body)
        begin = _full.size + length
        charset = body[_full.size : begin].decode()
        return FullRequest(number, _VERSION_OF[version], charset or None, body[begin:])
    except (error, KeyError, UnicodeDecodeError) as wrong:
        raise BadFrame(f"a request cannot be read: {wrong!r}") from wrong


def encode_reply(reply: FullReply) -> bytes:
    """The full door's answer."""
    headers = json.dumps(dict(reply.headers)).encode()
    return b"".join((_reply.pack(reply.number, reply.status, len(headers)), headers, reply.body))


def decode_reply(body: bytes) -> FullReply:
    """The full door's answer."""
    try:
        number, status, length = _reply.unpack_from(body)
        begin = _reply.size + length
        headers = json.loads(body[_reply.size : begin])
    except (error, ValueError) as wrong:
        raise BadFrame(f"an answer cannot be read: {wrong}") from wrong
    if not isinstance(headers, dict):
        raise BadFrame("the headers of an answer are no object")
    return FullReply(number, status, headers, body[begin:])
