"""The HTTP API for registered publishers: list, show and end them, under /registrations."""

from __future__ import annotations

from typing import Any

from aiohttp import web

from hpwsn.broker.broker import Broker
from hpwsn.broker.registrations.registered_publisher import Registration
from hpwsn.door.rest.json_answers import answer, answers_in_json, check_names, moment
from hpwsn.http_json.list_pages import page_of
from hpwsn_client.wsn.soap.faults import ResourceUnknownFault, SoapFault


class RegistrationsDoor:
    """The request handlers for the paths under /registrations."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    def routes(self) -> list[web.RouteDef]:
        """Return the routes for the node's web application."""
        return [
            web.get("/registrations", self._registrations),
            web.get("/registrations/{id}", self._registration),
            web.delete("/registrations/{id}", self._end_registration),
        ]

    @answers_in_json
    async def _registrations(self, request: web.Request) -> web.Response:
        check_names(request, "limit", "after")
        live = {registration.id: registration for registration in self._broker.registrations}
        page, following = page_of(request, live)
        found = [self._describe_registration(live[id_]) for id_ in page]
        return answer({"items": found, "next": following, "total": len(live)}, 200)

    @answers_in_json
    async def _registration(self, request: web.Request) -> web.Response:
        check_names(request)
        try:
            registration = self._broker.registrations.get(request.match_info["id"])
        except ResourceUnknownFault as fault:
            raise SoapFault(fault.description, status=404) from None
        return answer(self._describe_registration(registration), 200)

    @answers_in_json
    async def _end_registration(self, request: web.Request) -> web.Response:
        check_names(request)
        try:
            await self._broker.registrations.destroy(request.match_info["id"])
        except ResourceUnknownFault as fault:
            raise SoapFault(fault.description, status=404) from None
        return web.Response(status=204)

    def _describe_registration(self, registration: Registration) -> dict[str, Any]:
        publisher = registration.request.publisher
        return {
            "id": registration.id,
            "reference": registration.address,
            "publisher": publisher and publisher.address,
            "topics": [expression.text for expression in registration.topics],
            "demand": registration.demand,
            "created": moment(registration.created),
            "terminates": moment(registration.terminates),
            "upstream": self._broker.demand.describe(registration),
        }
