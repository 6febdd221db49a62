"""Forms of long connections: what is framed once for all can be read back, however it is cut."""

from __future__ import annotations

import asyncio
import re
import tracemalloc
from collections.abc import Callable, Sequence
from typing import cast

import pytest
from aiohttp.abc import AbstractStreamWriter
from hypothesis import given
from hypothesis import strategies as st

from hpwsn.broker.readers.log_pages import LOOP_BYTES, Encode, Stretch
from hpwsn.door.rest.events import long_connection
from hpwsn.door.rest.events.long_connection import (
    UNTAKEN,
    Forms,
    LongConnection,
    SocketForm,
    StreamForm,
    blocks,
)
from tests.patience import holds, patience
from tests.runs import run_of


def _nothing(stretches: Sequence[Stretch]) -> list[bytes]:
    return []


FORMS = Forms(_nothing)
CHUNK = re.compile(rb"([0-9a-f]+)\r\n")


def unchunked(data: bytes) -> bytes:
    found, start = b"", 0
    while start < len(data):
        match = CHUNK.match(data, start)
        assert match is not None
        end = match.end() + int(match[1], 16)
        assert end > match.end(), "an empty chunk would end the response"
        assert data[end : end + 2] == b"\r\n"
        found += data[match.end() : end]
        start = end + 2
    return found


def messages(data: bytes) -> list[bytes]:
    """The text messages in WebSocket frames without masks; a message may have several frames."""
    found: list[bytes] = []
    start, whole = 0, True
    while start < len(data):
        assert data[start] & 0x7F == (0x01 if whole else 0x00)
        before, whole = b"" if whole else found.pop(), data[start] >= 0x80
        size, start = data[start + 1], start + 2
        wide = {126: 2, 127: 8}.get(size, 0)
        if wide:
            size, start = int.from_bytes(data[start : start + wide]), start + wide
            assert size >= (126 if wide == 2 else 1 << 16), "the shortest form is demanded"
        found.append(before + data[start : start + size])
        assert len(found[-1]) == len(before) + size
        start += size
    assert whole
    return found


@given(
    st.lists(st.sampled_from([2, 3, 200, 40_000, 3 * LOOP_BYTES]), min_size=1, max_size=12),
    st.integers(1, 10**12),
)
def test_a_stream_is_the_same_in_chunks_and_without(sizes: list[int], first: int) -> None:
    offsets, events = range(first, first + len(sizes)), [b"x" * size for size in sizes]
    frames = list(map(FORMS.chunked_stream.frame, offsets, events))
    plain = FORMS.plain_stream.block(frames)
    assert plain.count(b"\n\n") == len(sizes)
    assert plain.startswith(b"id: %d\ndata: xx" % first)
    assert unchunked(FORMS.chunked_stream.block(frames)) == plain
    assert unchunked(b"".join(blocks(FORMS.chunked_stream, offsets, events))) == plain
    assert b"".join(blocks(FORMS.plain_stream, offsets, events)) == plain


def test_a_large_event_of_a_stream_is_written_in_blocks() -> None:
    event = b"x" * (5 * LOOP_BYTES + 1)
    found = list(blocks(FORMS.chunked_stream, [1], [event]))
    assert len(found) == 6
    assert max(map(len, found)) < LOOP_BYTES + 32
    assert unchunked(b"".join(found)) == FORMS.chunked_stream.frame(1, event)


@pytest.mark.parametrize("size", [LOOP_BYTES, LOOP_BYTES + 1, 2 * LOOP_BYTES, 5 * LOOP_BYTES + 1])
def test_a_large_event_of_a_socket_is_one_message_in_frames(size: int) -> None:
    event = b"x" * size
    found = list(blocks(FORMS.socket, [1], [event]))
    assert len(found) == -(-size // LOOP_BYTES)
    assert max(map(len, found)) < LOOP_BYTES + 16
    assert messages(b"".join(found)) == [event]


@pytest.mark.parametrize("size", [0, 1, 125, 126, 127, 65_535, 65_536, 200_000])
def test_a_message_of_a_socket_has_the_shortest_length_that_fits(size: int) -> None:
    frame = FORMS.socket.frame(7, b"x" * size)
    assert messages(frame) == [b"x" * size]


@given(st.lists(st.sampled_from([1, 130, 30_000, LOOP_BYTES]), max_size=12))
def test_a_block_of_a_socket_has_whole_messages(sizes: list[int]) -> None:
    found = list(blocks(FORMS.socket, range(len(sizes)), [b"y" * size for size in sizes]))
    assert [len(message) for block in found for message in messages(block)] == sizes
    assert all(block for block in found)


class Full:
    """A writer and its transport whose client takes the first block and then nothing."""

    def __init__(self) -> None:
        self.transport = self
        self.written = 0

    def get_write_buffer_size(self) -> int:
        return self.written

    def is_closing(self) -> bool:
        return False

    def set_write_buffer_limits(self, high: int) -> None:
        pass

    def write(self, data: bytes) -> None:
        self.written += len(data)

    async def drain(self) -> None:
        if self.written:
            await asyncio.get_running_loop().create_future()


def chunked(encode: Encode) -> StreamForm:
    return StreamForm(encode, chunked=True)


@pytest.mark.parametrize("make", [chunked, SocketForm])
async def test_stalled_clients_share_the_bytes_of_a_large_event(
    make: Callable[[Encode], StreamForm | SocketForm],
) -> None:
    size, clients = 8 << 20, [Full() for _ in range(10)]
    form = make(lambda stretches: [b"x" * size for _ in stretches])
    stretch = Stretch([1], run_of("A", b"<m/>" + b" " * LOOP_BYTES))
    tracemalloc.start()
    try:
        connections = [LongConnection(cast(AbstractStreamWriter, client), form) for client in clients]
        sends = [asyncio.ensure_future(each.send([stretch])) for each in connections]
        async with patience():
            await holds(lambda: all(client.written > LOOP_BYTES for client in clients))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
        for send in sends:
            send.cancel()
        await asyncio.gather(*sends, return_exceptions=True)
    assert peak < 2 * size, "one copy for all, and a block for each"


class Wire:
    """A writer and its transport whose client takes what it is told, one look after another."""

    def __init__(self, *untaken: int) -> None:
        self.transport = self
        self.untaken = list(untaken)
        self.written: list[bytes] = []
        self.closing = False

    def get_write_buffer_size(self) -> int:
        return self.untaken.pop(0)

    def is_closing(self) -> bool:
        return self.closing

    def set_write_buffer_limits(self, high: int) -> None:
        assert high == UNTAKEN

    def write(self, data: bytes) -> None:
        self.written.append(data)

    async def drain(self) -> None:
        if self.untaken:
            await asyncio.get_running_loop().create_future()


def connected(wire: Wire) -> LongConnection:
    return LongConnection(cast(AbstractStreamWriter, wire), FORMS.plain_stream)


async def test_a_client_that_takes_something_in_time_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(long_connection, "STALLED", 0.01)
    wire = Wire(100, 99, 99, 50, 50)
    await connected(wire).drained()
    assert wire.untaken == []


async def test_a_client_that_takes_nothing_in_time_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(long_connection, "STALLED", 0.01)
    with pytest.raises(TimeoutError):
        await connected(Wire(100, 99, 99, 99, 0)).drained()


async def test_nothing_is_written_above_the_limit_or_to_a_closed_connection() -> None:
    wire = Wire(UNTAKEN, UNTAKEN + 1)
    connection = connected(wire)
    assert connection.keep_alive()
    assert not connection.write(b"more")
    assert wire.written == [b":\n\n"]
    wire.closing = True
    with pytest.raises(ConnectionResetError):
        connection.write(b"more")
    with pytest.raises(ConnectionResetError):
        await connection.drained()
