"""The messages between routers, and their binary form (version 1). Pure.

A payload of a link is a version byte followed by messages. A message is its kind (one byte), the length of
its body (four bytes) and the body. Numbers are big-endian. Names have one byte for their length; topics and
patterns have two. The parser rejects other versions, unknown kinds, wrong lengths, and values above the
limits. The links split a payload into datagrams and authenticate its sender.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from struct import Struct
from typing import NamedTuple

from hpwsn.routing.wire.binary import MalformedMessage, Reader, name, texts, u64s
from hpwsn.routing.wire.publication import Flag, LargePayload, Leg, Publication, PublicationId

__all__ = [
    "Ack",
    "Flag",
    "Interest",
    "InterestRequest",
    "Leg",
    "MalformedMessage",
    "Message",
    "Publication",
    "PublicationId",
    "ResendRequest",
    "Scope",
    "Subject",
    "Version",
    "Versions",
    "encode_large",
    "encode_messages",
    "parse_large",
    "parse_messages",
]

VERSION = 1
MAX_PATTERNS = 200_000
MAX_NUMBERS = 65_535

_HEAD = Struct("!BI")
_PUBLICATION = Struct("!BBBQQQBH")
_NO_TOPIC = 0xFFFF
_LONGEST_HEAD = 1 + _HEAD.size + _PUBLICATION.size + 255 + 0xFFFF
_INTEREST = Struct("!BBQQQ")


@dataclass(frozen=True, slots=True)
class Ack:
    """Acknowledges reliable publications of one origin.

    DIRECT: the sender has stored them. UP: the sender and the other clusters have. CROSS: its cluster has.
    """

    leg: Leg
    origin: str
    epoch: int
    numbers: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ResendRequest:
    """Requests reliable publications again on a leg, because the sender has a new route for them."""

    leg: Leg
    origin: str
    epoch: int
    numbers: tuple[int, ...]


class Scope(IntEnum):
    """The kind of subject of an interest."""

    NODE = 1
    CLUSTER = 2
    FOREIGN = 3
    """All clusters except the receiver's own, together."""


class Subject(NamedTuple):
    """The subject of an interest; `name` is the node or cluster, for FOREIGN the aggregating node."""

    scope: Scope
    name: str


class Version(NamedTuple):
    """The version of an interest; versions start again in each incarnation of the source."""

    subject: Subject
    incarnation: int
    version: int


@dataclass(frozen=True, slots=True)
class Interest:
    """The interest of a subject: a snapshot if `base` is 0, else the changes since version `base`.

    The patterns are texts (hpwsn.routing.wire.patterns). An aggregated interest is not `complete` while the
    interest of some nodes has not arrived.
    """

    subject: Subject
    incarnation: int
    version: int
    base: int
    added: tuple[str, ...]
    removed: tuple[str, ...] = ()
    complete: bool = True


@dataclass(frozen=True, slots=True)
class Versions:
    """The versions that the sender has; the receiver requests those that it lacks."""

    entries: tuple[Version, ...]


@dataclass(frozen=True, slots=True)
class InterestRequest:
    """Requests snapshots of interests."""

    subjects: tuple[Subject, ...]


Message = Publication | Ack | ResendRequest | Interest | Versions | InterestRequest


def encode_messages(messages: Iterable[Message]) -> bytes:
    """Encode messages as one payload."""
    parts = [bytes((VERSION,))]
    for message in messages:
        kind, encode = _ENCODERS[type(message)]
        body = encode(message)
        parts += (_HEAD.pack(kind, len(body)), body)
    return b"".join(parts)


def parse_messages(payload: bytes) -> list[Message]:
    """Parse the messages of a payload."""
    if not payload or payload[0] != VERSION:
        raise MalformedMessage(
            f"the payload begins with {payload[:1]!r}; it must begin with the version {VERSION}"
        )
    reader, messages = Reader(payload, 1), []
    while not reader.done:
        kind, length = reader.unpack(_HEAD)
        parse = _PARSERS.get(kind)
        if parse is None:
            raise MalformedMessage(f"the message kind {kind} is unknown")
        messages.append(parse(reader.part(length)))
    return messages


def encode_large(message: Publication) -> list[bytes]:
    """Encode one large publication as a payload of a link, in parts."""
    assert isinstance(message.payload, LargePayload)
    head = _encode_head(message)
    size = len(head) + len(message.payload)
    return [b"".join((bytes((VERSION,)), _HEAD.pack(1, size), head)), *message.payload.parts]


def parse_large(pieces: Sequence[bytes]) -> list[Message]:
    """Parse a large payload of a link; the payload of a publication stays in pieces."""
    beginning, count = b"", 0
    while count < len(pieces) and len(beginning) < _LONGEST_HEAD:
        beginning += pieces[count]
        count += 1
    size = len(beginning) + sum(map(len, pieces[count:]))
    start = 1 + _HEAD.size
    if beginning[:1] != bytes((VERSION,)) or _HEAD.unpack_from(beginning, 1) != (1, size - start):
        return parse_messages(b"".join(pieces))
    publication = _parse_publication(Reader(beginning, start))
    assert isinstance(publication.payload, bytes)
    return [publication._replace(payload=LargePayload((publication.payload, *pieces[count:])))]


def _encode_publication(message: Publication) -> bytes:
    assert isinstance(message.payload, bytes)
    return _encode_head(message) + message.payload


def _encode_head(message: Publication) -> bytes:
    (origin, epoch, number), topic, _, flags, leg, hops, floor = message
    source = origin.encode()
    text = b"" if topic is None else topic.encode()
    return b"%b%b%b" % (
        _PUBLICATION.pack(
            flags, leg, hops, epoch, number, floor, len(source), _NO_TOPIC if topic is None else len(text)
        ),
        source,
        text,
    )


def _parse_publication(reader: Reader) -> Publication:
    flags, leg, hops, epoch, number, floor, source, text = reader.unpack(_PUBLICATION)
    if flags > 15 or not source:
        raise MalformedMessage(f"a publication has invalid flags {flags} or an origin of {source} bytes")
    origin, topic = reader.text(source), None if text == _NO_TOPIC else reader.text(text)
    return Publication(
        PublicationId(origin, epoch, number), topic, reader.rest(), flags, _leg(leg), hops, floor
    )


def _encode_numbers(message: Ack | ResendRequest) -> bytes:
    return b"".join(
        (bytes((message.leg,)), name(message.origin), u64s((message.epoch,)), u64s(message.numbers))
    )


def _parse_numbers(reader: Reader, kind: type[Ack] | type[ResendRequest]) -> Ack | ResendRequest:
    leg, origin, (epoch,) = _leg(reader.byte()), reader.name(), reader.u64s(1)
    count = reader.left // 8
    if not 0 < count <= MAX_NUMBERS:
        raise MalformedMessage(f"the message names {count} publications; 1 to {MAX_NUMBERS} are allowed")
    numbers = reader.u64s(count)
    reader.finish()
    return kind(leg, origin, epoch, numbers)


def _encode_interest(message: Interest) -> bytes:
    scope, subject = message.subject
    fixed = _INTEREST.pack(scope, message.complete, message.incarnation, message.version, message.base)
    counts = Struct("!II").pack(len(message.added), len(message.removed))
    return b"".join((fixed, name(subject), counts, texts(message.added), texts(message.removed)))


def _parse_interest(reader: Reader) -> Interest:
    scope, complete, incarnation, version, base = reader.unpack(_INTEREST)
    subject = Subject(_scope(scope), reader.name())
    added, removed = reader.unpack(Struct("!II"))
    if added + removed > MAX_PATTERNS:
        raise MalformedMessage(
            f"the interest has {added + removed} patterns; at most {MAX_PATTERNS} are allowed"
        )
    if complete > 1 or (removed and not base) or base >= version:
        raise MalformedMessage(
            f"the interest has inconsistent values: complete {complete}, version {version}, base {base}"
        )
    message = Interest(
        subject, incarnation, version, base, reader.texts(added), reader.texts(removed), bool(complete)
    )
    reader.finish()
    return message


def _encode_versions(message: Versions) -> bytes:
    return b"".join(
        bytes((each.subject.scope,)) + name(each.subject.name) + u64s((each.incarnation, each.version))
        for each in message.entries
    )


def _parse_versions(reader: Reader) -> Versions:
    entries: list[Version] = []
    while not reader.done:
        subject = _subject(reader)
        entries.append(Version(subject, *reader.u64s(2)))
    return Versions(tuple(entries))


def _encode_ask(message: InterestRequest) -> bytes:
    return b"".join(bytes((scope,)) + name(subject) for scope, subject in message.subjects)


def _parse_ask(reader: Reader) -> InterestRequest:
    subjects: list[Subject] = []
    while not reader.done:
        subjects.append(_subject(reader))
    return InterestRequest(tuple(subjects))


def _subject(reader: Reader) -> Subject:
    scope = _scope(reader.byte())
    return Subject(scope, reader.name())


_LEGS = {int(leg): leg for leg in Leg}
_SCOPES = {int(scope): scope for scope in Scope}


def _leg(number: int) -> Leg:
    try:
        return _LEGS[number]
    except KeyError:
        raise MalformedMessage(f"the leg {number} is unknown") from None


def _scope(number: int) -> Scope:
    try:
        return _SCOPES[number]
    except KeyError:
        raise MalformedMessage(f"the scope {number} is unknown") from None


_ENCODERS: dict[type, tuple[int, Callable[..., bytes]]] = {
    Publication: (1, _encode_publication),
    Ack: (2, _encode_numbers),
    ResendRequest: (3, _encode_numbers),
    Interest: (4, _encode_interest),
    Versions: (5, _encode_versions),
    InterestRequest: (6, _encode_ask),
}
_PARSERS: dict[int, Callable[[Reader], Message]] = {
    1: _parse_publication,
    2: lambda reader: _parse_numbers(reader, Ack),
    3: lambda reader: _parse_numbers(reader, ResendRequest),
    4: _parse_interest,
    5: _parse_versions,
    6: _parse_ask,
}
