"""Server-sent events (the HTML standard, section 9.2): one connection for each reader.

A page is written before the next one is read, so a slow client delays only itself. A client that reads
nothing for STALLED seconds is disconnected and can resume with Last-Event-ID. A stream ends normally when
the node stops or the journal cannot be read.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import aclosing

from aiohttp import web

from hpwsn.broker.delivery.log_pages import LOOP_BYTES, Encode, encode_once
from hpwsn.broker.delivery.log_readers import Query, Readers
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
    request: web.Request, readers: Readers, query: Query, after: int, encode: Encode
) -> web.StreamResponse:
    """Write the events after an offset until either side ends the stream."""
    response = web.StreamResponse(headers=_HEADERS)
    await response.prepare(request)
    try:
        # The first bytes tell the client that it will get all later events.
        await _write(response, b": after %d\n\n" % after)
        await _follow(response, readers, query, after, encode)
    except JournalUnavailable as error:
        log.warning("a stream of %s ends: %s", query.topics[0], error)
    except (ConnectionError, TimeoutError):
        abort(request)
    except Exception:
        log.exception("a stream of %s failed", query.topics[0])
        abort(request)
    return response


async def _follow(
    response: web.StreamResponse,
    readers: Readers,
    query: Query,
    after: int,
    encode: Encode,
) -> None:
    async with aclosing(readers.follow(query, after, BEAT)) as pages:
        async for page in pages:
            if not page.stretches:
                await _write(response, b":\n\n")
            events = await encode_once(page.stretches, encode)
            for offset, data in zip(page.offsets, events, strict=True):
                await _write(response, b"id: %d\ndata: %s\n\n" % (offset, data))


async def _write(response: web.StreamResponse, data: bytes) -> None:
    async with asyncio.timeout(STALLED):
        for start in range(0, len(data), LOOP_BYTES):
            await response.write(data[start : start + LOOP_BYTES])


def abort(request: web.Request) -> None:
    """Close the connection and drop its unsent data."""
    if request.transport is not None:
        request.transport.abort()
