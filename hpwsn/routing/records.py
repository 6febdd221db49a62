"""Frames in a stream of bytes: each after its length, in four bytes. Pure.

Refuses a length that no frame of ours has, so that a peer cannot make a node wait for gigabytes.
"""

from __future__ import annotations

from collections.abc import Iterator

LONGEST = 1 << 20


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
            if length > LONGEST:
                raise ValueError(f"a record of {length} bytes is longer than {LONGEST}")
            if len(self._buffer) - at - 4 < length:
                break
            yield bytes(self._buffer[at + 4 : at + 4 + length])
            at += 4 + length
        del self._buffer[:at]
