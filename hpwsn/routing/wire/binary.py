"""Reading and writing the parts of binary messages; the reader never reads beyond the end. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from struct import Struct, pack, unpack_from
from typing import Any

_LENGTH = Struct("!H")


class MalformedMessage(ValueError):
    """Bytes that are not a valid message; the text says why."""


class Reader:
    """Reads values from bytes, one after the other."""

    __slots__ = ("_at", "_bytes", "_end")

    def __init__(self, data: bytes, at: int = 0, end: int | None = None) -> None:
        self._bytes = data
        self._at = at
        self._end = len(data) if end is None else end

    @property
    def left(self) -> int:
        """The number of unread bytes."""
        return self._end - self._at

    @property
    def done(self) -> bool:
        """Whether all bytes are read."""
        return self._at >= self._end

    def _take(self, length: int) -> int:
        """Advance by `length` bytes; return the position before them."""
        at = self._at
        if length > self._end - at:
            raise MalformedMessage(
                f"the message is truncated: {length} bytes expected, {self._end - at} left"
            )
        self._at = at + length
        return at

    def part(self, length: int) -> Reader:
        """Return a reader of the next `length` bytes."""
        at = self._take(length)
        return Reader(self._bytes, at, at + length)

    def unpack(self, form: Struct) -> tuple[Any, ...]:
        """Read the values of a struct."""
        return form.unpack_from(self._bytes, self._take(form.size))

    def byte(self) -> int:
        """Read a byte."""
        return self._bytes[self._take(1)]

    def u64s(self, count: int) -> tuple[int, ...]:
        """Read unsigned numbers of eight bytes."""
        return unpack_from(f"!{count}Q", self._bytes, self._take(8 * count))

    def rest(self) -> bytes:
        """Read all remaining bytes."""
        at = self._take(self._end - self._at)
        return self._bytes[at : self._end]

    def name(self) -> str:
        """Read a text with one byte for its length; it must not be empty."""
        found = self.text(self.byte())
        if not found:
            raise MalformedMessage("a name is empty")
        return found

    def texts(self, count: int) -> tuple[str, ...]:
        """Read texts, each with two bytes for its length."""
        if 2 * count > self.left:
            raise MalformedMessage(f"{count} texts cannot fit into {self.left} bytes")
        return tuple(self.text(self.unpack(_LENGTH)[0]) for _ in range(count))

    def finish(self) -> None:
        """Raise MalformedMessage if bytes are left."""
        if not self.done:
            raise MalformedMessage(f"{self.left} unexpected bytes follow the message")

    def text(self, length: int) -> str:
        """Read `length` bytes of UTF-8."""
        at = self._take(length)
        try:
            return str(self._bytes[at : at + length], "utf-8")
        except UnicodeDecodeError as error:
            raise MalformedMessage(f"a text is not UTF-8: {error}") from error


def name(text: str) -> bytes:
    """Encode a name with one byte for its length."""
    data = text.encode()
    return bytes((len(data),)) + data


def texts(strings: Iterable[str]) -> bytes:
    """Encode texts, each with two bytes for its length."""
    encoded = [text.encode() for text in strings]
    return b"".join(part for data in encoded for part in (_LENGTH.pack(len(data)), data))


def u64s(numbers: Sequence[int]) -> bytes:
    """Encode unsigned numbers of eight bytes each."""
    return pack(f"!{len(numbers)}Q", *numbers)
