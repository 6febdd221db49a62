"""The ONVIF door: an event service at `/onvif/events` for clients of cameras, and what leads them there.

Owns the addresses, who may use them, and where a request is meant for: a subscription by the path, or by
wsa:To where a client sends everything to the one address it knows. Behind it is the same broker as behind
all other doors. ONVIF Core Specification, sections 8 and 9.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from aiohttp import web

from hpwsn.contracts import onvif_wsdl
from hpwsn.door.onvif.device import PRE_AUTHORISED, DeviceService
from hpwsn.door.onvif.event_operations import OnvifContext, endpoints
from hpwsn.door.onvif.pull_subscriptions import PullSubscriptions
from hpwsn.door.onvif.username_tokens import Credentials
from hpwsn.door.soap.dispatch import Answer, Call, Operations
from hpwsn.door.soap.operation import Context
from hpwsn.door.soap.soap_door import UNDERSTOOD, SoapDoor
from hpwsn.settings import Config
from hpwsn_client.wsn.formats.onvif import GetServiceCapabilitiesResponse
from hpwsn_client.wsn.operations.messages import Message
from hpwsn_client.wsn.soap.names import tev
from hpwsn_client.wsn.soap.wsse import SECURITY

_PLACES = ("/onvif/subscriptions/", "/wsn/subscriptions/")
_OPEN = PRE_AUTHORISED | {tev("GetServiceCapabilities")}


class OnvifDoor:
    """The addresses under /onvif."""

    def __init__(self, soap: SoapDoor, context: Context, config: Config, pulls: PullSubscriptions) -> None:
        broker = context.broker
        self._soap = soap
        self._broker = broker
        self._pulls = pulls
        self._credentials = Credentials.load(config.onvif.users_file, config.onvif.token_window)
        capabilities = GetServiceCapabilitiesResponse(
            policies=True,
            pull_points=True,
            pausable=True,
            max_producers=config.subscriptions.limit,
            max_pull_points=config.pull_points.limit,
        )
        self._endpoints = endpoints(
            OnvifContext(broker, context.limits, self._pulls, config.onvif, capabilities)
        )
        self._device = DeviceService(broker.base_url, broker.now, capabilities)

    def join(self, app: web.Application) -> None:
        """Add the routes, and end the waits when the application ends."""
        app.add_routes(
            [
                web.post("/onvif/events", self._events),
                web.get("/onvif/events", self._describe),
                web.post("/onvif/subscriptions/{id}", self._subscription),
                web.post("/onvif/device_service", self._device_service),
            ]
        )
        app.on_shutdown.append(self._close)

    async def _events(self, request: web.Request) -> web.StreamResponse:
        return await self._handle(request, self._endpoints["events"])

    async def _subscription(self, request: web.Request) -> web.StreamResponse:
        return await self._handle(request, self._endpoints["subscriptions"])

    async def _device_service(self, request: web.Request) -> web.StreamResponse:
        return await self._handle(request, self._device)

    async def _handle(self, request: web.Request, operations: Operations) -> web.StreamResponse:
        checked = _Checked(operations, self._credentials, self._broker.clock)
        return await self._soap.handle(request, checked, UNDERSTOOD | {SECURITY})

    async def _describe(self, request: web.Request) -> web.Response:
        if "wsdl" in {name.lower() for name in request.query}:
            wsdl = onvif_wsdl(self._broker.base_url())
            return web.Response(body=wsdl, content_type="text/xml", charset="utf-8")
        return web.Response(
            status=405,
            headers={"Allow": "POST"},
            text="This is an ONVIF event service: POST SOAP here; its contract is at ?wsdl\n",
        )

    async def _close(self, app: web.Application) -> None:
        await self._pulls.close()


class _Checked:
    """Operations for those who may use them, each with the subscription that its request is meant for."""

    def __init__(self, operations: Operations, credentials: Credentials, clock: Callable[[], float]) -> None:
        self._operations = operations
        self._credentials = credentials
        self._clock = clock

    async def call(self, call: Call) -> Message | Answer | None:
        """Refuse, or run."""
        body = call.envelope.body
        if body is None or body.tag not in _OPEN:
            self._credentials.check(call.envelope, self._clock())
        return await self._operations.call(replace(call, resource=call.resource or _meant(call)))


def _meant(call: Call) -> str:
    to = call.envelope.addressing.to or ""
    return next((to.partition(place)[2] for place in _PLACES if place in to), "")
