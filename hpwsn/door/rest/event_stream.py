"""Server-sent events (the HTML standard, section 9.2): one connection for each reader.

A page is written before the next one is read, so a slow client delays only itself. A client that reads
nothing for STALLED seconds is disconnected and can resume with Last-Event-ID. A stream ends normally when
the node stops or the journal cannot be read.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import aclosing

from aiohttp import web

from hpwsn.broker.delivery.log_readers import LOOP_BYTES, LogEntry, Query, Readers
from hpwsn.errors import JournalUnavailable

log = logging.getLogger(__name__)

BEAT = 15.0
"""Seconds without an event after which a keep-alive comment is sent."""
STALLED = 60.0
"""Seconds after which a client that reads nothing is disconnected."""

_HEADERS = {"Content-Type": "text/event-stream", "Cache-Control": "no-store", "X-Accel-Buffering": "no"}


def wants_stream(request: web.Request) -> bool:
    """Whether the client accepts a stream."""
    return any(
        part.partition(";")[0].strip().lower() == "text/event-stream"
        for part in request.headers.get("Accept", "").split(",")
    )


async def write_stream(
    request: web.Request, readers: Readers, query: Query, after: int, encode: Callable[[LogEntry], bytes]
) -> web.StreamResponse:
    """Write the events after an offset until either side ends the stream."""
    response = web.StreamResponse(headers=_HEADERS)
    await response.prepare(request)
    try:
        # The first bytes tell the client that it will get all later events.
        await _write(response, b": after %d\n\n" % after)
        await _follow(response, readers, query, after, encode)
    except JournalUnavailable as error:
        log.warning("a stream of %s ends: %s", query.topic, error)
    except (ConnectionError, TimeoutError):
        abort(request)
    except Exception:
        log.exception("a stream of %s failed", query.topic)
        abort(request)
    return response


async def _follow(
    response: web.StreamResponse,
    readers: Readers,
    query: Query,
    after: int,
    encode: Callable[[LogEntry], bytes],
) -> None:
    async with aclosing(readers.follow(query, after, BEAT)) as pages:
        async for page in pages:
            if not page.entries:
                await _write(response, b":\n\n")
            for entry in page.entries:
                data = await entry.encode_once(encode)
                await _write(response, b"id: %d\ndata: %s\n\n" % (entry.offset, data))


async def _write(response: web.StreamResponse, data: bytes) -> None:
    async with asyncio.timeout(STALLED):
        for start in range(0, len(data), LOOP_BYTES):
            await response.write(data[start : start + LOOP_BYTES])


def abort(request: web.Request) -> None:
    """Close the connection and drop its unsent data."""
    if request.transport is not None:
        request.transport.abort()
