"""Long connections: how events are framed for server-sent events and WebSockets, and written.

Live delivery makes frames and blocks once for all connections of a form. A large event is encoded once for
all, and each connection copies one block of it at a time. Blocks are written to the transport directly,
past aiohttp's response, which has sent its head by then. A client that takes nothing for STALLED seconds is
given up.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence

from aiohttp.abc import AbstractStreamWriter

from hpwsn.broker.readers.feeds import Form
from hpwsn.broker.readers.log_pages import LOOP_BYTES, Encode, Stretch, encode_once
from hpwsn.broker.readers.pace import Pace

STALLED = 60.0
"""Seconds after which a client that reads nothing is disconnected."""
UNTAKEN = 64 << 10
"""Bytes in the transport above which nothing more is written from memory."""

_FINAL, _TEXT, _CONTINUATION = 0x80, 0x01, 0x00
"""Parts of the first byte of a WebSocket frame."""


class StreamForm:
    """Server-sent events, in chunks of HTTP/1.1 or, for HTTP/1.0, as they are."""

    alive = b":\n\n"

    def __init__(self, encode: Encode, *, chunked: bool) -> None:
        self.encode = encode
        self._chunked = chunked

    def frame(self, offset: int, data: bytes) -> bytes:
        """One event with its offset as id."""
        return b"id: %d\ndata: %b\n\n" % (offset, data)

    def block(self, frames: Sequence[bytes | memoryview]) -> bytes:
        """The frames, as one chunk."""
        data = b"".join(frames)
        return b"%x\r\n%b\r\n" % (len(data), data) if self._chunked else data

    def skipped(self, count: int, upto: int) -> bytes:
        """An event of the type `skipped`; its id is the last skipped offset, after which a client resumes."""
        return b'id: %d\nevent: skipped\ndata: {"skipped": %d}\n\n' % (upto, count)

    def cut(self, offset: int, data: bytes) -> Iterator[bytes]:
        """The frame of a large event in blocks of about LOOP_BYTES."""
        for piece, first, last in _pieces(data):
            head = b"id: %d\ndata: " % offset if first else b""
            yield self.block((head, piece, b"\n\n" if last else b""))


class SocketForm:
    """WebSocket text messages (RFC 6455, section 5.2); a server does not mask them."""

    alive = b""

    def __init__(self, encode: Encode) -> None:
        self.encode = encode

    def frame(self, offset: int, data: bytes) -> bytes:
        """One event as one message in one frame."""
        return _head(_FINAL | _TEXT, len(data)) + data

    def block(self, frames: Sequence[bytes | memoryview]) -> bytes:
        """The frames, one after another."""
        return b"".join(frames)

    def skipped(self, count: int, upto: int) -> bytes:
        """A message with the number of events that the client does not get."""
        return self.frame(upto, b'{"skipped": %d}' % count)

    def cut(self, offset: int, data: bytes) -> Iterator[bytes]:
        """A large event as one message in many frames; aiohttp may write a ping after each (section 5.4)."""
        for piece, first, last in _pieces(data):
            kind = (_TEXT if first else _CONTINUATION) | (_FINAL if last else 0)
            yield self.block((_head(kind, len(piece)), piece))


def _head(kind: int, size: int) -> bytes:
    """The bytes of a WebSocket frame before its data."""
    if size < 126:
        return b"%c%c" % (kind, size)
    if size < 1 << 16:
        return b"%c\x7e%b" % (kind, size.to_bytes(2))
    return b"%c\x7f%b" % (kind, size.to_bytes(8))


def _pieces(data: bytes) -> Iterator[tuple[memoryview, bool, bool]]:
    """Pieces of LOOP_BYTES that are not copied, and whether each is the first and the last."""
    view = memoryview(data)
    for start in range(0, len(data), LOOP_BYTES):
        end = start + LOOP_BYTES
        yield view[start:end], not start, end >= len(data)


def blocks(form: StreamForm | SocketForm, offsets: Sequence[int], events: Sequence[bytes]) -> Iterator[bytes]:
    """Events in blocks of about LOOP_BYTES; of a large event, only one block at a time is a copy."""
    frames: list[bytes] = []
    size = 0
    for offset, data in zip(offsets, events, strict=True):
        if frames and size + len(data) > LOOP_BYTES:
            yield form.block(frames)
            frames, size = [], 0
        if len(data) > LOOP_BYTES:
            yield from form.cut(offset, data)
            continue
        frames.append(form.frame(offset, data))
        size += len(frames[-1])
    if frames:
        yield form.block(frames)


class Forms:
    """The forms of one door, shared by all its connections."""

    def __init__(self, encode: Encode) -> None:
        self.chunked_stream = StreamForm(encode, chunked=True)
        self.plain_stream = StreamForm(encode, chunked=False)
        self.socket = SocketForm(encode)


class LongConnection:
    """The transport of one client; `closing` says whether nothing may be written any more."""

    def __init__(
        self,
        writer: AbstractStreamWriter,
        form: StreamForm | SocketForm,
        closing: Callable[[], bool] = lambda: False,
        pace: Pace | None = None,
    ) -> None:
        if writer.transport is None:
            raise ConnectionResetError("the client has disconnected")
        self.form: Form = form
        self.pace = pace
        self._form = form
        self._writer = writer
        self._transport = writer.transport
        # Without this, TLS would let more than UNTAKEN wait before `drain` waits.
        self._transport.set_write_buffer_limits(UNTAKEN)
        self._closing = closing

    def write(self, block: bytes) -> bool:
        """Write a block; False, with nothing written, while the client leaves too much untaken."""
        transport = self._transport
        if transport.is_closing() or self._closing():
            raise ConnectionResetError("the client has disconnected")
        if transport.get_write_buffer_size() > UNTAKEN:
            return False
        transport.write(block)
        return True

    def keep_alive(self) -> bool:
        """Write a comment; a WebSocket has aiohttp's pings instead."""
        return self.write(self._form.block((self._form.alive,))) if self._form.alive else True

    async def send(self, stretches: Sequence[Stretch]) -> None:
        """Encode entries once for all connections, and write them at the client's speed.

        With a pace, write only as many as it allows, and the number of the others.
        """
        if self.pace is not None:
            await self._tell_skipped(self.pace)
            stretches = self.pace.admit(stretches, asyncio.get_running_loop().time())
        form = self._form
        data = await encode_once(stretches, form.encode)
        offsets = [offset for each in stretches for offset in each.offsets]
        for block in blocks(form, offsets, data):
            await self._put(block)
        if self.pace is not None:
            await self._tell_skipped(self.pace)
        await self.drained()

    async def _put(self, block: bytes) -> None:
        while not self.write(block):
            await self.drained()
            await asyncio.sleep(0)

    async def _tell_skipped(self, pace: Pace) -> None:
        if pace.skipped:
            await self._put(self._form.block((self._form.skipped(pace.skipped, pace.upto),)))
            pace.told()

    async def drained(self) -> None:
        """Wait until the client has taken enough; TimeoutError if it takes nothing for STALLED seconds."""
        while not self._transport.is_closing():
            untaken = self._transport.get_write_buffer_size()
            try:
                async with asyncio.timeout(STALLED):
                    await self._writer.drain()
                    return
            except TimeoutError:
                if self._transport.get_write_buffer_size() >= untaken:
                    raise
        raise ConnectionResetError("the client has disconnected")
