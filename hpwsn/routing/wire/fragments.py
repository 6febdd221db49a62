"""Fragments: splitting a message into pieces that fit a datagram, and reassembly. Pure.

As in the original HPwsn, every piece has the identification of its message, an index from 0 to 99999,
and the flags split (the message has several pieces), more (this is not the last one) and partial (pieces
may be delivered separately). Pieces may arrive in any order, twice, late or never, from many senders at
once. An incomplete message is dropped when no piece arrives within a timeout. Memory is bounded: the least
recently used message is dropped first. The two wire formats of a fragment are elsewhere, and the time is an
argument.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field

LAST_INDEX = 99999
OVERHEAD = 128
"""Bytes that count for a piece in addition to its content, so that empty pieces are bounded too."""
_cut_reference = re.compile(rb"&[^;]{0,9}\Z")


@dataclass(frozen=True, slots=True)
class Fragment:
    """A piece of a message, or a complete message that is not split."""

    identification: str | int
    content: bytes
    split: bool = False
    more: bool = False
    partial: bool = False
    index: int = 0


def split_message(
    identification: str | int, content: bytes, room: int, *, partial: bool = False
) -> Iterator[Fragment]:
    """Yield the pieces of a message, each with at most `room` bytes; a small message is not split."""
    if len(content) <= room:
        yield Fragment(identification, content, partial=partial)
        return
    last = (len(content) - 1) // room
    if last > LAST_INDEX:
        raise too_many_pieces(len(content), room)
    for index in range(last + 1):
        piece = content[index * room : (index + 1) * room]
        yield Fragment(identification, piece, True, index < last, partial, index)


def too_many_pieces(size: int, room: int) -> ValueError:
    """The error for a message whose last piece would have too large an index."""
    return ValueError(
        f"a message of {size} bytes needs more than {LAST_INDEX + 1} pieces of {room} bytes;"
        " send smaller messages, or increase routing.fragment_size"
    )


def cut_text(text: bytes, room: int) -> list[bytes]:
    """Split escaped UTF-8 text; no character and no reference such as &amp; is broken."""
    if room < 16:
        raise ValueError(f"pieces of {room} bytes are too small for text; allow at least 16")
    pieces = []
    at = 0
    while len(text) - at > room:
        end = at + room
        while 0x80 <= text[end] < 0xC0:
            end -= 1
        if open_reference := _cut_reference.search(text, at, end):
            end = open_reference.start()
        pieces.append(text[at:end])
        at = end
    return [*pieces, text[at:]]


@dataclass(frozen=True, slots=True)
class CompleteMessage:
    """The content of a reassembled message."""

    content: bytes


@dataclass(frozen=True, slots=True)
class LargeMessage:
    """A complete message whose pieces are not joined, because that would take too long in an event loop."""

    pieces: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class Piece:
    """A piece that may be delivered separately, and is not a duplicate."""

    fragment: Fragment


class Splitting:
    """A message in parts, of which `next` makes one piece after the other, each with `room` bytes at most."""

    def __init__(self, identification: int, parts: Sequence[bytes], room: int) -> None:
        self._identification = identification
        self._parts = parts
        self._room = room
        self.size = sum(map(len, parts))
        self._last = max(self.size - 1, 0) // room
        if self._last > LAST_INDEX:
            raise too_many_pieces(self.size, room)
        self.restart()

    def restart(self) -> None:
        """Begin with the first piece again."""
        self._index = self._part = self._at = 0

    @property
    def done(self) -> bool:
        """Whether the last piece was made."""
        return self._index > self._last

    def next(self) -> Fragment:
        """The next piece."""
        index, room = self._index, self._room
        taken: list[bytes] = []
        while room and self._part < len(self._parts):
            part = self._parts[self._part]
            taken.append(part[self._at : self._at + room])
            room -= len(taken[-1])
            self._at += len(taken[-1])
            if self._at >= len(part):
                self._part, self._at = self._part + 1, 0
        self._index += 1
        split = self._last > 0
        return Fragment(self._identification, b"".join(taken), split, index < self._last, False, index)


@dataclass(slots=True)
class _Incomplete:
    touched: float
    pieces: dict[int, bytes] = field(default_factory=dict)
    last: int | None = None
    size: int = 0


class Reassembly:
    """Reassembles the messages of any number of senders."""

    def __init__(
        self,
        *,
        timeout: float,
        max_bytes: int,
        max_messages: int,
        large: int | None = None,
        keep_one: bool = False,
    ) -> None:
        """With `large`, messages of at least so many bytes are returned in pieces.

        With `keep_one`, the message whose piece came last is never dropped, however large it is.
        """
        self._keep_one = keep_one
        self._timeout = timeout
        self._large = large
        self._max_bytes = max_bytes
        self._max_messages = max_messages
        self._incomplete: OrderedDict[Hashable, _Incomplete] = OrderedDict()
        self._finished: OrderedDict[Hashable, None] = OrderedDict()
        self.bytes = 0
        self.completed = 0
        self.duplicates = 0
        self.malformed = 0
        self.timed_out = 0
        self.crowded_out = 0

    def __len__(self) -> int:
        return len(self._incomplete)

    def add(
        self, sender: Hashable, fragment: Fragment, now: float
    ) -> CompleteMessage | LargeMessage | Piece | None:
        """Add a piece; return the message that it completes, the piece if it is partial, or None."""
        if not fragment.split:
            return CompleteMessage(fragment.content)
        self.expire(now)
        key = (sender, fragment.identification)
        if key in self._finished:
            self.duplicates += 1
            return None
        message = self._incomplete.get(key) or _Incomplete(now)
        if not self._fits(message, fragment):
            return None
        self._incomplete[key] = message
        self._incomplete.move_to_end(key)
        self._put(message, fragment, now)
        done = message.last is not None and len(message.pieces) == message.last + 1
        if done:
            self._end(key)
            self.completed += 1
        elif not self._make_room(key):
            return None
        if fragment.partial:
            return Piece(fragment)
        return self._complete(message) if done else None

    def _complete(self, message: _Incomplete) -> CompleteMessage | LargeMessage:
        pieces = [message.pieces[index] for index in range(len(message.pieces))]
        if self._large is not None and message.size >= self._large:
            return LargeMessage(tuple(pieces))
        return CompleteMessage(b"".join(pieces))

    def _fits(self, message: _Incomplete, fragment: Fragment) -> bool:
        index = fragment.index
        if index in message.pieces:
            self.duplicates += 1
            return False
        beyond = message.last is not None and (index > message.last or not fragment.more)
        early_end = not fragment.more and any(known > index for known in message.pieces)
        if beyond or early_end or not 0 <= index <= LAST_INDEX:
            self.malformed += 1
            return False
        return True

    def _put(self, message: _Incomplete, fragment: Fragment, now: float) -> None:
        content = b"" if fragment.partial else fragment.content
        message.pieces[fragment.index] = content
        message.touched = now
        message.size += len(content) + OVERHEAD
        self.bytes += len(content) + OVERHEAD
        if not fragment.more:
            message.last = fragment.index

    def _make_room(self, newest: Hashable) -> bool:
        """Drop the least recently used messages until the limits hold; return whether `newest` remains."""
        while self.bytes > self._max_bytes or len(self._incomplete) > self._max_messages:
            oldest = next(iter(self._incomplete))
            if oldest == newest and self._keep_one:
                return True
            self._end(oldest)
            self.crowded_out += 1
            if oldest == newest:
                return False
        return True

    def expire(self, now: float) -> None:
        """Drop the messages of which no piece arrived within the timeout."""
        while self._incomplete:
            key, message = next(iter(self._incomplete.items()))
            if message.touched > now - self._timeout:
                return
            self._end(key)
            self.timed_out += 1

    def _end(self, key: Hashable) -> None:
        # A late or duplicate piece must not start the message again.
        self.bytes -= self._incomplete.pop(key).size
        self._finished[key] = None
        if len(self._finished) > 4 * self._max_messages:
            self._finished.popitem(last=False)
