"""Server-sent events (the HTML standard, section 9.2): one connection for each reader.

aiohttp writes the head and the end of a response; long_connection writes the events between them. A client
that reads nothing for STALLED seconds is disconnected and can resume with Last-Event-ID. A stream ends
normally when the node stops or the journal cannot be read.
"""

from __future__ import annotations

import logging

from aiohttp import HttpVersion11, web

from hpwsn.broker.readers.log_readers import Query, Readers
from hpwsn.broker.readers.pace import Pace
from hpwsn.door.listener.full_lane import while_connected
from hpwsn.door.rest.events.event_parameters import accepts
from hpwsn.door.rest.events.long_connection import Forms, LongConnection
from hpwsn.errors import JournalUnavailable

log = logging.getLogger(__name__)

BEAT = 15.0
"""Seconds without an event after which a keep-alive comment is sent."""

_HEADERS = {"Content-Type": "text/event-stream", "Cache-Control": "no-store", "X-Accel-Buffering": "no"}


def wants_stream(request: web.Request) -> bool:
    """Whether the client accepts a stream."""
    return accepts(request, "text/event-stream")


async def write_stream(
    request: web.Request, readers: Readers, query: Query, after: int, forms: Forms, pace: Pace | None
) -> web.StreamResponse:
    """Write the events after an offset until either side ends the stream."""
    response = web.StreamResponse(headers=_HEADERS)
    chunked = request.version >= HttpVersion11
    writer = await response.prepare(request)
    assert writer is not None
    try:
        # The first bytes tell the client that it will get all later events.
        await response.write(b": after %d\n\n" % after)
        form = forms.chunked_stream if chunked else forms.plain_stream
        connection = LongConnection(writer, form, pace=pace)
        with while_connected(request):
            await readers.follow(query, after, BEAT, connection)
    except JournalUnavailable as error:
        log.warning("a stream of %s ends: %s", query.topics[0], error)
    except (ConnectionError, TimeoutError):
        abort(request)
    except Exception:
        log.exception("a stream of %s failed", query.topics[0])
        abort(request)
    return response


def abort(request: web.Request) -> None:
    """Close the connection and drop its unsent data."""
    if request.transport is not None:
        request.transport.abort()
