"""The JSON door: events published to a topic and read from it, without SOAP.

It owns the paths under /topics, their parameters and status codes; json_events maps events to XML. JSON and
SOAP publish to the same log. A GET is a poll, a stream if the client accepts `text/event-stream`, or a
WebSocket if it asks for an upgrade; all three take the same query. Every error is a JSON object with `error`.
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import wraps
from typing import Any

from aiohttp import web

from hpwsn.broker.admission.admission import Source
from hpwsn.broker.broker import Broker
from hpwsn.broker.delivery.log_readers import LOOP_BYTES, LogEntry, Page, Query, Readers, off_loop
from hpwsn.door.rest.event_socket import check_origin, wants_socket, write_socket
from hpwsn.door.rest.event_stream import wants_stream, write_stream
from hpwsn.door.rest.openapi import document
from hpwsn.errors import JournalUnavailable
from hpwsn.matching.content.content_filters import compile_condition
from hpwsn.notification import PARTIAL, RELIABLE
from hpwsn_client.wsn.formats.json_events import decode_event, encode_event
from hpwsn_client.wsn.formats.json_text import MalformedJson, parse_event_lines, parse_events
from hpwsn_client.wsn.operations.filters import ContentFilter, Filter, likely_dialect
from hpwsn_client.wsn.operations.notifications import NotificationMessage
from hpwsn_client.wsn.soap import faults
from hpwsn_client.wsn.soap.names import DIALECT_PREDICATES, DIALECT_SIMPLE, DIALECT_XPATH, HPWSN
from hpwsn_client.wsn.soap.xml import Limits
from hpwsn_client.wsn.topics.topic import shown
from hpwsn_client.wsn.topics.topic_expressions import Topic, TopicExpression

log = logging.getLogger(__name__)

ID_HEADER = "Hpwsn-Message-Id"
AFTER_HEADER, WAITING_HEADER = "Hpwsn-After", "Hpwsn-Waiting"
REGISTRATION_HEADER = "Hpwsn-Registration"
PAGE, LARGEST_PAGE = 100, 1000
LONGEST_WAIT = 300.0
GROWTH = 4
"""Maximum size of a request's events in XML, as a multiple of `server.body_limit`."""

_PARSERS = {"application/json": parse_events, "application/x-ndjson": parse_event_lines}
_DIALECTS = {"predicates": DIALECT_PREDICATES, "xpath": DIALECT_XPATH}
_is_id = re.compile(r"[^\x00-\x1f\x7f\ud800-\udfff]{1,1024}").fullmatch
_is_seconds = re.compile(r"[0-9]{1,400}(?:\.[0-9]{1,400})?(?:[eE][+-]?[0-9]{1,3})?").fullmatch

Handler = Callable[["EventsDoor", web.Request], Awaitable[web.StreamResponse]]


def _answers_in_json(handler: Handler) -> Handler:
    """Turn faults and errors into responses with a JSON object."""

    @wraps(handler)
    async def handle(door: EventsDoor, request: web.Request) -> web.StreamResponse:
        try:
            return await handler(door, request)
        except faults.SoapFault as fault:
            return _refuse(fault)
        except JournalUnavailable as error:
            return _refuse(faults.Busy(f"the journal cannot be read: {error}"))
        except (ConnectionError, web.HTTPException):
            raise
        except Exception:
            log.exception("%s %s failed", request.method, request.path)
            return _answer({"error": "internal error; the node's log has the details"}, 500)

    return handle


class EventsDoor:
    """The paths under /topics."""

    def __init__(
        self,
        broker: Broker,
        readers: Readers,
        limits: Limits,
        request_timeout: float,
        *,
        check_filter: Callable[[Filter], None],
        origins: Sequence[str] = (),
    ) -> None:
        self._broker = broker
        self._readers = readers
        self._limits = limits
        self._request_timeout = request_timeout
        self._check_filter = check_filter
        self._origins = origins

    def join(self, app: web.Application) -> None:
        """Add the routes to the node's web application, and end the streams when it ends."""
        app.add_routes(
            [
                web.post("/topics/{topic:[^/]+}/events", self._publish),
                web.get("/topics/{topic:[^/]+}/events", self._read, allow_head=False),
                web.head("/topics/{topic:[^/]+}/events", self._end),
                web.route("*", "/topics/{topic:[^/]+}/events", self._other_method),
                web.post("/topics/{path:.+/.+/events}", self._misplaced),
                web.get("/topics/{path:.+}", self._misplaced),
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
        answer = _answer(told, 405)
        answer.headers["Allow"] = "GET, HEAD, POST"
        return answer

    @_answers_in_json
    async def _misplaced(self, request: web.Request) -> web.StreamResponse:
        """Answer a path with a topic whose names are joined by `/`, or without `/events`."""
        meant = request.match_info["path"].strip("/").removesuffix("/events").replace("/", ":")
        raise faults.SoapFault(
            f"this path does not exist; the events of the topic are at {shown(f'/topics/{meant}/events')}, "
            "with its names joined by ':'",
            status=404,
        )

    @_answers_in_json
    async def _publish(self, request: web.Request) -> web.StreamResponse:
        _check_names(request, "id", "reliable", "partial")
        topic, message_id = _topic(request), _message_id(request)
        data = await self._body(request)
        payloads = await off_loop(len(data), self._payloads, data, request.content_type)
        on = TopicExpression.of_message(topic)
        messages = [NotificationMessage(on, payload) for payload in payloads]
        span = await self._broker.admission.publish(
            messages,
            message_id=message_id,
            source=Source(registration=_registration(request)),
            routing=_routing(request),
        )
        return _answer({"first": span.first, "last": span.last}, 202)

    async def _body(self, request: web.Request) -> bytes:
        if request.content_type not in _PARSERS:
            raise faults.SoapFault(
                f"the content type is {shown(request.content_type)}; send {' or '.join(_PARSERS)}", status=415
            )
        too_large = f"the request is larger than {self._limits.body} bytes (server.body_limit)"
        if (request.content_length or 0) > self._limits.body:
            raise faults.TooLarge(too_large)
        try:
            async with asyncio.timeout(self._request_timeout):
                return await request.read()
        except web.HTTPRequestEntityTooLarge as error:
            raise faults.TooLarge(too_large) from error
        except TimeoutError as error:
            reason = f"the request did not arrive within {self._request_timeout:g} s"
            raise faults.SoapFault(reason, status=408) from error

    def _payloads(self, data: bytes, content_type: str) -> list[bytes]:
        events = _PARSERS[content_type](data, self._limits)
        room = GROWTH * self._limits.body
        payloads = []
        for event in events:
            payloads.append(encode_event(event, replace(self._limits, body=max(room, 1))))
            room -= len(payloads[-1])
        return payloads

    @_answers_in_json
    async def _read(self, request: web.Request) -> web.StreamResponse:
        _check_names(request, "filter", "dialect", "after", "max", "wait")
        query = self._query(request)
        after, last = _offset("after", request.query), _offset("Last-Event-ID", request.headers)
        socket = wants_socket(request)
        if not socket and not wants_stream(request):
            return await self._poll(request, query, after or 0)
        start = after if last is None else last
        start = self._readers.head() if start is None else start
        if socket:
            check_origin(request, self._origins)
            return await write_socket(request, self._readers, query, start, _event)
        return await write_stream(request, self._readers, query, start, _event)

    @_answers_in_json
    async def _end(self, request: web.Request) -> web.StreamResponse:
        """The offset after which a new stream would start, and the number of events after an offset."""
        _check_names(request, "after")
        topic, after = _topic(request), _offset("after", request.query)
        self._readers.check(topic)
        headers = {AFTER_HEADER: str(self._readers.head())}
        if after is not None:
            headers[WAITING_HEADER] = str(await self._readers.count(topic, after))
        return web.Response(content_type="application/json", headers=headers)

    def _query(self, request: web.Request) -> Query:
        """The query of a poll, a stream or a WebSocket."""
        topic, content = _topic(request), _content(request)
        condition = None if content is None else compile_condition(content)
        self._readers.check(topic)
        if content is not None:
            self._check_filter(Filter((TopicExpression.of(topic, DIALECT_SIMPLE),), (content,)))
        return Query(topic, condition)

    async def _poll(self, request: web.Request, query: Query, after: int) -> web.Response:
        limit = min(_maximum(request), LARGEST_PAGE)
        page = await self._readers.poll(query, after, limit, _wait(request))
        body = await self._encode_page(page)
        return web.Response(
            body=body, content_type="application/json", headers={AFTER_HEADER: str(page.upto)}
        )

    async def _encode_page(self, page: Page) -> bytes:
        """A JSON array; entries of new commits are encoded once for all readers."""
        size = sum(len(entry.notification.content) for entry in page.entries)
        if size <= LOOP_BYTES:
            events = [await entry.encode_once(_event) for entry in page.entries]
        else:
            events = await asyncio.to_thread(lambda: list(map(_event, page.entries)))
        return b"[" + b",\n".join(events) + b"]\n"


def _event(entry: LogEntry) -> bytes:
    """One event as JSON on one line."""
    notification = entry.notification
    event = {
        "offset": entry.offset,
        "topic": str(notification.topic),
        "time": datetime.fromtimestamp(notification.time, UTC).isoformat(timespec="milliseconds"),
        "id": notification.message_id,
        "data": decode_event(notification.payload),
    }
    return json.dumps(event, ensure_ascii=False).encode()


def _topic(request: web.Request) -> Topic:
    return Topic.parse(request.match_info["topic"])


def _check_names(request: web.Request, *known: str) -> None:
    """Reject unknown query parameters: with a mistyped `filter`, all events would match.

    Names that start with `_` are ignored, since scripts add them to bypass caches.
    """
    for name in request.query:
        if name not in known and not name.startswith("_"):
            raise _bad(f"parameter {shown(name)} is unknown; known parameters are {', '.join(known)}")


def _message_id(request: web.Request) -> str | None:
    given = {value for value in (request.headers.get(ID_HEADER), request.query.get("id")) if value}
    if len(given) > 1:
        raise _bad(f"{ID_HEADER} and the parameter id differ; give one of them")
    for value in given:
        if not _is_id(value):
            raise _bad(
                f"the id {shown(value)} is not valid; give 1 to 1024 characters without control characters"
            )
    return next(iter(given), None)


def _routing(request: web.Request) -> int:
    """The routing flags of a publication."""
    asked = 0
    for name, flag in (("reliable", RELIABLE), ("partial", PARTIAL)):
        text = request.query.get(name, "false")
        if text not in ("true", "false"):
            raise _bad(f"{name} is {shown(text)}; give true or false, or leave it out")
        asked |= flag * (text == "true")
    return asked


def _registration(request: web.Request) -> str | None:
    """The id of the publisher's registration, from the id or the address in the header."""
    return (request.headers.get(REGISTRATION_HEADER) or "").rpartition("/")[2] or None


def _content(request: web.Request) -> ContentFilter | None:
    expression, named = request.query.get("filter", "").strip(), request.query.get("dialect")
    if named is not None and named not in _DIALECTS:
        raise _bad(f"dialect is {shown(named)}; give {' or '.join(_DIALECTS)}, or leave it out")
    if not expression:
        return None
    dialect = likely_dialect(expression) if named is None else _DIALECTS[named]
    return ContentFilter(dialect, expression, (("hp", HPWSN),))


def _offset(name: str, given: Mapping[str, str]) -> int | None:
    text = given.get(name)
    if text is None:
        return None
    if not (text.isascii() and text.isdecimal()) or len(text) > 18:
        raise _bad(f"{name} is {shown(text)}; give the offset of an event, or leave it out")
    return int(text)


def _maximum(request: web.Request) -> int:
    text = request.query.get("max", str(PAGE))
    if not (text.isascii() and text.isdecimal()) or len(text) > 18 or not int(text):
        raise _bad(f"max is {shown(text)}; give a number of events, 1 or more")
    return int(text)


def _wait(request: web.Request) -> float:
    text = request.query.get("wait", "0")
    if not _is_seconds(text):
        raise _bad(f"wait is {shown(text)}; give a number of seconds")
    return min(float(text), LONGEST_WAIT)


def _answer(told: Mapping[str, Any], status: int) -> web.Response:
    """A JSON object with a newline at its end, for terminals."""
    return web.json_response(text=json.dumps(told, ensure_ascii=False) + "\n", status=status)


def _bad(words: str) -> faults.SoapFault:
    return faults.SoapFault(words, status=400)


def _refuse(fault: faults.SoapFault) -> web.Response:
    told: dict[str, Any] = {"error": fault.reason}
    if isinstance(fault, MalformedJson) and fault.line:
        told |= {"line": fault.line, "column": fault.column}
    elif column := getattr(fault.__cause__, "column", None):
        told["column"] = column
    response = _answer(told, _status(fault))
    if isinstance(fault, faults.Busy):
        response.headers["Retry-After"] = f"{max(fault.retry_after, 1):.0f}"
    return response


def _status(fault: faults.SoapFault) -> int:
    if isinstance(fault, faults.TopicNotSupportedFault):
        return 404
    if isinstance(fault, faults.PublisherRegistrationRejectedFault | faults.ResourceUnknownFault):
        return 403
    return fault.status or (400 if fault.code is faults.FaultCode.SENDER else 500)
