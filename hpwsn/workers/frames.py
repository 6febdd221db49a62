"""Frames of the link between the core and a door: length, version, kind, body. Pure: bytes in, frames out.

The length is that of the body, and bounded by whoever reads. A frame of another version comes from a door
that was started after the software had been replaced under a running core, and is refused like any other
that makes no sense: the link ends with it.
"""

from __future__ import annotations

from enum import IntEnum
from struct import Struct

VERSION = 1
SLACK = 4 << 20
"""Bytes that a frame may be longer than the largest request."""
LONGEST_REPLY = 1 << 30
"""Bytes of a frame to a door, which carries answers."""

_head = Struct("!IBB")


class Kind(IntEnum):
    """What a frame is; the first four go to the core, the others to a door."""

    READY = 1
    PUBLISH = 2
    SEEN = 3
    FULL = 4
    SETTLED = 5
    REPLY = 6
    DRAIN = 7
    RELOAD = 8


class BadFrame(ValueError):
    """Bytes that are no frame of ours, with what is wrong with them."""


def encode_frame(kind: Kind, *parts: bytes) -> bytes:
    """A frame with a body of some parts."""
    return b"".join((_head.pack(sum(map(len, parts)), VERSION, kind), *parts))


class FrameReader:
    """Cuts frames out of a stream, wherever that is split."""

    def __init__(self, longest: int) -> None:
        self._longest = longest
        self._parts: list[bytes] = []
        self._missing = _head.size

    def feed(self, data: bytes) -> list[tuple[Kind, bytes]]:
        """The frames that are whole now."""
        if len(data) < self._missing:
            # A long frame comes in many reads, which are joined once.
            self._parts.append(data)
            self._missing -= len(data)
            return []
        if self._parts:
            data = b"".join((*self._parts, data))
        frames, at = [], 0
        while (end := at + self._length(data, at)) <= len(data):
            frames.append((Kind(data[at + _head.size - 1]), data[at + _head.size : end]))
            at = end
        self._parts, self._missing = [data[at:]] if at < len(data) else [], end - len(data)
        return frames

    def _length(self, data: bytes, at: int) -> int:
        """How many bytes the next frame has, or its head where that is not whole."""
        if len(data) - at < _head.size:
            return _head.size
        length, version, kind = _head.unpack_from(data, at)
        if version != VERSION:
            raise BadFrame(f"a frame has version {version}, and this is {VERSION}: restart the node")
        if kind not in _KINDS:
            raise BadFrame(f"there is no frame of kind {kind}")
        if length > self._longest:
            raise BadFrame(f"a frame has {length} bytes, and {self._longest} are the most")
        return _head.size + int(length)


_KINDS = frozenset(Kind)
