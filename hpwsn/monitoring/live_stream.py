"""The live stream as server-sent events on aiohttp, for the node and the admin node.

aiohttp writes the head and the end of the response; the frames between them are written to the transport
directly, since the hub has made them once for all readers, with the chunk around them.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Collection

from aiohttp import HttpVersion11, web
from aiohttp.abc import AbstractStreamWriter

from hpwsn.monitoring.live import KINDS, Frame, LiveHub

UNTAKEN = 64 << 10
"""Bytes in the transport above which nothing more is written."""
LONGEST = 86_400.0
"""The greatest `seconds` of a stream."""

_is_number = re.compile(r"[0-9]{1,9}(\.[0-9]{1,9})?").fullmatch
_HEADERS = {"Content-Type": "text/event-stream", "Cache-Control": "no-store", "X-Accel-Buffering": "no"}


class StreamConnection:
    """The transport of one reader."""

    def __init__(self, writer: AbstractStreamWriter, *, chunked: bool) -> None:
        if writer.transport is None:
            raise ConnectionResetError("the client has disconnected")
        self._transport = writer.transport
        self._chunked = chunked

    def write(self, frame: Frame) -> bool:
        """Write a frame; False, with nothing written, while the client leaves too much untaken."""
        transport = self._transport
        if transport.is_closing():
            raise ConnectionResetError("the client has disconnected")
        if transport.get_write_buffer_size() > UNTAKEN:
            return False
        transport.write(frame.chunk if self._chunked else frame.plain)
        return True

    def closed(self) -> bool:
        """Whether the client is gone."""
        return self._transport.is_closing()

    def abort(self) -> None:
        """Close the connection and drop its unsent data."""
        self._transport.abort()


def kinds_of(request: web.Request) -> tuple[str, ...]:
    """The kinds in `kinds`, separated by commas, or all; ValueError for an unknown one."""
    text = request.query.get("kinds")
    if text is None:
        return KINDS
    wanted = tuple(text.split(","))
    for kind in wanted:
        if kind not in KINDS:
            raise ValueError(f"kinds has {kind!r:.100}; give some of {', '.join(KINDS)}, with commas between")
    return wanted


def seconds_of(request: web.Request) -> float | None:
    """How long the stream lasts, or None for as long as both sides want; ValueError if it is not a time."""
    text = request.query.get("seconds")
    if text is None:
        return None
    if not _is_number(text) or float(text) > LONGEST:
        raise ValueError(f"seconds is {text!r:.100}; give a number from 0 to {LONGEST:.0f}")
    return float(text)


async def write_live(
    request: web.Request, hub: LiveHub, kinds: Collection[str], seconds: float | None
) -> web.StreamResponse:
    """Write the messages of these kinds until either side ends the stream, or `seconds` have passed."""
    response = web.StreamResponse(headers=_HEADERS)
    writer = await response.prepare(request)
    assert writer is not None
    # The first bytes tell the client that it will get all later messages.
    await response.write(b": live\n\n")
    chunked = request.version >= HttpVersion11
    reader = hub.join(kinds, StreamConnection(writer, chunked=chunked), request.headers.get("Last-Event-ID"))
    try:
        await asyncio.wait([reader.left], timeout=seconds)
    finally:
        hub.leave(reader)
    return response
