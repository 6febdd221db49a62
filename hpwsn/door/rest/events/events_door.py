"""The JSON door: events published to a topic and read from it, without SOAP.

It owns the paths under /topics, their parameters and status codes; json_events maps events to XML. JSON and
SOAP publish to the same log. A GET is a poll, a stream if the client accepts `text/event-stream`, or a
WebSocket if it asks for an upgrade; all three take the same query. Internal topics are read only with the
token of jobs; other readers get what is public below a topic. Every error is a JSON object with `error`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from importlib import import_module
from types import ModuleType

from aiohttp import web

from hpwsn.background import in_thread
from hpwsn.broker.admission.admission import Source, open_run
from hpwsn.broker.broker import Broker
from hpwsn.broker.readers.log_pages import Page, encode_once, off_loop
from hpwsn.broker.readers.log_readers import Query, Readers
from hpwsn.broker.readers.pace import Pace
from hpwsn.door.event_shapes.line_shapes import LineShapes
from hpwsn.door.listener.full_lane import while_connected
from hpwsn.door.listener.http_exchange import read_body, trace_of
from hpwsn.door.rest.authorization import Accepts, reads_internal
from hpwsn.door.rest.events.event_pages import MOST_ROWS, ROWS, ROWS_BYTES, ROWS_TYPE, EventPages
from hpwsn.door.rest.events.event_parameters import (
    accepts,
    content_of,
    max_rate_of,
    maximum_of,
    message_id_of,
    offset_of,
    receipt_to_of,
    registration_of,
    routing_of,
    since_of,
    topic_of,
    topics_of,
    view_of,
    wait_of,
)
from hpwsn.door.rest.events.event_payloads import (
    ELSEWHERE,
    GROWTH,
    JSON_TYPE,
    LINES_TYPE,
    XML_TYPES,
    payloads_elsewhere,
    payloads_of,
    xml_payload,
)
from hpwsn.door.rest.events.event_socket import wants_socket, write_socket
from hpwsn.door.rest.events.event_stream import wants_stream, write_stream
from hpwsn.door.rest.events.open_streams import OpenStreams
from hpwsn.door.rest.events.payload_views import PayloadView, PayloadViews
from hpwsn.door.rest.json_answers import answer, answers_in_json, bad, check_names
from hpwsn.door.rest.openapi import document
from hpwsn.http_json.cross_origin import Origins
from hpwsn_client.wsn.operations.filters import Filter
from hpwsn_client.wsn.operations.notifications import NotificationMessage
from hpwsn_client.wsn.soap import faults
from hpwsn_client.wsn.soap.names import DIALECT_SIMPLE
from hpwsn_client.wsn.soap.xml import Limits
from hpwsn_client.wsn.topics.topic import shown
from hpwsn_client.wsn.topics.topic_expressions import TopicExpression

AFTER_HEADER, WAITING_HEADER = "Hpwsn-After", "Hpwsn-Waiting"
OLDEST_HEADER, UPTO_HEADER, SINCE_HEADER = "Hpwsn-Oldest", "Hpwsn-Upto", "Hpwsn-Since"
ARROW_TYPE = "application/vnd.apache.arrow.stream"
PROTOBUF_TYPE = "application/x-protobuf"
CONTENT_TYPES = (JSON_TYPE, LINES_TYPE, *XML_TYPES, ARROW_TYPE, PROTOBUF_TYPE)
PAGE, LARGEST_PAGE = 100, 1000

_READ = ("filter", "dialect", "after", "upto", "max", "wait", "also", "column", "payload", "cut", "max_rate")
_NOT_JSON = (ROWS_TYPE, ARROW_TYPE, PROTOBUF_TYPE)
_OPTIONAL = {
    ARROW_TYPE: ("Arrow", "hpwsn.door.arrow.event_batches", "arrow"),
    PROTOBUF_TYPE: ("Protocol Buffers", "hpwsn.door.protobuf.event_messages", "protobuf"),
}
"""The name of each format that needs an optional package, its module, and the extra with the package."""


class EventsDoor:
    """The paths under /topics."""

    def __init__(
        self,
        broker: Broker,
        readers: Readers,
        pages: EventPages,
        limits: Limits,
        request_timeout: float,
        *,
        check_filter: Callable[[Filter], None],
        accepts_token: Accepts,
        origins: Origins,
    ) -> None:
        self._broker = broker
        self._readers = readers
        self._limits = limits
        self._request_timeout = request_timeout
        self._check_filter = check_filter
        self._accepts_token = accepts_token
        self._origins = origins
        self._pages = pages
        self._views = PayloadViews(self._pages)
        self.open_streams = OpenStreams()
        self._shapes = LineShapes(limits, GROWTH)

    def join(self, app: web.Application) -> None:
        """Add the routes to the node's web application, and end the streams when it ends."""
        app.add_routes(
            [
                web.post("/topics/{topic:[^/]+}/events", self._publish),
                web.get("/topics/{topic:[^/]+}/events", self._read, allow_head=False),
                web.head("/topics/{topic:[^/]+}/events", self._end),
                web.route("*", "/topics/{topic:[^/]+}/events", self._other_method),
                web.post("/topics/{path:.+/.+/events}", self._misplaced),
                web.get("/topics/{path:(?!(?:changes|import)$).+}", self._misplaced),
                web.get("/openapi.json", self._describe),
            ]
        )
        app.on_shutdown.append(self._close)

    async def _close(self, app: web.Application) -> None:
        self._readers.close()

    async def _describe(self, request: web.Request) -> web.Response:
        return web.json_response(document(self._broker.base_url()))

    async def _other_method(self, request: web.Request) -> web.Response:
        told = {"error": f"{request.method} is not supported for events; GET reads them, POST publishes them"}
        refusal = answer(told, 405)
        refusal.headers["Allow"] = "GET, HEAD, POST"
        return refusal

    @answers_in_json
    async def _misplaced(self, request: web.Request) -> web.StreamResponse:
        """Answer a path with a topic whose names are joined by `/`, or without `/events`."""
        meant = request.match_info["path"].strip("/").removesuffix("/events").replace("/", ":")
        raise faults.SoapFault(
            f"this path does not exist; the events of the topic are at {shown(f'/topics/{meant}/events')}, "
            "with its names joined by ':'",
            status=404,
        )

    @answers_in_json
    async def _publish(self, request: web.Request) -> web.StreamResponse:
        check_names(request, "id", "reliable", "partial")
        topic, message_id = topic_of(request), message_id_of(request)
        data = await self._body(request)
        content_type = request.content_type
        if content_type in _OPTIONAL:
            codec = await _load_codec(content_type, 415)
            # A small body may be large when it is decompressed, or converted.
            data = await asyncio.to_thread(codec.lines_of, data, self._limits, GROWTH)
            content_type = LINES_TYPE
        if content_type in XML_TYPES:
            payloads, count = await off_loop(len(data), xml_payload, data, request.charset, self._limits)
        elif len(data) > ELSEWHERE:
            payloads, count = await in_thread(payloads_elsewhere, data, content_type, self._limits)
        else:
            payloads, count = await off_loop(len(data), self._payloads, data, content_type)
        opening = NotificationMessage(TopicExpression.of_message(topic), b"")
        (message,) = self._broker.ask_for_receipts((opening,), receipt_to_of(request))
        run = open_run(message, message_id, routing=routing_of(request), trace=trace_of(request))
        run.payloads, run.size = payloads, count
        source = Source(registration=registration_of(request), door="json")
        span = await self._broker.admission.publish_runs([run], source)
        return answer({"first": span.first, "last": span.last}, 202)

    async def _body(self, request: web.Request) -> bytes:
        if request.content_type not in CONTENT_TYPES:
            accepted = " or ".join(CONTENT_TYPES)
            raise faults.SoapFault(
                f"the content type is {shown(request.content_type)}; send {accepted}", status=415
            )
        too_large = f"the request is larger than {self._limits.body} bytes (server.body_limit)"
        if (request.content_length or 0) > self._limits.body:
            raise faults.TooLarge(too_large)
        try:
            async with asyncio.timeout(self._request_timeout):
                return await read_body(request)
        except web.HTTPRequestEntityTooLarge as error:
            raise faults.TooLarge(too_large) from error
        except TimeoutError as error:
            reason = f"the request did not arrive within {self._request_timeout:g} s"
            raise faults.SoapFault(reason, status=408) from error

    def _encode_batch(self, arrow: ModuleType, page: Page) -> bytes:
        encoded: bytes = arrow.encode_batch(page.stretches, self._pages.json_data(page.stretches))
        return encoded

    def _payloads(self, data: bytes, content_type: str) -> tuple[bytes, int]:
        """The payloads of a request, with END after each, and their number."""
        found = self._shapes.payloads_of(data, array=content_type == JSON_TYPE)
        if found is not None:
            return found
        return payloads_of(data, content_type, self._limits)

    @answers_in_json
    async def _read(self, request: web.Request) -> web.StreamResponse:
        check_names(request, *_READ)
        query, view, max_rate = self._query(request), view_of(request), max_rate_of(request)
        after, last = offset_of("after", request.query), offset_of("Last-Event-ID", request.headers)
        socket = wants_socket(request)
        if not socket and not wants_stream(request):
            if max_rate is not None:
                raise bad("max_rate is for streams and WebSockets; a poll has max")
            with while_connected(request):
                return await self._poll(request, query, view, after or 0)
        if query.upto is not None:
            raise bad("upto is for polls; a stream has no end")
        start = after if last is None else last
        start = self._readers.head() if start is None else start
        if socket:
            self._origins.check_socket(request)
        with self.open_streams.opened(request, query.topics, "socket" if socket else "stream"):
            write = write_socket if socket else write_stream
            pace = None if max_rate is None else Pace(max_rate)
            return await write(request, self._readers, query, start, self._views.forms(view), pace)

    async def read_topic(self, request: web.Request, topic: str) -> web.StreamResponse:
        """Answer a GET or HEAD for the events of a topic that the path itself does not name."""
        request.match_info["topic"] = topic
        return await (self._end(request) if request.method == "HEAD" else self._read(request))

    @answers_in_json
    async def _end(self, request: web.Request) -> web.StreamResponse:
        """Where the log begins and ends, and what of it a reader at an offset has still to read."""
        check_names(request, "after", "upto", "max", "wait", "also", "since")
        internal = reads_internal(request, self._accepts_token)
        query = Query(topics_of(request), upto=offset_of("upto", request.query), internal=internal)
        since = since_of(request)
        after = offset_of("after", request.query)
        limit, wait = maximum_of(request, 1), wait_of(request)
        for topic in query.topics:
            self._readers.check(topic, internal)
        headers = {}
        if after is not None:
            backlog = await self._readers.backlog(query, after, limit, wait)
            headers[WAITING_HEADER] = str(backlog.entries)
            if "max" in request.query:
                headers[UPTO_HEADER] = str(backlog.upto)
        if since is not None:
            headers[SINCE_HEADER] = str(await self._readers.since(since))
        headers[OLDEST_HEADER] = str(await self._readers.oldest())
        headers[AFTER_HEADER] = str(self._readers.head())
        return web.Response(content_type="application/json", headers=headers)

    def _query(self, request: web.Request) -> Query:
        """The query of a poll, a stream or a WebSocket."""
        internal = reads_internal(request, self._accepts_token)
        topics, content = topics_of(request), content_of(request)
        query = Query(topics, content, offset_of("upto", request.query), internal)
        for topic in topics:
            self._readers.check(topic, internal)
            if content is not None:
                self._check_filter(Filter((TopicExpression.of(topic, DIALECT_SIMPLE),), (content,)))
        return query

    async def _poll(self, request: web.Request, query: Query, view: PayloadView, after: int) -> web.Response:
        wait, headers = wait_of(request), {}
        if view != PayloadView() and any(map(partial(accepts, request), _NOT_JSON)):
            raise bad("payload and cut are for JSON; leave them out, or accept application/json only")
        if accepts(request, ROWS_TYPE):
            limit = min(maximum_of(request, ROWS), MOST_ROWS)
            page = await self._readers.poll(query, after, limit, wait, ROWS_BYTES)
            columns = request.query.getall("column", [])
            body, kind = await off_loop(page.size, self._pages.encode_rows, page, columns), ROWS_TYPE
            # Read after the page: what is missing in the page was removed before.
            headers[OLDEST_HEADER] = str(await self._readers.oldest())
        elif accepts(request, ARROW_TYPE):
            arrow = await _load_codec(ARROW_TYPE, 406)
            limit = min(maximum_of(request, ROWS), MOST_ROWS)
            page = await self._readers.poll(query, after, limit, wait, ROWS_BYTES)
            body, kind = await off_loop(page.size, self._encode_batch, arrow, page), ARROW_TYPE
        else:
            codec = await _load_codec(PROTOBUF_TYPE, 406) if accepts(request, PROTOBUF_TYPE) else None
            limit = min(maximum_of(request, PAGE), LARGEST_PAGE)
            page = await self._readers.poll(query, after, limit, wait)
            events = await encode_once(page.stretches, self._views.encoding(view))
            if codec is None:
                body, kind = b"[" + b",\n".join(events) + b"]\n", JSON_TYPE
            else:
                body, kind = await off_loop(page.size, codec.encode_messages, events), PROTOBUF_TYPE
        headers[AFTER_HEADER] = str(page.upto)
        return web.Response(body=body, content_type=kind, headers=headers)


async def _load_codec(content_type: str, status: int) -> ModuleType:
    """The module for a format that needs an optional package; a fault with this status without it."""
    name, module, extra = _OPTIONAL[content_type]
    try:
        return await asyncio.to_thread(import_module, module)  # the first import takes a while
    except ImportError as error:
        reason = f"this node has no {name} ({error}); run pip install 'hpwsn[{extra}]' there, or use JSON"
        raise faults.SoapFault(reason, status=status) from error
