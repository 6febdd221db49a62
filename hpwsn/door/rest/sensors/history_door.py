"""Kept readings: GET /readings as JSON, CSV, or a picture, by the header Accept or the parameter `format`.

The items of a page are events, in the order of their times. `next` is the place after the last one, so that
no item is missing or repeated because readings come, or move from memory to files, between two pages. A page
may have fewer items than its limit although more follow, since it takes a bounded time. A thread encodes.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from aiohttp import web

from hpwsn.background import in_thread
from hpwsn.door.rest.events.event_parameters import accepts, content_of
from hpwsn.door.rest.json_answers import answers_in_json, bad, check_names
from hpwsn.http_json.list_pages import bad_cursor, limit_of
from hpwsn.sensors.history.event_filter import compile_event_filter
from hpwsn.sensors.history.history_query import (
    HistoryBusy,
    HistoryDamaged,
    HistoryQuery,
    Page,
    Picture,
    Place,
    parse_cursor,
)
from hpwsn.sensors.history.reading_history import ReadingHistory
from hpwsn.sensors.physical.physical_sensor import SensorRefused
from hpwsn.sensors.physical.selection import parse_area
from hpwsn.sensors.readings.reading_times import parse_time
from hpwsn_client.wsn.soap import faults
from hpwsn_client.wsn.topics.topic import shown

FORMS = {"json": "application/json", "csv": "text/csv", "png": "image/png", "svg": "image/svg+xml"}
"""The values of `format`, and what Accept names instead; the first one is the default."""
PICTURES = ("png", "svg")
MOST_SENSORS = 100
"""Times that `sensor` or `virtual` is given."""

_ROWS = ("sensor", "virtual", "kind", "area", "from", "to", "filter", "dialect")


class HistoryDoor:
    """The request handler for kept readings.

    `history` is None on a node that keeps none, and `missing` then says why. `unit_of` gives the unit of a
    sensor's quantity; threads call it.
    """

    def __init__(
        self, history: ReadingHistory | None, missing: str, unit_of: Callable[[str, str], str | None]
    ) -> None:
        self._history = history
        self._missing = missing
        self._unit_of = unit_of

    def routes(self) -> list[web.RouteDef]:
        """Return the routes for the node's web application."""
        return [web.get("/readings", self._read)]

    @answers_in_json
    async def _read(self, request: web.Request) -> web.StreamResponse:
        if self._history is None:
            raise faults.SoapFault(self._missing, status=501)
        form = _form_of(request)
        try:
            if form in PICTURES:
                return await self._draw(self._history, request, form)
            return await self._list(self._history, request, form)
        except HistoryBusy as error:
            raise faults.Busy(str(error)) from error
        except HistoryDamaged as error:
            told = "a file of kept readings is damaged; the node's log names it, and what to do"
            raise faults.SoapFault(told, status=500) from error
        except ModuleNotFoundError as error:
            told = f"this needs {error.name}, which the node does not have; pip install 'hpwsn[sensors]'"
            raise faults.SoapFault(told, status=501) from error

    async def _list(self, history: ReadingHistory, request: web.Request, form: str) -> web.Response:
        check_names(request, *_ROWS, "limit", "after", "format")
        page = await history.queries.page(query_of(request), limit_of(request), _after_of(request))
        encode = _encode_csv if form == "csv" else _encode_json
        response = web.Response(body=await in_thread(encode, page), content_type=FORMS[form], charset="utf-8")
        if form == "csv" and page.after is not None:
            following = request.rel_url.update_query(after=page.after.cursor())
            response.headers["Link"] = f'<{following}>; rel="next"'
        return response

    async def _draw(self, history: ReadingHistory, request: web.Request, form: str) -> web.Response:
        check_names(request, *_ROWS, "quantity", "format")
        quantity = request.query.get("quantity") or None
        picture = Picture(query_of(request), form, quantity, self._unit_of)
        return web.Response(body=await history.queries.picture(picture), content_type=FORMS[form])


def query_of(request: web.Request) -> HistoryQuery:
    """The rows that the parameters mean; an empty parameter is as if it were not given."""
    sensors, virtual = _names_of(request, "sensor"), _names_of(request, "virtual")
    kind, area = request.query.get("kind"), request.query.get("area")
    if virtual:
        for name in ("sensor", "kind", "area"):
            if request.query.get(name):
                raise bad(f"virtual is given with {name}; results of virtual sensors have only virtual")
    content = content_of(request)
    try:
        return HistoryQuery(
            sensors=frozenset(virtual or sensors) or None,
            virtual=bool(virtual),
            kind=kind or None,
            area=parse_area(area) if area else None,
            start=_time_of(request, "from"),
            end=_time_of(request, "to"),
            wanted=None if content is None else compile_event_filter(content),
        )
    except SensorRefused as error:
        raise bad(str(error)) from error


def _form_of(request: web.Request) -> str:
    form = request.query.get("format")
    if form is None:
        return next((name for name, kind in FORMS.items() if accepts(request, kind)), "json")
    if form not in FORMS:
        raise bad(f"format is {shown(form)}; give {', '.join(FORMS)}, or leave it out")
    return form


def _names_of(request: web.Request, name: str) -> list[str]:
    given = [each for each in request.query.getall(name, []) if each]
    if len(given) > MOST_SENSORS:
        raise bad(f"{name} is given {len(given)} times; give at most {MOST_SENSORS}")
    return given


def _time_of(request: web.Request, name: str) -> int | None:
    """A time in milliseconds."""
    text = request.query.get(name)
    if not text:
        return None
    time = parse_time(text)
    if time is None:
        raise bad(
            f"{name} is {shown(text)}; give a time such as 2026-01-31T12:00:00Z, with + as %2B in its zone"
        )
    return time


def _after_of(request: web.Request) -> Place | None:
    text = request.query.get("after")
    if text is None:
        return None
    place = parse_cursor(text)
    if place is None:
        raise bad_cursor(text)
    return place


def _encode_json(page: Page) -> bytes:
    following = None if page.after is None else page.after.cursor()
    found = {"items": [row.event() for row in page.rows], "next": following}
    return json.dumps(found, ensure_ascii=False).encode() + b"\n"


def _encode_csv(page: Page) -> bytes:
    """A header with every field of the page, and a row for each item; lists are joined by spaces."""
    events = [row.event() for row in page.rows]
    columns: dict[str, None] = {}
    for event in events:
        columns.update(dict.fromkeys(event))
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(_cells(event, columns) for event in events)
    return text.getvalue().encode()


def _cells(event: Mapping[str, Any], columns: Mapping[str, None]) -> Sequence[Any]:
    return [_cell(event.get(name)) for name in columns]


def _cell(value: Any) -> Any:
    if isinstance(value, bool):
        return "true" if value else "false"
    return " ".join(value) if isinstance(value, list) else value
