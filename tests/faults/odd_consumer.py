"""A consumer that misbehaves on the wire: it keeps every request, and answers as a test tells it to.

A behaviour is a coroutine over the open connection. It returns whether the connection goes on; `taken` is
what was answered with a 202 that the node can have read whole.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Self

from tests.faults.load import Key, find_keys
from tests.patience import patience

Behaviour = Callable[["OddConsumer", asyncio.StreamReader, asyncio.StreamWriter], Awaitable[bool]]


class OddConsumer:
    """A bare server on one port; `behaviour` holds for every request from now on."""

    def __init__(self, behaviour: Behaviour) -> None:
        self.behaviour = behaviour
        self.taken: list[Key] = []
        self.seen: list[Key] = []
        self.attempts = 0
        self.released = asyncio.Event()
        self._changed = asyncio.Condition()
        self._connections: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}/odd"
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._server.close()
        for connection in self._connections:
            connection.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)
        await self._server.wait_closed()

    async def wait(self, condition: Callable[[OddConsumer], bool]) -> None:
        """Wait until the condition holds, looked at after each request and each answer."""
        async with patience(), self._changed:
            await self._changed.wait_for(lambda: condition(self))

    def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.get_running_loop().create_task(self._converse(reader, writer))
        self._connections.add(task)
        task.add_done_callback(self._connections.discard)

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            try:
                while await self._exchange(reader, writer):
                    pass
            finally:
                writer.close()
                await writer.wait_closed()

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        if self.behaviour is reset_unread:
            await self._note([])
            return await reset_unread(self, reader, writer)
        keys = find_keys(await _request(reader))
        await self._note(keys)
        behaviour = self.behaviour
        goes_on = await behaviour(self, reader, writer)
        if behaviour in (take, take_when_released, take_bit_by_bit):
            self.taken += keys
            async with self._changed:
                self._changed.notify_all()
        return goes_on

    async def _note(self, keys: list[Key]) -> None:
        async with self._changed:
            self.attempts += 1
            self.seen += keys
            self._changed.notify_all()


async def _request(reader: asyncio.StreamReader) -> bytes:
    head = await reader.readuntil(b"\r\n\r\n")
    (length,) = (line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
    return await reader.readexactly(int(length.split(b":")[1]))


async def _answer(writer: asyncio.StreamWriter, data: bytes) -> bool:
    writer.write(data)
    await writer.drain()
    return True


async def take(consumer: OddConsumer, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
    """As it should be."""
    return await _answer(writer, b"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n")


async def take_when_released(
    consumer: OddConsumer, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> bool:
    """Slow: the answer comes when the test says so."""
    await consumer.released.wait()
    return await take(consumer, reader, writer)


async def take_bit_by_bit(
    consumer: OddConsumer, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> bool:
    """Slow in another way: each byte of the answer is a segment of its own."""
    for byte in b"HTTP/1.1 202 Accepted\r\nContent-Length: 2\r\n\r\nok":
        await _answer(writer, bytes([byte]))
        await asyncio.sleep(0)
    return True


def status(line: str, *headers: str) -> Behaviour:
    """An answer with this status."""
    head = "".join(f"{header}\r\n" for header in (f"HTTP/1.1 {line}", "Content-Length: 0", *headers))

    async def behave(_: OddConsumer, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        return await _answer(writer, f"{head}\r\n".encode())

    return behave


async def garbage(consumer: OddConsumer, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
    """Something that is not HTTP, and no end of the connection."""
    await _answer(writer, b"\x16\x03\x01\x00\xff 220 mail.example ESMTP\r\n\x00\x00\r\n\r\n")
    await reader.read(1)
    return False


async def half(consumer: OddConsumer, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
    """The connection ends in the middle of an answer that began well."""
    await _answer(writer, b"HTTP/1.1 202 Accepted\r\nContent-Length: 100\r\n\r\nhalf of")
    return False


async def half_head(
    consumer: OddConsumer, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> bool:
    """The connection ends in the middle of the first header."""
    await _answer(writer, b"HTTP/1.1 202 Accepted\r\nContent-Len")
    return False


async def hang_up(consumer: OddConsumer, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
    """No answer, and the end of the connection."""
    return False


async def never(consumer: OddConsumer, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
    """No answer for as long as the node has patience."""
    await reader.read(1)
    return False


async def reset(consumer: OddConsumer, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
    """A reset instead of an answer."""
    link = writer.get_extra_info("socket")
    link.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()
    return False


async def reset_unread(
    consumer: OddConsumer, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> bool:
    """A connection that is taken and reset before the request is read."""
    return await reset(consumer, reader, writer)
