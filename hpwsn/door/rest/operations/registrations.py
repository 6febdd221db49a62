"""The HTTP API for registered publishers: list, show and end them, under /registrations."""

from __future__ import annotations

from typing import Any

from aiohttp import web

from hpwsn.broker.broker import Broker
from hpwsn.broker.registrations.registered_publisher import Registration
from hpwsn.door.rest.json_answers import moment
from hpwsn_client.wsn.soap.faults import ResourceUnknownFault


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

    async def _registrations(self, request: web.Request) -> web.Response:
        found = [self._describe_registration(each) for each in self._broker.registrations]
        return web.json_response({"registrations": found})

    async def _registration(self, request: web.Request) -> web.Response:
        try:
            registration = self._broker.registrations.get(request.match_info["id"])
        except ResourceUnknownFault as fault:
            return web.json_response({"error": fault.description}, status=404)
        return web.json_response(self._describe_registration(registration))

    async def _end_registration(self, request: web.Request) -> web.Response:
        try:
            await self._broker.registrations.destroy(request.match_info["id"])
        except ResourceUnknownFault as fault:
            return web.json_response({"error": fault.description}, status=404)
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
