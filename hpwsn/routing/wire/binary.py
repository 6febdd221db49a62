"""Reading and writing the parts of binary messages, never beyond their end. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from struct import Struct, pack, unpack_from
from typing import Any

_LENGTH = Struct("!H")


class MalformedMessage(ValueError):
    """Bytes that are no message of ours, with what is wrong with them."""


class Reader:
    """A place in some bytes, which moves on with what is read."""

    __slots__ = ("_at", "_bytes", "_end")

    def __init__(self, data: bytes, at: int = 0, end: int | None = None) -> None:
        self._bytes = data
        self._at = at
        self._end = len(data) if end is None else end

    @property
    def left(self) -> int:
        """How many bytes are left."""
        return self._end - self._at

    @property
    def done(self) -> bool:
        """Whether nothing is left."""
        return self._at >= self._end

    def _take(self, length: int) -> int:
        """The place before the next `length` bytes."""
        at = self._at
        if length > self._end - at:
            raise MalformedMessage(f"{length} bytes should follow, and {self._end - at} do")
        self._at = at + length
        return at

    def part(self, length: int) -> Reader:
        """A reader of the next bytes."""
        at = self._take(length)
        return Reader(self._bytes, at, at + length)

    def unpack(self, form: Struct) -> tuple[Any, ...]:
        """The next values of a fixed form."""
        return form.unpack_from(self._bytes, self._take(form.size))

    def byte(self) -> int:
        """The next byte."""
        return self._bytes[self._take(1)]

    def u64s(self, count: int) -> tuple[int, ...]:
        """The next numbers of eight bytes."""
        return unpack_from(f"!{count}Q", self._bytes, self._take(8 * count))

    def rest(self) -> bytes:
        """All that is left."""
        at = self._take(self._end - self._at)
        return self._bytes[at : self._end]

    def name(self) -> str:
        """A text after one byte for its length, which is not empty."""
        found = self.text(self.byte())
        if not found:
            raise MalformedMessage("a name is empty")
        return found

    def texts(self, count: int) -> tuple[str, ...]:
        """Texts, each after two bytes for its length."""
        if 2 * count > self.left:
            raise MalformedMessage(f"{count} texts should follow in {self.left} bytes")
        return tuple(self.text(self.unpack(_LENGTH)[0]) for _ in range(count))

    def finish(self) -> None:
        """Refuse what is left over."""
        if not self.done:
            raise MalformedMessage(f"{self.left} bytes are left over")

    def text(self, length: int) -> str:
        """The next bytes as text."""
        at = self._take(length)
        try:
            return str(self._bytes[at : at + length], "utf-8")
        except UnicodeDecodeError as error:
            raise MalformedMessage(f"a text is not UTF-8: {error}") from error


def name(text: str) -> bytes:
    """A name after one byte for its length."""
    data = text.encode()
    return bytes((len(data),)) + data


def texts(all_of_them: Iterable[str]) -> bytes:
    """Texts, each after two bytes for its length."""
    encoded = [text.encode() for text in all_of_them]
    return b"".join(part for data in encoded for part in (_LENGTH.pack(len(data)), data))


def u64s(numbers: Sequence[int]) -> bytes:
    """Numbers of eight bytes each."""
    return pack(f"!{len(numbers)}Q", *numbers)
