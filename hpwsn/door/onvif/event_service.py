"""The ONVIF door: the event service at `/onvif/events`, and the device service through which clients find it.

It authenticates requests and finds the subscription of a request: by the path, or by wsa:To if a client
sends all requests to one address. It calls the same broker as the other doors. ONVIF Core Specification,
sections 8 and 9.
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
from hpwsn.door.soap.soap_door import UNDERSTOOD, SoapDoor, describe
from hpwsn.settings import Config
from hpwsn_client.wsn.formats.onvif import GetServiceCapabilitiesResponse
from hpwsn_client.wsn.operations.messages import Message
from hpwsn_client.wsn.soap.names import tev
from hpwsn_client.wsn.soap.wsse import SECURITY

_SUBSCRIPTION_PATHS = ("/onvif/subscriptions/", "/wsn/subscriptions/")
_WITHOUT_AUTHENTICATION = PRE_AUTHORISED | {tev("GetServiceCapabilities")}


class OnvifDoor:
    """The request handlers for the paths under /onvif."""

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
        authenticated = _Authenticated(operations, self._credentials, self._broker.clock)
        return await self._soap.handle(request, authenticated, UNDERSTOOD | {SECURITY})

    async def _describe(self, request: web.Request) -> web.Response:
        return describe(
            request,
            lambda: onvif_wsdl(self._broker.base_url()),
            "This is an ONVIF event service: POST SOAP here; its contract is at ?wsdl",
        )

    async def _close(self, app: web.Application) -> None:
        await self._pulls.close()


class _Authenticated:
    """Operations that check the credentials of a request and find its subscription before they run."""

    def __init__(self, operations: Operations, credentials: Credentials, clock: Callable[[], float]) -> None:
        self._operations = operations
        self._credentials = credentials
        self._clock = clock

    async def call(self, call: Call) -> Message | Answer | None:
        """Run an operation; raise the fault of ONVIF if the credentials are wrong."""
        body = call.envelope.body
        if body is None or body.tag not in _WITHOUT_AUTHENTICATION:
            self._credentials.check(call.envelope, self._clock())
        return await self._operations.call(replace(call, resource=call.resource or _subscription_id(call)))


def _subscription_id(call: Call) -> str:
    """Return the id in wsa:To; empty without one."""
    to = call.envelope.addressing.to or ""
    return next((to.partition(path)[2] for path in _SUBSCRIPTION_PATHS if path in to), "")
