"""Fragments: a message cut into pieces that fit a datagram, and put together again (spec/hpwsn.md, part 9).

Every piece says of which message it is (identification), whether the message is split at all, whether more
follow, whether pieces may be handed out one by one (partial), and its index from 0 to 99999. Pieces may come
in any order, twice, late, or never, from many senders at once. What is not complete is given up when nothing
of it came for a while, and all that waits is bounded: the message that waited longest makes room. Owns
neither form of a fragment on the wire; time is an argument.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field

LAST_INDEX = 99999
OVERHEAD = 128
"""Bytes that a piece counts beside its content, so that many empty ones are bounded too."""
_cut_reference = re.compile(rb"&[^;]{0,9}\Z")


@dataclass(frozen=True, slots=True)
class Fragment:
    """One piece, or a whole message that is not split."""

    identification: str | int
    content: bytes
    split: bool = False
    more: bool = False
    partial: bool = False
    index: int = 0


def split_message(
    identification: str | int, content: bytes, room: int, *, partial: bool = False
) -> Iterator[Fragment]:
    """The pieces of a message, none with more content than `room`; one, not split, where it fits."""
    if len(content) <= room:
        yield Fragment(identification, content, partial=partial)
        return
    last = (len(content) - 1) // room
    if last > LAST_INDEX:
        raise ValueError(
            f"a message of {len(content)} bytes is more than {LAST_INDEX + 1} pieces of {room}:"
            " send less at once, or allow larger fragments"
        )
    for index in range(last + 1):
        piece = content[index * room : (index + 1) * room]
        yield Fragment(identification, piece, True, index < last, partial, index)


def cut_text(text: bytes, room: int) -> list[bytes]:
    """Escaped text in UTF-8, cut where neither a character nor a reference such as &amp; is broken."""
    if room < 16:
        raise ValueError(f"pieces of {room} bytes have no room for text")
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
    """A message that is complete."""

    content: bytes


@dataclass(frozen=True, slots=True)
class Piece:
    """A piece that may be handed out by itself, for the first time."""

    fragment: Fragment


@dataclass(slots=True)
class _Incomplete:
    touched: float
    pieces: dict[int, bytes] = field(default_factory=dict)
    last: int | None = None
    size: int = 0


class Reassembly:
    """Puts pieces together, of any number of senders."""

    def __init__(self, *, timeout: float, max_bytes: int, max_messages: int) -> None:
        self._timeout = timeout
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

    def add(self, sender: Hashable, fragment: Fragment, now: float) -> CompleteMessage | Piece | None:
        """Take one piece; what it completes, or itself where it may go on alone, or nothing yet."""
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
        return (
            CompleteMessage(b"".join(message.pieces[i] for i in range(len(message.pieces)))) if done else None
        )

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
        """Give up what waited longest until all is within the bounds; whether the newest is still there."""
        while self.bytes > self._max_bytes or len(self._incomplete) > self._max_messages:
            oldest = next(iter(self._incomplete))
            self._end(oldest)
            self.crowded_out += 1
            if oldest == newest:
                return False
        return True

    def expire(self, now: float) -> None:
        """Give up the messages of which nothing came for the time-out."""
        while self._incomplete:
            key, message = next(iter(self._incomplete.items()))
            if message.touched > now - self._timeout:
                return
            self._end(key)
            self.timed_out += 1

    def _end(self, key: Hashable) -> None:
        # A piece that comes after the end, late or twice, must not begin the message anew.
        self.bytes -= self._incomplete.pop(key).size
        self._finished[key] = None
        if len(self._finished) > 4 * self._max_messages:
            self._finished.popitem(last=False)
