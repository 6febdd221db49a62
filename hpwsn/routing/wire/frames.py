"""Frames: what one datagram, or one record of a TCP link, holds; version 1 (ARCHITECTURE.md, Cluster).

"HW" version kind session:8 counter:8 length:1 sender body tag:16

All numbers are big-endian. The tag is a keyed BLAKE2b over everything before it. Two keys come from the
cluster secret by HKDF (RFC 5869): one for greetings between two names, and one for each session, made of
both names and of the random numbers that both sides gave in the greeting. A frame recorded before either
side began anew therefore has a key that is gone; one from within the session has a counter that is known.

Greetings: Hello (the session's number is the sender's random one; the body tells the stream and what is
the next of it), Welcome (the receiver's random number, and the next of the stream that it wants), Reset
(no such session here: greet again). In a session: Data (fragments, each with its fields and length) and
Feedback (how far Data has come, and how much may be under way). Owns the form and the keys; refuses other
versions, other lengths, unknown kinds and wrong tags. A body that a tag vouches for is still read with
care.

Frames in a stream of bytes: each after its length, in four bytes. Pure.

Refuses a length that no frame of ours has, so that a peer cannot make a node wait for gigabytes.

A sliding window over the counters of one session: each frame is taken once. Pure.

A counter below the window is refused as well, since nothing is known of it any more; frames that a
network reorders further than the window is wide are lost with that, as they would be late anyway.
"""

from __future__ import annotations

import hashlib
import hmac
import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import IntEnum

from hpwsn.routing.wire.fragments import LAST_INDEX, Fragment

MAX_RECORD = 1 << 20


def encode_record(frame: bytes) -> bytes:
    """A frame with its length."""
    return len(frame).to_bytes(4, "big") + frame


class Records:
    """Cuts a stream, however it is delivered, into frames."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> Iterator[bytes]:
        """The frames that are whole with these bytes; ValueError for an impossible length."""
        self._buffer += data
        at = 0
        while len(self._buffer) - at >= 4:
            length = int.from_bytes(self._buffer[at : at + 4], "big")
            if length > MAX_RECORD:
                raise ValueError(f"a record of {length} bytes is longer than {MAX_RECORD}")
            if len(self._buffer) - at - 4 < length:
                break
            yield bytes(self._buffer[at + 4 : at + 4 + length])
            at += 4 + length
        del self._buffer[:at]


REPLAY_WIDTH = 4096


class ReplayWindow:
    """Which of the last counters have been seen, as bits below the highest."""

    def __init__(self, width: int = REPLAY_WIDTH) -> None:
        self._mask = (1 << width) - 1
        self._width = width
        self._seen = 0
        self.highest = -1

    def take(self, counter: int) -> bool:
        """Whether a counter is new; it is not from now on."""
        ahead = counter - self.highest
        if ahead > 0:
            self._seen = ((self._seen << ahead) | 1) & self._mask if ahead < self._width else 1
            self.highest = counter
            return True
        if -ahead >= self._width or self._seen >> -ahead & 1:
            return False
        self._seen |= 1 << -ahead
        return True


MAGIC = b"HW\x01"
TAG = 16
_HEAD = struct.Struct(">3sBQQB")
_ENTRY = struct.Struct(">BQII")
_GREETING = struct.Struct(">QQ")
_SPLIT, _MORE, _PARTIAL = 1, 2, 4
_HKDF_SALT = b"hpwsn routing 1"


class Kind(IntEnum):
    """What a frame is for."""

    HELLO = 1
    WELCOME = 2
    RESET = 3
    DATA = 4
    FEEDBACK = 5


class MalformedFrame(ValueError):
    """Bytes that are no frame of this version, with what is wrong with them."""


class WrongTag(ValueError):
    """A frame that nobody with this key has written."""


@dataclass(frozen=True, slots=True)
class Frame:
    """A frame whose form is right; whether its tag is, only the key of its sender tells."""

    kind: Kind
    sender: str
    session: int
    counter: int
    body: bytes
    signed: bytes
    tag: bytes

    def check(self, key: bytes) -> None:
        """Raise WrongTag unless the frame was written with this key."""
        if not hmac.compare_digest(_tag(key, self.signed), self.tag):
            raise WrongTag(f"a {self.kind.name} frame of {self.sender!r} has a wrong tag")


def greeting_key(secret: bytes, sender: str, receiver: str) -> bytes:
    """The key of the greetings that one name sends to another."""
    return _derive(secret, b"greeting", sender.encode(), receiver.encode())


def session_key(secret: bytes, sender: str, receiver: str, session: int, answer: int) -> bytes:
    """The key of one session's frames in one direction."""
    numbers = _GREETING.pack(session, answer)
    return _derive(secret, b"session", sender.encode(), receiver.encode(), numbers)


def _derive(secret: bytes, *parts: bytes) -> bytes:
    extracted = hmac.digest(_HKDF_SALT, secret, "sha256")
    info = b"".join(len(part).to_bytes(2, "big") + part for part in parts)
    return hmac.digest(extracted, info + b"\x01", "sha256")


def _tag(key: bytes, signed: bytes) -> bytes:
    return hashlib.blake2b(signed, key=key, digest_size=TAG).digest()


def encode_frame(kind: Kind, sender: bytes, session: int, counter: int, body: bytes, key: bytes) -> bytes:
    """Write a frame; the sender's name is its UTF-8, of 1 to 255 bytes."""
    signed = _HEAD.pack(MAGIC, kind, session, counter, len(sender)) + sender + body
    return signed + _tag(key, signed)


def overhead(sender: str) -> int:
    """Bytes of a frame of this sender beside its body."""
    return _HEAD.size + len(sender.encode()) + TAG


ENTRY_OVERHEAD = _ENTRY.size
"""Bytes of a fragment in a frame beside its content."""


def parse_frame(data: bytes) -> Frame:
    """Read a frame as far as that needs no key."""
    if len(data) < _HEAD.size + TAG:
        raise MalformedFrame(f"{len(data)} bytes are too few for a frame")
    magic, kind, session, counter, length = _HEAD.unpack_from(data)
    if magic != MAGIC:
        raise MalformedFrame(f"it begins with {magic!r}, and a frame of this version with {MAGIC!r}")
    body = _HEAD.size + length
    if not length or body > len(data) - TAG:
        raise MalformedFrame(f"the sender's name has {length} bytes of {len(data)}")
    try:
        sender = data[_HEAD.size : body].decode()
        return Frame(Kind(kind), sender, session, counter, data[body:-TAG], data[:-TAG], data[-TAG:])
    except ValueError as error:
        raise MalformedFrame(f"the frame cannot be read: {error}") from error


def encode_fragments(fragments: Iterable[Fragment]) -> bytes:
    """Write the body of Data."""
    return b"".join(map(encode_fragment, fragments))


def encode_fragment(fragment: Fragment) -> bytes:
    """Write one fragment; its identification is a number here."""
    flags = _SPLIT * fragment.split + _MORE * fragment.more + _PARTIAL * fragment.partial
    head = _ENTRY.pack(flags, fragment.identification, fragment.index, len(fragment.content))
    return head + fragment.content


def parse_fragments(body: bytes) -> Iterator[Fragment]:
    """Read the body of Data."""
    at = 0
    while at < len(body):
        if len(body) - at < _ENTRY.size:
            raise MalformedFrame(f"{len(body) - at} bytes are left over")
        flags, identification, index, length = _ENTRY.unpack_from(body, at)
        at += _ENTRY.size
        if length > len(body) - at or index > LAST_INDEX or flags > 7:
            raise MalformedFrame(f"a fragment says {flags}, {index}, {length}")
        content = body[at : at + length]
        at += length
        yield Fragment(
            identification, content, bool(flags & _SPLIT), bool(flags & _MORE), bool(flags & _PARTIAL), index
        )


def encode_pair(first: int, second: int) -> bytes:
    """Write the body of a Hello, a Welcome or Feedback: two numbers."""
    return _GREETING.pack(first, second)


def parse_pair(body: bytes) -> tuple[int, int]:
    """Read two numbers."""
    if len(body) != _GREETING.size:
        raise MalformedFrame(f"a body of {len(body)} bytes should have {_GREETING.size}")
    first, second = _GREETING.unpack(body)
    return first, second
