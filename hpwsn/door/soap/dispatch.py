"""Spyne for dispatch and validation, the wire for reading and writing, and asyncio in between.

A Spyne application says which operations an address has and what their requests must hold; this module
runs one on an envelope that the wire has already parsed, awaits the operation, and turns every refusal
into the wire's faults.

What an operation answers when the journal cannot take its change, as on a full disk.

The standard has a fault of its own for most operations that fail; it comes with the status and the header
that say that the same request may succeed later. Operations without such a fault are Busy, as Notify is.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Any, Protocol

from lxml import etree
from spyne import Application, MethodContext, Service
from spyne.error import ResourceNotFoundError
from spyne.model.fault import Fault
from spyne.protocol.soap import Soap11
from spyne.server import ServerBase

from hpwsn.door.listener.http_exchange import BUSY, RETRY_AFTER
from hpwsn.errors import JournalUnavailable
from hpwsn_client.wsn.operations.messages import Message, parse_message
from hpwsn_client.wsn.soap import faults
from hpwsn_client.wsn.soap.envelope import Envelope
from hpwsn_client.wsn.soap.names import WSNT, br, rl, wsnt

_FAULTS: dict[str, type[faults.WsnFault]] = {
    wsnt("Subscribe"): faults.SubscribeCreationFailedFault,
    wsnt("Unsubscribe"): faults.UnableToDestroySubscriptionFault,
    wsnt("PauseSubscription"): faults.PauseFailedFault,
    wsnt("ResumeSubscription"): faults.ResumeFailedFault,
    wsnt("CreatePullPoint"): faults.UnableToCreatePullPointFault,
    wsnt("GetMessages"): faults.UnableToGetMessagesFault,
    wsnt("DestroyPullPoint"): faults.UnableToDestroyPullPointFault,
    br("RegisterPublisher"): faults.PublisherRegistrationFailedFault,
    br("DestroyRegistration"): faults.ResourceNotDestroyedFault,
    rl("Destroy"): faults.LifetimeResourceNotDestroyedFault,
    rl("SetTerminationTime"): faults.UnableToSetTerminationTimeFault,
}


def unavailable(operation: str, error: JournalUnavailable) -> faults.SoapFault:
    """The fault for a request, by its Clark name, that changed nothing and may be sent again."""
    reason = f"nothing was changed: {error}"
    kind = _FAULTS.get(operation)
    if kind is None:
        return faults.Busy(reason, retry_after=RETRY_AFTER)
    fault = kind(reason, code=faults.FaultCode.RECEIVER)
    fault.status = BUSY
    return fault


@dataclass(frozen=True, slots=True)
class Call:
    """One request on its way to an operation: the envelope, and the id in the address it was sent to."""

    envelope: Envelope
    resource: str
    gone: Callable[[], bool] = lambda: False
    """Whether the client has closed its connection, for operations that wait."""


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer in its final form, and whom to tell whether the client's connection has taken it."""

    body: bytes
    tell: Callable[[bool], Awaitable[None]] | None = None
    action: str | None = None
    """The wsa:Action of the answer, where it is not the standard's for the request."""


class Operations(Protocol):
    """What is asked of an address."""

    async def call(self, call: Call) -> Message | Answer | None:
        """Run the request; None for a one-way operation."""


class ParsedEnvelope(Soap11):
    """A Spyne protocol whose document is the wire's envelope, of either SOAP version."""

    def create_in_document(self, ctx: Any, charset: str | None = None) -> None:
        """Nothing to do: the wire has parsed it."""

    def decompose_incoming_envelope(self, ctx: Any, message: str = Soap11.REQUEST) -> None:
        """Point Spyne at the body's element, on which it dispatches."""
        ctx.in_header_doc = None
        ctx.in_body_doc = ctx.in_document
        ctx.method_request_string = ctx.in_body_doc.tag


class _Server(ServerBase):
    """The operations of one kind of address whose requests are in one namespace."""

    transport = "http://schemas.xmlsoap.org/soap/http"

    def __init__(self, name: str, namespace: str, services: list[type[Service]]) -> None:
        super().__init__(
            Application(
                services,
                tns=namespace,
                name=name,
                in_protocol=ParsedEnvelope(validator="soft"),
                out_protocol=Soap11(),
            )
        )


class Endpoint:
    """The operations of one kind of address.

    A Spyne application dispatches in one namespace: there is one for each that the services name in their
    attribute `namespace`, which is that of WS-BaseNotification where they do not.
    """

    def __init__(self, name: str, services: Iterable[type[Service]], context: object) -> None:
        by_namespace: dict[str, list[type[Service]]] = {}
        for service in services:
            by_namespace.setdefault(getattr(service, "namespace", WSNT), []).append(service)
        self._servers = {namespace: _Server(name, namespace, of) for namespace, of in by_namespace.items()}
        self._context = context

    @property
    def operations(self) -> frozenset[str]:
        """The Clark names of the requests that are answered here."""
        return frozenset(
            name for server in self._servers.values() for name in server.app.interface.service_method_map
        )

    async def call(self, call: Call) -> Message | Answer | None:
        """Dispatch, validate and run; None for a one-way operation."""
        body = call.envelope.body
        if body is None:
            raise faults.InvalidMessage("the SOAP Body is empty: it must hold one request element")
        server = self._servers.get(etree.QName(body).namespace or "")
        if server is None:
            raise self._unknown(body)
        try:
            ctx = _deserialized(server, body, self._context)
        except ResourceNotFoundError as error:
            raise self._unknown(body) from error
        except Fault as error:
            parse_message(body)  # The wire has better words, if it sees the same trouble.
            raise faults.InvalidMessage(f"{body.tag}: {error.faultstring}") from error
        try:
            result: Message | Answer | None = await ctx.function(ctx, call)
        except JournalUnavailable as error:
            raise unavailable(body.tag, error) from error
        return result

    def _unknown(self, body: etree._Element) -> faults.ActionNotSupported:
        names = sorted(name.rpartition("}")[2] for name in self.operations)
        return faults.ActionNotSupported(
            f"{body.tag} is no operation of this address; it has {', '.join(names)}"
        )


def _deserialized(server: _Server, body: etree._Element, context: object) -> Any:
    """Spyne's context of one call, its request validated."""
    ctx = MethodContext(server, MethodContext.SERVER)
    ctx.in_document = body
    ctx.udc = context
    protocol = server.app.in_protocol
    protocol.decompose_incoming_envelope(ctx)
    (ctx,) = protocol.generate_method_contexts(ctx)
    protocol.deserialize(ctx, protocol.REQUEST)
    return ctx
