"""Dispatch of SOAP requests to operations, with Spyne.

A Spyne application lists the operations of an address and validates their requests. This module runs one
operation on an envelope that hpwsn_client.wsn has parsed, and turns every error of Spyne into a SOAP fault.
When the journal cannot store a change, for example on a full disk, the answer is the standard's fault for the
operation, or Busy if the operation has none. Only this module and `contract` import Spyne.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Any, Protocol

from lxml import etree
from spyne import Application, MethodContext, Service, rpc
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
from hpwsn_client.wsn.soap.wrong_namespace import namespace_hint


@dataclass(frozen=True, slots=True)
class Call:
    """A request for an operation: its envelope, and the resource id in the path (empty without one)."""

    envelope: Envelope
    resource: str
    client_gone: Callable[[], bool] = lambda: False
    """Returns whether the client has closed its connection; for operations that wait."""
    large: bool = False
    """Whether the request is so large that a thread must work on it."""
    trace: str | None = None
    """The trace in the HTTP headers; None without one."""


@dataclass(frozen=True, slots=True)
class Answer:
    """An encoded answer."""

    body: bytes
    report_delivery: Callable[[bool], Awaitable[None]] | None = None
    """Called once with whether the answer was written to the client's connection."""
    action: str | None = None
    """The wsa:Action of the answer; None for the action that the standard gives the response."""
    headers: tuple[bytes, ...] = ()
    """SOAP headers beside those of WS-Addressing."""


class Operations(Protocol):
    """The operations of an address."""

    async def call(self, call: Call) -> Message | Answer | None:
        """Run the request, and return its answer; None for a one-way operation."""


class OperationGroup(Service):
    """A Spyne service: operations whose requests are in one namespace."""

    namespace = WSNT


def operation(model: type, name: str | None = None) -> Any:
    """Declare an operation for requests of a model; `name` is the request's, if it is not the model's."""
    return rpc(model, _returns=None, _body_style="bare", _in_message_name=name or model.__name__)


class ParsedEnvelope(Soap11):
    """A Spyne protocol for envelopes that are already parsed, of both SOAP versions."""

    def create_in_document(self, ctx: Any, charset: str | None = None) -> None:
        """Do nothing: the envelope is parsed already."""

    def decompose_incoming_envelope(self, ctx: Any, message: str = Soap11.REQUEST) -> None:
        """Give Spyne the element in the Body, which selects the operation."""
        ctx.in_header_doc = None
        ctx.in_body_doc = ctx.in_document
        ctx.method_request_string = ctx.in_body_doc.tag


class _Server(ServerBase):
    """A Spyne application: the operations of an address whose requests are in one namespace."""

    transport = "http://schemas.xmlsoap.org/soap/http"

    def __init__(self, name: str, namespace: str, groups: list[type[OperationGroup]]) -> None:
        super().__init__(
            Application(
                groups,
                tns=namespace,
                name=name,
                in_protocol=ParsedEnvelope(validator="soft"),
                out_protocol=Soap11(),
            )
        )


class Endpoint:
    """The operations of one kind of address.

    A Spyne application dispatches in one namespace, so that each namespace of the groups has an application.
    """

    def __init__(self, name: str, groups: Iterable[type[OperationGroup]], context: object) -> None:
        by_namespace: dict[str, list[type[OperationGroup]]] = {}
        for group in groups:
            by_namespace.setdefault(group.namespace, []).append(group)
        self._servers = {
            namespace: _Server(name, namespace, members) for namespace, members in by_namespace.items()
        }
        self._context = context

    @property
    def operations(self) -> frozenset[str]:
        """The Clark names of the requests that this endpoint accepts."""
        return frozenset(
            name for server in self._servers.values() for name in server.app.interface.service_method_map
        )

    async def call(self, call: Call) -> Message | Answer | None:
        """Validate the request and run its operation; the result is None for a one-way operation."""
        body = call.envelope.body
        if body is None:
            raise faults.InvalidMessage("the SOAP Body is empty; send one request element")
        server = self._servers.get(etree.QName(body).namespace or "")
        if server is None:
            raise self._unknown(body)
        try:
            ctx = _validated_context(server, body, self._context)
        except ResourceNotFoundError as error:
            raise self._unknown(body) from error
        except Fault as error:
            parse_message(body)  # If this finds the same error, it raises a fault with a better text.
            raise faults.InvalidMessage(f"{body.tag}: {error.faultstring}") from error
        try:
            result: Message | Answer | None = await ctx.function(ctx, call)
        except JournalUnavailable as error:
            raise _journal_fault(body.tag, error) from error
        return result

    def _unknown(self, body: etree._Element) -> faults.ActionNotSupported:
        names = sorted(name.rpartition("}")[2] for name in self.operations)
        return faults.ActionNotSupported(
            f"{body.tag} is not an operation of this address; it has {', '.join(names)}"
            f"{namespace_hint((body,), self.operations)}"
        )


def _validated_context(server: _Server, body: etree._Element, context: object) -> Any:
    """Validate a request; return Spyne's context for the call."""
    ctx = MethodContext(server, MethodContext.SERVER)
    ctx.in_document = body
    ctx.udc = context
    protocol = server.app.in_protocol
    protocol.decompose_incoming_envelope(ctx)
    (ctx,) = protocol.generate_method_contexts(ctx)
    protocol.deserialize(ctx, protocol.REQUEST)
    return ctx


_JOURNAL_FAULTS: dict[str, type[faults.WsnFault]] = {
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
"""The standard's fault for an operation that failed, by the Clark name of the request."""


def _journal_fault(operation: str, error: JournalUnavailable) -> faults.SoapFault:
    """Return the fault for a request whose change the journal did not store; the client may repeat it."""
    reason = f"nothing was changed: {error}"
    fault_class = _JOURNAL_FAULTS.get(operation)
    if fault_class is None:
        return faults.Busy(reason, retry_after=RETRY_AFTER)
    fault = fault_class(reason, code=faults.FaultCode.RECEIVER)
    fault.status = BUSY
    return fault
