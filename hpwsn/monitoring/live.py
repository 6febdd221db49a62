"""The hub of the live stream: what changes at a node, for many readers, encoded once for all of them.

A kind of message has a source, a function that makes its content. `changed` marks a kind, and a tick once a
second makes one message of each marked kind that somebody reads; `status` is made with every tick. `tell`
does not wait for the tick. Without readers, a tick does next to nothing. Each message is the complete content
of its kind. A short memory of each kind serves readers that come back; a reader that missed more gets
`reset`: read everything again. The hub writes to connections that it is given, and knows no web framework.
"""

from __future__ import annotations

import asyncio
import json
import logging
import secrets
from collections import deque
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from typing import Any, Protocol

log = logging.getLogger(__name__)

STATUS, RESET = "status", "reset"
KINDS = (STATUS, "topology", "topics", "subscriptions", "alerts")
"""What a reader may ask for; every reader gets `reset`."""

MEMORY = 64
"""Messages of each kind that are remembered."""
MEMORY_BYTES = 1 << 20
"""Bytes of the remembered messages of a kind; the newest is kept however large it is."""
BEAT = 15.0
"""Seconds without a message after which a reader gets a comment."""
STALLED = 60.0
"""Seconds after which a reader that takes nothing is disconnected."""

Source = Callable[[], Any]


class Connection(Protocol):
    """Where the messages of a reader go."""

    def write(self, frame: Frame) -> bool:
        """Write a frame; False, with nothing written, while the client leaves too much untaken."""

    def closed(self) -> bool:
        """Whether the client is gone."""

    def abort(self) -> None:
        """Close it and drop its unsent data."""


@dataclass(frozen=True, slots=True)
class Frame:
    """A message in both forms: as it is, and as one chunk of HTTP/1.1."""

    number: int
    kind: str
    plain: bytes
    chunk: bytes


def frame_of(number: int, kind: str, text: bytes) -> Frame:
    """Make a frame of the text of a message."""
    return Frame(number, kind, text, b"%x\r\n%b\r\n" % (len(text), text))


_BEAT = frame_of(0, "", b":\n\n")


@dataclass(slots=True, eq=False)
class Reader:
    """One client; `left` is done when nothing more is written to it."""

    kinds: frozenset[str]
    connection: Connection
    left: asyncio.Future[None]
    written: float
    missed_since: float | None = None
    """When it first left too much untaken; None while it takes everything."""


@dataclass(slots=True)
class _Memory:
    frames: deque[Frame] = field(default_factory=deque)
    size: int = 0
    forgotten: int = 0
    """The number of the newest message that is not remembered any more."""

    def add(self, frame: Frame) -> None:
        self.frames.append(frame)
        self.size += len(frame.plain)
        while len(self.frames) > MEMORY or (self.size > MEMORY_BYTES and len(self.frames) > 1):
            oldest = self.frames.popleft()
            self.size -= len(oldest.plain)
            self.forgotten = oldest.number


class LiveHub:
    """Makes the messages and writes them to the readers; used in one event loop."""

    def __init__(self, clock: Callable[[], float]) -> None:
        """`clock` gives seconds on a clock that nobody sets."""
        self._clock = clock
        self._life = secrets.token_hex(4)
        self._number = 0
        self._sources: dict[str, Source] = {}
        self._changed: set[str] = set(KINDS)
        self._memories = {kind: _Memory() for kind in KINDS}
        self._readers: dict[Reader, None] = {}
        self._closed = False

    def source(self, kind: str, function: Source) -> None:
        """Make the content of a kind with this function; it must return what JSON can express."""
        if kind not in KINDS:
            raise ValueError(f"{kind!r} is not a kind of live message; known are {', '.join(KINDS)}")
        self._sources[kind] = function

    def changed(self, kind: str) -> None:
        """Send the content of a kind with the next tick, if somebody reads it then or later."""
        self._changed.add(kind)

    def tell(self, kind: str) -> None:
        """Send the content of a kind now if somebody reads it; for rare changes that must be seen at once."""
        self._changed.add(kind)
        self._send(kind)

    def __len__(self) -> int:
        return len(self._readers)

    def join(self, kinds: Collection[str], connection: Connection, last_id: str | None = None) -> Reader:
        """Add a reader. It gets what it missed since `last_id`, or without one the newest of each kind."""
        left: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        reader = Reader(frozenset(kinds), connection, left, self._clock())
        if self._closed:
            left.set_result(None)
            return reader
        self._readers[reader] = None
        self._catch_up(reader, last_id)
        return reader

    def leave(self, reader: Reader) -> None:
        """Write no more to a reader."""
        self._readers.pop(reader, None)
        if not reader.left.done():
            reader.left.set_result(None)

    def close(self) -> None:
        """End the streams of all readers."""
        self._closed = True
        for reader in list(self._readers):
            self.leave(reader)

    def _catch_up(self, reader: Reader, last_id: str | None) -> None:
        memories = [self._memories[kind] for kind in reader.kinds]
        last = 0 if last_id is None else self._number_of(last_id)
        if last_id is not None and (last is None or any(one.forgotten > last for one in memories)):
            self._reset(reader, "the node does not remember all messages since the last one that was read")
        elif last:
            missed = (frame for one in memories for frame in one.frames if frame.number > last)
            self._write_all(reader, missed)
        else:
            self._write_newest(reader)

    def _number_of(self, last_id: str) -> int | None:
        """The number in an id of this life of the node; None for any other text."""
        life, dash, number = last_id.partition("-")
        if life != self._life or not dash or not (number.isascii() and number.isdecimal()):
            return None
        return int(number) if len(number) < 18 and int(number) <= self._number else None

    def _reset(self, reader: Reader, why: str) -> None:
        self._write_all(reader, [self._frame(self._number, RESET, {"why": why})])
        self._write_newest(reader)

    def _write_newest(self, reader: Reader) -> None:
        if len(self._readers) == 1:
            # No message was made while nobody read, so the newest may be of any age.
            self._changed.add(STATUS)
            for kind in self._changed & reader.kinds:
                if self._memories[kind].frames:
                    self._renew(kind)
        memories = (self._memories[kind] for kind in reader.kinds)
        self._write_all(reader, (one.frames[-1] for one in memories if one.frames))

    def _write_all(self, reader: Reader, frames: Iterable[Frame]) -> None:
        for frame in sorted(frames, key=lambda one: one.number):
            self._write(reader, frame)

    def tick(self) -> None:
        """Make and write the messages of this second; nothing without readers."""
        readers = self._readers
        if not readers:
            return
        now = self._clock()
        for reader in list(readers):
            self._look_after(reader, now)
        self._changed.add(STATUS)
        for kind in [kind for kind in KINDS if kind in self._changed]:
            self._send(kind)

    def _send(self, kind: str) -> None:
        """Make the message of a changed kind and write it to its readers; without any, it stays marked."""
        readers = [reader for reader in self._readers if kind in reader.kinds]
        if not readers:
            return
        frame = self._renew(kind)
        if frame is not None:
            for reader in readers:
                self._write(reader, frame)

    def _renew(self, kind: str) -> Frame | None:
        """Make and remember the message of a kind; None if there is none."""
        self._changed.discard(kind)
        frame = self._make(kind)
        if frame is not None:
            self._memories[kind].add(frame)
        return frame

    def _make(self, kind: str) -> Frame | None:
        source = self._sources.get(kind)
        if source is None:
            return None
        try:
            content = source()
            frame = self._frame(self._number + 1, kind, content)
        except Exception:
            log.exception("the live message of kind %s failed", kind)
            return None
        self._number += 1
        return frame

    def _frame(self, number: int, kind: str, content: Any) -> Frame:
        data = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
        text = f"id: {self._life}-{number}\nevent: {kind}\ndata: {data}\n\n"
        return frame_of(number, kind, text.encode("utf-8", "backslashreplace"))

    def _write(self, reader: Reader, frame: Frame) -> None:
        """Write a frame, unless the reader missed one before: then it waits for its `reset`."""
        if reader.missed_since is not None:
            return
        now = self._clock()
        try:
            if reader.connection.write(frame):
                reader.written = now
            else:
                reader.missed_since = now
        except ConnectionError:
            self.leave(reader)

    def _look_after(self, reader: Reader, now: float) -> None:
        """Remove a reader that is gone, reset one that has caught up, send one a beat if nothing else."""
        if reader.connection.closed():
            self.leave(reader)
        elif reader.missed_since is not None:
            since, reader.missed_since = reader.missed_since, None
            self._reset(reader, "the reader was too slow and missed messages")
            if reader.missed_since is not None:
                reader.missed_since = since
                if now - since >= STALLED:
                    reader.connection.abort()
                    self.leave(reader)
        elif now - reader.written >= BEAT:
            self._write(reader, _BEAT)
