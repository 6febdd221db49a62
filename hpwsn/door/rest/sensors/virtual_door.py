"""The HTTP API for virtual sensors: define, list, show and remove them, under /virtual.

A PUT defines one, or replaces its definition; the answer is sent once the journal has it. A virtual sensor
runs only while somebody uses its topic, so that a definition starts nothing by itself.
"""

from __future__ import annotations

from urllib.parse import quote

from aiohttp import web

from hpwsn.door.rest.json_answers import answer, answers_in_json, bad, check_names
from hpwsn.door.rest.json_requests import read_object
from hpwsn.http_json.list_pages import page_of
from hpwsn.sensors.physical.physical_sensor import SensorRefused
from hpwsn.sensors.templates.template import FIELDS, parse_template
from hpwsn.sensors.virtual.definitions import TooManyDefinitions
from hpwsn.sensors.virtual.virtual_sensors import VirtualSensors
from hpwsn_client.wsn.topics.topic import shown

STATES = ("running", "idle")
_ONE = "/virtual/{name}"


class VirtualDoor:
    """The request handlers for /virtual and /virtual/{name}; `patience` is in seconds."""

    def __init__(self, sensors: VirtualSensors, patience: float) -> None:
        self._sensors = sensors
        self._patience = patience

    def routes(self) -> list[web.RouteDef]:
        """Return the routes for the node's web application."""
        return [
            web.get("/virtual", self._list),
            web.put(_ONE, self._define),
            web.get(_ONE, self._show),
            web.delete(_ONE, self._remove),
        ]

    @answers_in_json
    async def _list(self, request: web.Request) -> web.StreamResponse:
        check_names(request, "limit", "after", "state")
        names = [template.name for template in self._sensors]
        state = request.query.get("state")
        if state is not None:
            if state not in STATES:
                raise bad(f"state is {shown(state)}; give {' or '.join(STATES)}")
            running = self._sensors.running.names
            names = [name for name in names if (name in running) == (state == "running")]
        page, following = page_of(request, names)
        templates = map(self._sensors.get, page)
        items = [self._sensors.describe(each) for each in templates if each is not None]
        return answer({"items": items, "next": following, "total": len(names)}, 200)

    @answers_in_json
    async def _define(self, request: web.Request) -> web.StreamResponse:
        check_names(request)
        name = request.match_info["name"]
        document = await read_object(request, self._patience, "name", *FIELDS)
        is_new = self._sensors.get(name) is None
        try:
            template = parse_template(name, document)
            await self._sensors.put([template])
        except SensorRefused as error:
            raise bad(str(error)) from error
        except TooManyDefinitions as error:
            return answer({"error": str(error)}, 503)
        response = answer(self._sensors.describe(template), 201 if is_new else 200)
        response.headers["Location"] = f"/virtual/{quote(name)}"
        return response

    @answers_in_json
    async def _show(self, request: web.Request) -> web.StreamResponse:
        check_names(request)
        template = self._sensors.get(request.match_info["name"])
        return _unknown(request) if template is None else answer(self._sensors.describe(template), 200)

    @answers_in_json
    async def _remove(self, request: web.Request) -> web.StreamResponse:
        check_names(request)
        if not await self._sensors.remove(request.match_info["name"]):
            return _unknown(request)
        return web.Response(status=204)


def _unknown(request: web.Request) -> web.Response:
    known = f"there is no virtual sensor {shown(request.match_info['name'])}; GET /virtual lists them"
    return answer({"error": known}, 404)
