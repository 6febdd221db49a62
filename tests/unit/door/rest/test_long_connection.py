"""Forms of long connections: what is framed once for all can be read back, however it is cut."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from typing import cast

import pytest
from aiohttp.abc import AbstractStreamWriter
from hypothesis import given
from hypothesis import strategies as st

from hpwsn.broker.delivery.log_pages import LOOP_BYTES, Stretch
from hpwsn.door.rest import long_connection
from hpwsn.door.rest.long_connection import UNTAKEN, Forms, LongConnection


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
    """The payloads of WebSocket frames, each of which must be a whole text message without a mask."""
    found, start = [], 0
    while start < len(data):
        assert data[start] == 0x81
        size, start = data[start + 1], start + 2
        wide = {126: 2, 127: 8}.get(size, 0)
        if wide:
            size, start = int.from_bytes(data[start : start + wide]), start + wide
            assert size >= (126 if wide == 2 else 1 << 16), "the shortest form is demanded"
        found.append(data[start : start + size])
        assert len(found[-1]) == size
        start += size
    return found


@given(st.lists(st.integers(2, 200), min_size=1), st.integers(1, 10**12))
def test_a_stream_is_the_same_in_chunks_and_without(sizes: list[int], first: int) -> None:
    frames = [FORMS.chunked_stream.frame(first + n, b"x" * size) for n, size in enumerate(sizes)]
    plain = FORMS.plain_stream.block(frames)
    assert plain.count(b"\n\n") == len(sizes)
    assert plain.startswith(b"id: %d\ndata: xx" % first)
    assert unchunked(FORMS.chunked_stream.block(frames)) == plain
    assert unchunked(b"".join(FORMS.chunked_stream.blocks(frames))) == plain
    assert b"".join(FORMS.plain_stream.blocks(frames)) == plain


def test_a_large_event_of_a_stream_is_written_in_blocks() -> None:
    frame = FORMS.chunked_stream.frame(1, b"x" * 5 * LOOP_BYTES)
    blocks = list(FORMS.chunked_stream.blocks([frame]))
    assert len(blocks) == 6
    assert max(map(len, blocks)) < LOOP_BYTES + 16
    assert unchunked(b"".join(blocks)) == frame


@pytest.mark.parametrize("size", [0, 1, 125, 126, 127, 65_535, 65_536, 200_000])
def test_a_message_of_a_socket_has_the_shortest_length_that_fits(size: int) -> None:
    frame = FORMS.socket.frame(7, b"x" * size)
    assert messages(frame) == [b"x" * size]


@given(st.lists(st.sampled_from([1, 130, 30_000, LOOP_BYTES]), max_size=12))
def test_a_block_of_a_socket_has_whole_messages(sizes: list[int]) -> None:
    frames = [FORMS.socket.frame(n, b"y" * size) for n, size in enumerate(sizes)]
    blocks = list(FORMS.socket.blocks(frames))
    assert [len(message) for block in blocks for message in messages(block)] == sizes
    assert all(block for block in blocks)


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
