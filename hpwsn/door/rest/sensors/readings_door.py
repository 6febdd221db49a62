"""The HTTP gateway: readings as JSON, NDJSON or CSV, to /readings or to the address of one sensor.

It owns POST /readings, POST /sensors/{id}/readings and GET /readings/rejected. Every reading of a request is
accepted or rejected for itself. The answer is sent once the accepted ones are stored: 202 if there is one,
else 422. A form is told by the content type; for one that says nothing, such as curl's, by the data.
"""

from __future__ import annotations

from typing import Any

from aiohttp import web

from hpwsn.background import in_thread
from hpwsn.broker.admission.admission import Source
from hpwsn.door.rest.events.event_parameters import registration_of
from hpwsn.door.rest.json_answers import answer, answers_in_json, bad, check_names
from hpwsn.door.rest.json_requests import read_body
from hpwsn.http_json.list_pages import bad_cursor, limit_of
from hpwsn.sensors.intake.intake import SENSORS, Intake, Taken
from hpwsn.sensors.intake.rejected_readings import beginning
from hpwsn.sensors.readings.checks import REASONS
from hpwsn.sensors.readings.formats import (
    CSV,
    LINES,
    OBJECTS,
    ReadingsTooMany,
    ReadingsUnreadable,
    parse_readings,
)
from hpwsn_client.wsn.soap import faults
from hpwsn_client.wsn.topics.topic import shown

SOURCE = "http"
FORMS = (OBJECTS, LINES, CSV)
UNTOLD = ("application/x-www-form-urlencoded", "application/octet-stream", "text/plain")
"""Content types of clients that were not told another one: the data tells the form."""
PARSED_AT_ONCE = 64 << 10
"""Bytes beyond which a thread parses."""


class ReadingsDoor:
    """The request handlers for readings that come in; sizes in bytes, `patience` in seconds."""

    def __init__(self, intake: Intake, readings_limit: int, largest: int, patience: float) -> None:
        self._intake = intake
        self._readings_limit = readings_limit
        self._largest = largest
        self._patience = patience

    def routes(self) -> list[web.RouteDef]:
        """Return the routes for the node's web application."""
        return [
            web.post("/readings", self._take),
            web.post("/sensors/{id}/readings", self._take),
            web.get("/readings/rejected", self._list_rejected),
        ]

    @answers_in_json
    async def _take(self, request: web.Request) -> web.StreamResponse:
        check_names(request)
        form = _form_of(request)
        sensor = request.match_info.get("id")
        registration = registration_of(request)
        publisher = SENSORS if registration is None else Source(registration=registration, door=SENSORS.door)
        body = await read_body(request, self._patience, self._largest)
        arguments = body, form, self._readings_limit
        try:
            if len(body) > PARSED_AT_ONCE:
                raw = await in_thread(parse_readings, *arguments)
            else:
                raw = parse_readings(*arguments)
            taken = await self._intake.take(raw, SOURCE, sensor=sensor, publisher=publisher)
        except ReadingsTooMany as error:
            raise faults.TooLarge(str(error)) from error
        except ReadingsUnreadable as error:
            taken = await self._intake.reject_whole(beginning(body), str(error), SOURCE, sensor)
            return _answer(taken, error=str(error))
        return _answer(taken)

    @answers_in_json
    async def _list_rejected(self, request: web.Request) -> web.StreamResponse:
        check_names(request, "limit", "after", "sensor", "reason")
        reason, after = request.query.get("reason"), request.query.get("after")
        if reason is not None and reason not in REASONS:
            raise bad(f"reason is {shown(reason)}; give one of {', '.join(REASONS)}")
        before = None
        if after is not None:
            if not (after.isascii() and after.isdecimal() and len(after) <= 18):
                raise bad_cursor(after)
            before = int(after)
        rejected = self._intake.rejected
        sensor = request.query.get("sensor")
        items, following = await rejected.page(limit_of(request), before, sensor, reason)
        found = {"items": items, "next": None if following is None else str(following)}
        return answer({**found, "total": len(rejected)}, 200)


def _form_of(request: web.Request) -> str | None:
    if "Content-Type" not in request.headers or request.content_type in UNTOLD:
        return None
    if request.content_type not in FORMS:
        told = f"the content type is {shown(request.content_type)}; send {', '.join(FORMS)}"
        raise faults.SoapFault(told, status=415)
    return request.content_type


def _answer(taken: Taken, **more: Any) -> web.Response:
    errors = [{"index": index, "reason": reason} for index, reason in taken.errors]
    told = {"accepted": taken.accepted, "rejected": taken.rejected, "errors": errors, **more}
    return answer(told, 202 if taken.accepted else 422)
