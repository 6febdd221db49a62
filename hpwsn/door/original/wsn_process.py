"""The door for clients of the original HPwsn, at `POST /wsn/process`; its WSDL is at `GET /wsn/process?wsdl`.

It accepts the four WsnProcess messages of the original, calls the same broker as the other doors, and
returns the standard's answers in a WsnProcess wrapper: to an element an element, to a string a string. It
accepts SOAP 1.1 only, which is all that these clients use. The fragments of a split message are reassembled
before the message is published; if one is missing after the reassembly timeout, all fragments are dropped,
and nothing is stored.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import UTC, datetime

from aiohttp import web

from hpwsn.background import in_thread
from hpwsn.broker.admission.admission import Source
from hpwsn.contracts import process_wsdl
from hpwsn.door.original.push_endpoints import PushEndpoints
from hpwsn.door.soap.dispatch import Answer, Call
from hpwsn.door.soap.operation import Context, message_id, receipt_to, routing, traces
from hpwsn.door.soap.owner_proxy import OwnerProxy
from hpwsn.door.soap.soap_door import SoapDoor, describe
from hpwsn.notification import PARTIAL
from hpwsn.routing.wire.fragments import CompleteMessage, Reassembly
from hpwsn.routing.wire.original_fragments import complete_message, fragment_of
from hpwsn.settings import RoutingSettings
from hpwsn_client.wsn.formats.original import (
    RESPONSE_ACTION,
    CreateEndpoint,
    EndSubscription,
    PackedNotification,
    Request,
    SubscribeEndpoint,
    encode_response,
    encode_string_response,
    is_string,
    parse_process,
)
from hpwsn_client.wsn.operations import messages as wsn
from hpwsn_client.wsn.operations.notifications import NotificationMessage
from hpwsn_client.wsn.soap import faults
from hpwsn_client.wsn.soap.addressing import EndpointReference
from hpwsn_client.wsn.soap.envelope import Envelope, SoapVersion

_SOURCE = Source(door="original")


class OriginalDoor:
    """The request handler for /wsn/process."""

    def __init__(
        self,
        soap: SoapDoor,
        context: Context,
        settings: RoutingSettings,
        owner_proxy: OwnerProxy | None = None,
    ) -> None:
        self._owner_proxy = owner_proxy
        self._soap = soap
        self._context = context
        self._endpoints = PushEndpoints(context.broker)
        self._reassembly = Reassembly(
            timeout=settings.reassembly_timeout,
            max_bytes=settings.reassembly_bytes,
            max_messages=settings.reassembly_messages,
        )

    def routes(self) -> list[web.RouteDef]:
        """Return the routes for the node's web application."""
        return [web.post("/wsn/process", self._process), web.get("/wsn/process", self._describe)]

    async def _describe(self, request: web.Request) -> web.Response:
        return describe(
            request,
            lambda: process_wsdl(self._context.broker.base_url()),
            "This is WsnProcess of the original HPwsn: POST SOAP 1.1 here; its contract is at ?wsdl",
        )

    async def _process(self, request: web.Request) -> web.StreamResponse:
        return await self._soap.handle(request, self)

    async def call(self, call: Call) -> Answer | None:
        """Run one of the four requests; None for a notification sent as an element: its answer is the 202."""
        envelope = call.envelope
        _refuse_soap_12(envelope)
        if envelope.body is None:
            raise faults.InvalidMessage("the SOAP Body is empty; send a WsnProcess element")
        arguments = envelope.body, envelope.addressing.to, self._context.limits
        request = await in_thread(parse_process, *arguments) if call.large else parse_process(*arguments)
        answer = None
        if isinstance(request, PackedNotification):
            await self._publish(request, call)
        else:
            answer = await self._run(request)
        if is_string(envelope.body):
            return Answer(encode_string_response(answer), action=RESPONSE_ACTION)
        return None if answer is None else Answer(encode_response(answer), action=RESPONSE_ACTION)

    async def _run(self, request: Request) -> wsn.Message:
        if isinstance(request, CreateEndpoint):
            return wsn.CreatePullPointResponse(EndpointReference(await self._endpoints.create(request.name)))
        if isinstance(request, SubscribeEndpoint):
            return await self._subscribe(request)
        assert isinstance(request, EndSubscription)
        if self._owner_proxy is None or not await self._owner_proxy.unsubscribe(request.address):
            await self._endpoints.unsubscribe(request.address)
        return wsn.UnsubscribeResponse()

    async def _subscribe(self, request: SubscribeEndpoint) -> wsn.SubscribeResponse:
        subscription = await self._endpoints.subscribe(request)
        terminates = subscription.terminates
        return wsn.SubscribeResponse(
            EndpointReference(subscription.address),
            self._context.broker.now(),
            None if terminates is None else datetime.fromtimestamp(terminates, UTC),
        )

    async def _publish(self, request: PackedNotification, call: Call) -> None:
        envelope = call.envelope
        flags = routing(envelope)
        message: NotificationMessage | None = request.message
        if request.package is not None:
            flags |= PARTIAL * request.package.partial
            if request.package.split:
                message = self._reassemble(request)
        if message is not None:
            broker = self._context.broker
            messages = broker.ask_for_receipts([message], receipt_to(envelope))
            await broker.admission.publish(
                messages,
                source=_SOURCE,
                message_id=message_id(envelope),
                routing=flags,
                traces=traces(call, 1),
            )

    def _reassemble(self, request: PackedNotification) -> NotificationMessage | None:
        """Add a fragment; return the message if it is complete now."""
        # Without `partial`, so that the reassembly returns complete messages only.
        fragment = replace(fragment_of(request), partial=False)
        topic = request.message.topic
        now = asyncio.get_running_loop().time()
        found = self._reassembly.add(None if topic is None else topic.topic, fragment, now)
        if not isinstance(found, CompleteMessage):
            return None
        if len(found.content) > self._context.limits.body:
            raise faults.TooLarge(
                f"the reassembled message has {len(found.content)} bytes;"
                f" at most {self._context.limits.body} are accepted (server.body_limit)"
            )
        return complete_message(request.message, found.content, self._context.limits)


def _refuse_soap_12(envelope: Envelope) -> None:
    if envelope.version is not SoapVersion.SOAP11:
        fault = faults.NotSoap(
            "this address accepts SOAP 1.1 only; for SOAP 1.2 use /wsn",
            code=faults.FaultCode.VERSION_MISMATCH,
        )
        fault.version = SoapVersion.SOAP11
        raise fault
