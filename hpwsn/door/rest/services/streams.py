"""The HTTP API for stream services, under /streams.

A job registers its service and reports its figures (PUT); operators list and remove services. If the node has
a service agent, clients start services with their definitions (POST) and stop them (DELETE). The events of a
service are read as those of its topic. A registration is on disk before the answer is sent, and only one
write runs at a time. A heartbeat that changes only figures is not written. An error is a JSON object with
`error`, for a definition also with `problems`.
"""

from __future__ import annotations

import asyncio
import json
from typing import Any
from urllib.parse import quote

from aiohttp import web

from hpwsn.door.rest.authorization import Accepts, reads_internal
from hpwsn.door.rest.events.events_door import EventsDoor
from hpwsn.door.rest.json_answers import answer, answers_in_json, check_names
from hpwsn.door.rest.services.service_requests import ServiceRequests
from hpwsn.http_json.list_pages import page_of
from hpwsn.streams.agent.definition_check import CheckFailed
from hpwsn.streams.agent.posted_definition import MAX_DEFINITION
from hpwsn.streams.agent.posted_services import PostedServices
from hpwsn.streams.agent.service_agent import AgentClosed, ServiceExists, TooManyServices
from hpwsn.streams.definition.problems import DefinitionError
from hpwsn.streams.registry.known_services import AlreadyRunning, RegistryFull, Services
from hpwsn.streams.registry.service import ServiceRefused
from hpwsn_client.wsn.soap import faults
from hpwsn_client.wsn.topics.topic_expressions import Topic

LARGEST_REGISTRATION = 1 << 20
"""The most bytes of a registration."""
NO_AGENT = (
    "this node does not run services for clients; set streams.agent = true, or run the definition with"
    " `hpwsn streams run`"
)
_ONE = "/streams/{uri:[^/]+}"


class StreamsDoor:
    """The request handlers for the paths under /streams; without an agent the node runs no services."""

    def __init__(
        self,
        services: Services,
        posted: PostedServices,
        events: EventsDoor,
        requests: ServiceRequests,
        *,
        accepts_token: Accepts,
        request_timeout: float,
    ) -> None:
        self._services = services
        self._posted = posted
        self._agent = posted.agent
        self._events = events
        self._requests = requests
        self._accepts_token = accepts_token
        self._request_timeout = request_timeout

    def routes(self) -> list[web.RouteDef]:
        """Return the routes for the node's web application."""
        return [
            web.get("/streams", self._list),
            web.post("/streams", self._start),
            web.get(_ONE, self._show),
            web.put(_ONE, self._register),
            web.delete(_ONE, self._remove),
            web.get(f"{_ONE}/events", self._read, allow_head=False),
            web.head(f"{_ONE}/events", self._read),
        ]

    @answers_in_json
    async def _list(self, request: web.Request) -> web.StreamResponse:
        check_names(request, "limit", "after")
        uris = {*self._services.uris(), *(self._agent or ())}
        found, following = page_of(request, uris)
        items = [one for uri in found if (one := self._describe(uri)) is not None]
        return web.json_response({"items": items, "next": following, "total": len(uris)})

    @answers_in_json
    async def _show(self, request: web.Request) -> web.StreamResponse:
        uri = request.match_info["uri"]
        with_token = reads_internal(request, self._accepts_token)
        found = self._describe(uri)
        if found is None:
            return _unknown(request)
        topic = Topic.parse(found["topic"])
        plan = self._services.plan(uri)
        details: dict[str, Any] = {"plan": plan, "reason": None, "log": [], "log_note": None}
        if self._agent is not None and uri in self._agent:
            details = await self._agent.details(uri, with_token)
        return web.json_response({**found, **details, "requests": self._requests.describe(topic)})

    def _describe(self, uri: str) -> dict[str, Any] | None:
        """A service as its job has registered it, and as the agent knows it; None if it is unknown."""
        found = self._services.describe(uri)
        if self._agent is not None and uri in self._agent:
            known = self._agent.summary(uri)
            found = {
                **{"instance": "", "since": known["created"], "seen": known["created"], "figures": {}},
                **(found or {}),
                **known,
            }
        if found is None:
            return None
        lag = found["figures"].get("lag")
        return {"uri": uri, "state": found["state"], "pid": None, "restarts": 0, "lag": lag, **found}

    @answers_in_json
    async def _start(self, request: web.Request) -> web.StreamResponse:
        """Start the service of a definition."""
        if self._agent is None:
            return answer({"error": NO_AGENT}, 403)
        try:
            with_token = reads_internal(request, self._accepts_token)
            service = await self._posted.start(self._agent, await self._definition(request), with_token)
        except DefinitionError as error:
            problems = [
                {"line": one.place.line, "part": one.part, "attribute": one.attribute, "message": one.message}
                for one in error.problems
            ]
            return answer({"error": str(error), "problems": problems}, 400)
        except (ServiceExists, AlreadyRunning) as error:
            return answer({"error": str(error)}, 409)
        except (TooManyServices, RegistryFull, CheckFailed) as error:
            return answer({"error": str(error)}, 503)
        except ServiceRefused as error:
            return answer({"error": str(error)}, 400)
        response = answer({"uri": service.uri}, 201)
        response.headers["Location"] = f"/streams/{quote(service.uri, safe=':')}"
        return response

    async def _definition(self, request: web.Request) -> str:
        """The text of a posted definition, whatever its content type."""
        too_large = f"the definition is larger than {MAX_DEFINITION} bytes"
        if (request.content_length or 0) > MAX_DEFINITION:
            raise faults.TooLarge(too_large)
        body = bytearray()
        try:
            async with asyncio.timeout(self._request_timeout):
                async for chunk in request.content.iter_chunked(1 << 16):
                    body += chunk
                    if len(body) > MAX_DEFINITION:
                        raise faults.TooLarge(too_large)
            return body.decode("utf-8")
        except TimeoutError as error:
            reason = f"the definition did not arrive within {self._request_timeout:g} s"
            raise faults.SoapFault(reason, status=408) from error
        except UnicodeDecodeError as error:
            raise faults.SoapFault(f"the definition is not UTF-8 text: {error}", status=400) from error

    @answers_in_json
    async def _register(self, request: web.Request) -> web.StreamResponse:
        uri = request.match_info["uri"]
        if (request.content_length or 0) > LARGEST_REGISTRATION:
            size = request.content_length
            return _error(
                f"the registration has {size} bytes; at most {LARGEST_REGISTRATION} are accepted", 413
            )
        try:
            changed = self._services.register(uri, json.loads(await request.read()))
        except AlreadyRunning as error:
            return _error(str(error), 409)
        except ServiceRefused as error:
            return _error(str(error), 400)
        except (ValueError, RecursionError) as error:
            return _error(f"the registration is not JSON: {error}; send a JSON object", 400)
        if changed:
            await self._posted.save()
        return web.json_response(self._describe(uri))

    @answers_in_json
    async def _remove(self, request: web.Request) -> web.StreamResponse:
        """Forget a service; stop its job first, if the node runs it."""
        uri = request.match_info["uri"]
        try:
            known = await self._posted.remove(uri)
        except AgentClosed as error:
            raise faults.Busy(str(error)) from error
        if not known:
            return _unknown(request)
        return web.Response(status=204)

    async def _read(self, request: web.Request) -> web.StreamResponse:
        """The events of a service, in every form in which those of its topic are read."""
        uri = request.match_info["uri"]
        known = self._describe(uri)
        return _unknown(request) if known is None else await self._events.read_topic(request, known["topic"])


def _unknown(request: web.Request) -> web.Response:
    return _error(f"there is no service {request.match_info['uri']!r}; GET /streams lists them", 404)


def _error(message: str, status: int) -> web.Response:
    return web.json_response({"error": message}, status=status)
