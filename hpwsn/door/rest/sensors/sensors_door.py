"""The HTTP API for physical sensors: register, list, show and remove them, under /sensors.

A POST registers one sensor or an array of sensors, all or none; a registered sensor is replaced. The answer
is sent once the journal has them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any
from urllib.parse import quote

from aiohttp import web

from hpwsn.background import in_slices
from hpwsn.door.rest.json_answers import answer, answers_in_json, bad, check_names
from hpwsn.door.rest.json_requests import read_document
from hpwsn.http_json.list_pages import page_of_sorted
from hpwsn.sensors.physical.physical_sensor import PhysicalSensor, SensorRefused, parse_sensor
from hpwsn.sensors.physical.selection import Selection, parse_area
from hpwsn.sensors.physical.units import PintMissing
from hpwsn.sensors.registry.directory_sensors import ReadOnlySensor
from hpwsn.sensors.registry.sensor_registry import RegistryFull, SensorRegistry
from hpwsn.topics.directory.directory import TopicDirectoryError
from hpwsn_client.wsn.soap import faults
from hpwsn_client.wsn.topics.topic import shown

_ONE = "/sensors/{id}"


class SensorsDoor:
    """The request handlers for /sensors and /sensors/{id}; times are in seconds, sizes in bytes."""

    def __init__(self, registry: SensorRegistry, largest: int, patience: float) -> None:
        self._registry = registry
        self._largest = largest
        self._patience = patience

    def routes(self) -> list[web.RouteDef]:
        """Return the routes for the node's web application."""
        return [
            web.get("/sensors", self._list),
            web.post("/sensors", self._register),
            web.get(_ONE, self._show),
            web.delete(_ONE, self._remove),
        ]

    @answers_in_json
    async def _list(self, request: web.Request) -> web.StreamResponse:
        check_names(request, "limit", "after", "kind", "tag", "area")
        ids = await self._selected(selection_of(request))
        page, following = page_of_sorted(request, ids)
        sensors = map(self._registry.get, page)
        items = [self._registry.describe(sensor) for sensor in sensors if sensor is not None]
        return answer({"items": items, "next": following, "total": len(ids)}, 200)

    async def _selected(self, selection: Selection) -> Sequence[str]:
        ids = self._registry.ids(selection.kind)
        if not selection.tags and selection.area is None:
            return ids
        found: list[str] = []

        def look() -> Iterator[None]:
            for each in ids:
                sensor = self._registry.get(each)
                if sensor is not None and selection.selects(sensor):
                    found.append(each)
                yield

        await in_slices(look())
        return found

    @answers_in_json
    async def _register(self, request: web.Request) -> web.StreamResponse:
        check_names(request)
        document = await read_document(request, self._patience, self._largest)
        try:
            sensors = await _parse(document)
            await self._registry.put(sensors)
        except SensorRefused as error:
            raise bad(str(error)) from error
        except PintMissing as error:
            raise faults.SoapFault(str(error), status=501) from error
        except ReadOnlySensor as error:
            raise faults.SoapFault(str(error), status=403) from error
        except (RegistryFull, TopicDirectoryError) as error:
            return answer({"error": str(error)}, 503)
        if isinstance(document, list):
            return answer({"registered": len({sensor.id for sensor in sensors})}, 201)
        response = answer(self._registry.describe(sensors[0]), 201)
        response.headers["Location"] = f"/sensors/{quote(sensors[0].id)}"
        return response

    @answers_in_json
    async def _show(self, request: web.Request) -> web.StreamResponse:
        check_names(request)
        sensor = self._registry.get(request.match_info["id"])
        return _unknown(request) if sensor is None else answer(self._registry.describe(sensor), 200)

    @answers_in_json
    async def _remove(self, request: web.Request) -> web.StreamResponse:
        check_names(request)
        try:
            if not await self._registry.remove(request.match_info["id"]):
                return _unknown(request)
        except ReadOnlySensor as error:
            raise faults.SoapFault(str(error), status=403) from error
        except TopicDirectoryError as error:
            return answer({"error": str(error)}, 503)
        return web.Response(status=204)


def selection_of(request: web.Request) -> Selection:
    """The sensors that the parameters `kind`, `tag` (several: all of them) and `area` choose."""
    area = request.query.get("area")
    try:
        return Selection(
            kind=request.query.get("kind"),
            tags=tuple(request.query.getall("tag", [])),
            area=None if area is None else parse_area(area),
        )
    except SensorRefused as error:
        raise bad(str(error)) from error


async def _parse(document: Any) -> list[PhysicalSensor]:
    """The sensors of a request; SensorRefused says which one is wrong."""
    if not isinstance(document, list):
        return [parse_sensor(document)]
    if not document:
        raise SensorRefused("the array is empty; send at least one sensor")
    found: list[PhysicalSensor] = []

    def parse() -> Iterator[None]:
        for place, each in enumerate(document):
            try:
                found.append(parse_sensor(each))
            except SensorRefused as error:
                raise SensorRefused(f"the sensor at index {place} of the array: {error}") from error
            yield

    await in_slices(parse())
    return found


def _unknown(request: web.Request) -> web.Response:
    known = f"there is no sensor {shown(request.match_info['id'])}; GET /sensors lists them"
    return answer({"error": known}, 404)
