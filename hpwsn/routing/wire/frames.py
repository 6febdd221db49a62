"""Frames: the content of one datagram or of one record of a TCP link (version 1). Pure.

    "HW" version kind session:8 counter:8 length:1 sender body tag:16

Numbers are big-endian. The tag is a keyed BLAKE2b of everything before it. Two kinds of keys are derived
from the cluster secret by HKDF (RFC 5869): one for the greetings between two names, and one for each
session, from both names and from the random numbers that both sides sent in the greeting. A frame that was
recorded in an earlier session therefore has an invalid tag, and the counter reveals a frame that is
replayed within its session.

Greetings are Hello (the sender's random number is the session; the body has the stream and its next frame),
Welcome (the receiver's random number, and the next frame that it expects) and Reset (the session is
unknown: greet again). Within a session, Data contains fragments, and Feedback reports how far Data has
arrived and how much may be in flight. The parser rejects other versions, wrong lengths, unknown kinds and
wrong tags.

`Records` splits a TCP stream into frames, each with four bytes for its length. `ReplayWindow` accepts each
counter of a session once. It also rejects counters below the window, so that frames that are reordered
further than that are lost.
"""

from __future__ import annotations

import hashlib
import hmac
import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import IntEnum

from hpwsn.routing.wire.fragments import LAST_INDEX, Fragment

MAGIC = b"HW\x01"
TAG = 16
_HEAD = struct.Struct(">3sBQQB")
_ENTRY = struct.Struct(">BQII")
_GREETING = struct.Struct(">QQ")
_SPLIT, _MORE, _PARTIAL = 1, 2, 4
_HKDF_SALT = b"hpwsn routing 1"


class Kind(IntEnum):
    """The kind of a frame."""

    HELLO = 1
    WELCOME = 2
    RESET = 3
    DATA = 4
    FEEDBACK = 5


class MalformedFrame(ValueError):
    """Bytes that are not a valid frame of this version; the text says why."""


class WrongTag(ValueError):
    """A frame whose tag was not made with the expected key."""


@dataclass(frozen=True, slots=True)
class Frame:
    """A frame with a valid form; `check` verifies its tag."""

    kind: Kind
    sender: str
    session: int
    counter: int
    body: bytes
    signed: bytes
    tag: bytes

    def check(self, key: bytes) -> None:
        """Raise WrongTag unless the tag was made with this key."""
        if not hmac.compare_digest(_tag(key, self.signed), self.tag):
            raise WrongTag(
                f"a {self.kind.name} frame of {self.sender!r} has a wrong tag; compare cluster.secret"
            )


def greeting_key(secret: bytes, sender: str, receiver: str) -> bytes:
    """Return the key of the greetings from one node to another."""
    return _derive(secret, b"greeting", sender.encode(), receiver.encode())


def session_key(secret: bytes, sender: str, receiver: str, session: int, answer: int) -> bytes:
    """Return the key of the frames of a session, in one direction."""
    numbers = _GREETING.pack(session, answer)
    return _derive(secret, b"session", sender.encode(), receiver.encode(), numbers)


def _derive(secret: bytes, *parts: bytes) -> bytes:
    extracted = hmac.digest(_HKDF_SALT, secret, "sha256")
    info = b"".join(len(part).to_bytes(2, "big") + part for part in parts)
    return hmac.digest(extracted, info + b"\x01", "sha256")


def _tag(key: bytes, signed: bytes) -> bytes:
    return hashlib.blake2b(signed, key=key, digest_size=TAG).digest()


def encode_frame(kind: Kind, sender: bytes, session: int, counter: int, body: bytes, key: bytes) -> bytes:
    """Encode a frame; the sender's name is 1 to 255 bytes of UTF-8."""
    signed = _HEAD.pack(MAGIC, kind, session, counter, len(sender)) + sender + body
    return signed + _tag(key, signed)


def overhead(sender: str) -> int:
    """Return the bytes of a frame of this sender without its body."""
    return _HEAD.size + len(sender.encode()) + TAG


ENTRY_OVERHEAD = _ENTRY.size
"""Bytes of a fragment in a frame without its content."""


def parse_frame(data: bytes) -> Frame:
    """Parse a frame; its tag is not verified."""
    if len(data) < _HEAD.size + TAG:
        raise MalformedFrame(f"the frame has {len(data)} bytes, which is too short")
    magic, kind, session, counter, length = _HEAD.unpack_from(data)
    if magic != MAGIC:
        raise MalformedFrame(f"the frame begins with {magic!r}; this version begins with {MAGIC!r}")
    body = _HEAD.size + length
    if not length or body > len(data) - TAG:
        raise MalformedFrame(f"the sender's name has {length} bytes in a frame of {len(data)}")
    try:
        sender = data[_HEAD.size : body].decode()
        return Frame(Kind(kind), sender, session, counter, data[body:-TAG], data[:-TAG], data[-TAG:])
    except ValueError as error:
        raise MalformedFrame(f"the frame is malformed: {error}") from error


def encode_fragments(fragments: Iterable[Fragment]) -> bytes:
    """Encode the body of Data."""
    return b"".join(map(encode_fragment, fragments))


def encode_fragment(fragment: Fragment) -> bytes:
    """Encode one fragment; its identification must be a number."""
    flags = _SPLIT * fragment.split + _MORE * fragment.more + _PARTIAL * fragment.partial
    head = _ENTRY.pack(flags, fragment.identification, fragment.index, len(fragment.content))
    return head + fragment.content


def parse_fragments(body: bytes) -> Iterator[Fragment]:
    """Parse the body of Data."""
    at = 0
    while at < len(body):
        if len(body) - at < _ENTRY.size:
            raise MalformedFrame(f"{len(body) - at} unexpected bytes follow the last fragment")
        flags, identification, index, length = _ENTRY.unpack_from(body, at)
        at += _ENTRY.size
        if length > len(body) - at or index > LAST_INDEX or flags > 7:
            raise MalformedFrame(
                f"a fragment has invalid values: flags {flags}, index {index}, length {length}"
            )
        content = body[at : at + length]
        at += length
        yield Fragment(
            identification, content, bool(flags & _SPLIT), bool(flags & _MORE), bool(flags & _PARTIAL), index
        )


def encode_pair(first: int, second: int) -> bytes:
    """Encode the body of Hello, Welcome or Feedback: two numbers."""
    return _GREETING.pack(first, second)


def parse_pair(body: bytes) -> tuple[int, int]:
    """Parse two numbers."""
    if len(body) != _GREETING.size:
        raise MalformedFrame(f"the body has {len(body)} bytes; {_GREETING.size} are expected")
    first, second = _GREETING.unpack(body)
    return first, second


MAX_RECORD = 1 << 20
"""The most bytes of a record, so that a peer cannot make a node buffer gigabytes."""


def encode_record(frame: bytes) -> bytes:
    """Return a frame preceded by its length."""
    return len(frame).to_bytes(4, "big") + frame


class Records:
    """Splits a stream into frames, in whatever chunks it arrives."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Yield the frames that are complete now; ValueError for a record above the limit."""
        self._buffer += data
        at = 0
        while len(self._buffer) - at >= 4:
            length = int.from_bytes(self._buffer[at : at + 4], "big")
            if length > MAX_RECORD:
                raise ValueError(f"a record has {length} bytes; at most {MAX_RECORD} are allowed")
            if len(self._buffer) - at - 4 < length:
                break
            yield bytes(self._buffer[at + 4 : at + 4 + length])
            at += 4 + length
        del self._buffer[:at]


REPLAY_WIDTH = 4096
"""Counters that a replay window covers."""


class ReplayWindow:
    """The last accepted counters, as bits below the highest one."""

    def __init__(self, width: int = REPLAY_WIDTH) -> None:
        self._mask = (1 << width) - 1
        self._width = width
        self._seen = 0
        self.highest = -1

    def take(self, counter: int) -> bool:
        """Accept a counter once; return whether it was new."""
        ahead = counter - self.highest
        if ahead > 0:
            self._seen = ((self._seen << ahead) | 1) & self._mask if ahead < self._width else 1
            self.highest = counter
            return True
        if -ahead >= self._width or self._seen >> -ahead & 1:
            return False
        self._seen |= 1 << -ahead
        return True
