"""The read-only door of OGC SensorThings 1.1, at /sta/v1.1: for clients of the field that speak it already.

It has Things, Datastreams and Observations, the latter of one Datastream at a time, with $filter, $top,
$skip, $orderby and $count. Observations are in the order of their times, or with `$orderby=phenomenonTime
desc` in the opposite one; the next page of them is where `@iot.nextLink` leads. Writing, $expand, $select and
the other entities of the standard are not there.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from aiohttp import web

from hpwsn.background import in_slices
from hpwsn.door.rest.json_answers import answer, answers_in_json, bad, check_names
from hpwsn.door.sensorthings.odata_filter import Filter, parse_filter
from hpwsn.door.sensorthings.thing_entities import ThingEntities, measured
from hpwsn.sensors.history.history_query import (
    HistoryBusy,
    HistoryDamaged,
    HistoryQuery,
    Item,
    Page,
    Place,
    Row,
    parse_cursor,
)
from hpwsn.sensors.history.reading_history import ReadingHistory
from hpwsn.sensors.physical.physical_sensor import PhysicalSensor
from hpwsn.sensors.readings.reading import Reading
from hpwsn.sensors.registry.sensor_registry import SensorRegistry
from hpwsn_client.wsn.soap import faults
from hpwsn_client.wsn.topics.topic import shown

BASE = "/sta/v1.1"
TOP, LARGEST_TOP = 100, 1000
"""Entities of a page without $top, and the most; a higher $top gets this many."""
KINDS = ("Things", "Datastreams")
_step = re.compile(r"([A-Za-z]+)(?:\('([^'/]*)'\))?").fullmatch


class SensorThingsDoor:
    """The request handlers; `history` is None on a node that keeps none, and `missing` then says why."""

    def __init__(self, registry: SensorRegistry, history: ReadingHistory | None, missing: str) -> None:
        self._registry = registry
        self._history = history
        self._missing = missing

    def routes(self) -> list[web.RouteDef]:
        """Return the routes for the node's web application."""
        read = web.get(BASE + "/{path:.*}", self._read)
        return [web.get(BASE, self._list_kinds), web.get(BASE + "/", self._list_kinds), read]

    @answers_in_json
    async def _list_kinds(self, request: web.Request) -> web.StreamResponse:
        kinds = [{"name": kind, "url": f"{_base_of(request)}/{kind}"} for kind in KINDS]
        return answer({"value": kinds}, 200)

    @answers_in_json
    async def _read(self, request: web.Request) -> web.StreamResponse:
        entities = ThingEntities(_base_of(request))
        steps = [_step(step) for step in request.match_info["path"].split("/")]
        kind, name = (steps[0][1], steps[0][2]) if steps[0] is not None else ("", None)
        rest = tuple(step[0] if step is not None else "" for step in steps[1:])
        match kind, name, rest:
            case "Things" | "Datastreams", None, ():
                return await self._list(request, entities, kind, self._registry)
            case "Things", str(), ():
                return answer(entities.thing(self._sensor(name)), 200)
            case "Things", str(), ("Datastreams",):
                return await self._list(request, entities, "Datastreams", [self._sensor(name)])
            case "Datastreams", str(), () | ("Thing",) | ("Observations",):
                sensor, quantity = self._datastream(name)
                if rest == ("Observations",):
                    return await self._observe(request, entities, sensor, quantity)
                return answer(entities.thing(sensor) if rest else entities.datastream(sensor, quantity), 200)
            case "Observations", str(), () | ("Datastream",):
                stream, _, cursor = name.rpartition(":")
                sensor, quantity = self._datastream(stream)
                if rest:
                    return answer(entities.datastream(sensor, quantity), 200)
                return await self._show(entities, sensor, quantity, cursor)
        raise _unknown(f"there is no {shown(request.match_info['path'])}; {BASE} lists what there is")

    def _sensor(self, name: str) -> PhysicalSensor:
        found = self._registry.get(name)
        if found is None:
            raise _unknown(f"there is no sensor {shown(name)}; {BASE}/Things lists them")
        return found

    def _datastream(self, name: str) -> tuple[PhysicalSensor, str]:
        sensor, _, quantity = name.partition(":")
        found = self._sensor(sensor)
        if quantity not in found.quantities:
            raise _unknown(f"the sensor {shown(sensor)} has no quantity {shown(quantity)}")
        return found, quantity

    async def _list(
        self, request: web.Request, entities: ThingEntities, kind: str, sensors: Iterable[PhysicalSensor]
    ) -> web.StreamResponse:
        """Things or Datastreams, sorted by their ids."""
        check_names(request, "$filter", "$top", "$skip", "$orderby", "$count")
        wanted, skip, top = _filter_of(request), _number_of(request, "$skip", 0), _top_of(request)
        descending = _is_descending(request, ("name", "id", "@iot.id"))
        names: list[tuple[str, str]] = []

        def look() -> Iterator[None]:
            for sensor in list(sensors):
                quantities = sensor.quantities if kind == "Datastreams" else ("",)
                names.extend(
                    (sensor.id, quantity)
                    for quantity in quantities
                    if wanted is None or wanted.accepts(_entity(entities, sensor, quantity))
                )
                yield

        await in_slices(look())
        names.sort(reverse=descending)
        chosen = ((self._registry.get(name), quantity) for name, quantity in names[skip : skip + top])
        value = [_entity(entities, sensor, quantity) for sensor, quantity in chosen if sensor is not None]
        found: dict[str, Any] = {"value": value}
        if request.query.get("$count") == "true":
            found = {"@iot.count": len(names), **found}
        if skip + top < len(names):
            found["@iot.nextLink"] = _next_link(request, "$skip", str(skip + top))
        return answer(found, 200)

    async def _observe(
        self, request: web.Request, entities: ThingEntities, sensor: PhysicalSensor, quantity: str
    ) -> web.StreamResponse:
        """The Observations of a Datastream."""
        check_names(request, "$filter", "$top", "$orderby", "$skiptoken")
        descending = _is_descending(request, ("phenomenonTime", "resultTime"))
        query = _query(sensor, quantity, _filter_of(request) or Filter(lambda _: True))
        found = await self._rows(query, _top_of(request), _token_of(request), descending)
        told: dict[str, Any] = {"value": [_observation(entities, row, quantity) for row in found.rows]}
        if found.after is not None:
            told["@iot.nextLink"] = _next_link(request, "$skiptoken", found.after.cursor())
        return answer(told, 200)

    async def _show(
        self, entities: ThingEntities, sensor: PhysicalSensor, quantity: str, cursor: str
    ) -> web.StreamResponse:
        """One Observation."""
        place = parse_cursor(cursor)
        if place is not None:
            at = Filter(lambda _: True, place.time, place.time + 1)
            found = await self._rows(_query(sensor, quantity, at), 1, Place(place.time, place.offset - 1))
            if found.rows and found.rows[0].place == place:
                return answer(_observation(entities, found.rows[0], quantity), 200)
        raise _unknown(f"there is no Observation {shown(f'{sensor.id}:{quantity}:{cursor}')}")

    async def _rows(
        self, query: HistoryQuery, limit: int, after: Place | None, descending: bool = False
    ) -> Page:
        """The rows after a place in one of the two orders."""
        if self._history is None:
            raise faults.SoapFault(self._missing, status=501)
        queries = self._history.queries
        try:
            return await (queries.latest if descending else queries.page)(query, limit, after)
        except HistoryBusy as error:
            raise faults.Busy(str(error)) from error
        except HistoryDamaged as error:
            told = "a file of kept readings is damaged; the node's log names it, and what to do"
            raise faults.SoapFault(told, status=500) from error


def _query(sensor: PhysicalSensor, quantity: str, wanted: Filter) -> HistoryQuery:
    def accepts(item: Item) -> bool:
        value = _reading(item).values.get(quantity)
        return value is not None and wanted.accepts(measured(_reading(item).time, value))

    return HistoryQuery(frozenset((sensor.id,)), start=wanted.start, end=wanted.end, wanted=accepts)


def _observation(entities: ThingEntities, row: Row, quantity: str) -> dict[str, Any]:
    reading = _reading(row.item)
    return entities.observation(f"{reading.sensor}:{quantity}", row.place, reading.values[quantity])


def _reading(item: Item) -> Reading:
    assert isinstance(item, Reading)
    return item


def _entity(entities: ThingEntities, sensor: PhysicalSensor, quantity: str) -> dict[str, Any]:
    return entities.datastream(sensor, quantity) if quantity else entities.thing(sensor)


def _base_of(request: web.Request) -> str:
    return f"{request.scheme}://{request.host}{BASE}"


def _next_link(request: web.Request, name: str, value: str) -> str:
    return str(request.url.update_query({name: value}))


def _filter_of(request: web.Request) -> Filter | None:
    text = request.query.get("$filter", "")
    return parse_filter(text) if text.strip() else None


def _number_of(request: web.Request, name: str, default: int) -> int:
    text = request.query.get(name, str(default))
    if not (text.isascii() and text.isdecimal()) or len(text) > 18:
        raise bad(f"{name} is {shown(text)}; give a whole number")
    return int(text)


def _top_of(request: web.Request) -> int:
    found = _number_of(request, "$top", TOP)
    if not found:
        raise bad(f"$top is '0'; give 1 to {LARGEST_TOP}")
    return min(found, LARGEST_TOP)


def _is_descending(request: web.Request, names: tuple[str, ...]) -> bool:
    text = request.query.get("$orderby", names[0])
    match text.split():
        case [name] | [name, "asc" | "desc"] if name in names:
            return text.endswith(" desc")
    raise bad(f"$orderby is {shown(text)}; give {' or '.join(names)}, with asc or desc")


def _token_of(request: web.Request) -> Place | None:
    text = request.query.get("$skiptoken")
    place = None if text is None else parse_cursor(text)
    if text is not None and place is None:
        raise bad(f"$skiptoken is {shown(text)}; follow @iot.nextLink")
    return place


def _unknown(told: str) -> faults.SoapFault:
    return faults.SoapFault(told, status=404)
