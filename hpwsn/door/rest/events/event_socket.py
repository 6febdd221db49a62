"""Events by WebSocket (RFC 6455): one text message for each event, equal to the data of a server-sent event.

aiohttp makes the handshake, answers pings and closes; long_connection writes the events. A client that reads
nothing for STALLED seconds, or does not answer a ping, is disconnected. Messages of the client are ignored.
The header Hpwsn-After of the upgrade's response has the offset after which the events start.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from functools import partial

from aiohttp import WSCloseCode, web

from hpwsn.broker.readers.log_readers import Query, Readers
from hpwsn.broker.readers.pace import Pace
from hpwsn.door.rest.events.event_stream import BEAT, abort
from hpwsn.door.rest.events.long_connection import Forms, LongConnection
from hpwsn.errors import JournalUnavailable
from hpwsn_client.wsn.soap.soap_faults import SoapFault

log = logging.getLogger(__name__)

LARGEST_MESSAGE = 4096
"""Maximum bytes of a client's message; messages are ignored."""
CLOSE_WITHIN = 2.0


def wants_socket(request: web.Request) -> bool:
    """Whether the client asks for an upgrade to WebSocket."""
    return request.headers.get("Upgrade", "").strip().lower() == "websocket"


async def write_socket(
    request: web.Request, readers: Readers, query: Query, after: int, forms: Forms, pace: Pace | None
) -> web.StreamResponse:
    """Send the events after an offset until either side closes."""
    socket = web.WebSocketResponse(
        heartbeat=BEAT, compress=False, max_msg_size=LARGEST_MESSAGE, timeout=CLOSE_WITHIN
    )
    socket.headers["Hpwsn-After"] = str(after)
    try:
        writer = await socket.prepare(request)
    except web.HTTPBadRequest as error:
        raise SoapFault(
            f"the request is not a valid WebSocket handshake: {error.text}", status=400
        ) from error
    assert writer is not None
    connection = LongConnection(writer, forms.socket, lambda: socket.closed, pace)
    follow = partial(readers.follow, query, after, BEAT, connection)
    sending = asyncio.ensure_future(_send(socket, follow, query, lambda: abort(request)))
    try:
        await _until_closed(socket, sending)
    finally:
        sending.cancel()
        await asyncio.gather(sending, return_exceptions=True)
    return socket


async def _until_closed(socket: web.WebSocketResponse, sending: asyncio.Future[None]) -> None:
    """Ignore the client's messages until it closes, or until the sender has ended."""
    sending.add_done_callback(lambda _: leaving.cancel())
    leaving = asyncio.ensure_future(_pass_over(socket))
    await asyncio.gather(leaving, return_exceptions=True)


async def _pass_over(socket: web.WebSocketResponse) -> None:
    async for _ in socket:
        pass


async def _send(
    socket: web.WebSocketResponse,
    follow: Callable[[], Awaitable[None]],
    query: Query,
    drop: Callable[[], None],
) -> None:
    code, words = WSCloseCode.GOING_AWAY, b"the node is stopping"
    try:
        await follow()
    except JournalUnavailable as error:
        log.warning("a socket of %s ends: %s", query.topics[0], error)
        code, words = WSCloseCode.TRY_AGAIN_LATER, b"the journal cannot be read now"
    except (ConnectionError, TimeoutError):
        drop()
        return
    except Exception:
        log.exception("a socket of %s failed", query.topics[0])
        code, words = WSCloseCode.INTERNAL_ERROR, b"internal error; see the node's log"
    await socket.close(code=code, message=words)
