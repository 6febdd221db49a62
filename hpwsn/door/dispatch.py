"""Spyne for dispatch and validation, the wire for reading and writing, and asyncio in between.

A Spyne application says which operations an address has and what their requests must hold; this module runs
one on an envelope that the wire has already parsed, awaits the operation, and turns every refusal into the
wire's faults.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Any, Protocol

from spyne import Application, MethodContext, Service
from spyne.error import ResourceNotFoundError
from spyne.model.fault import Fault
from spyne.protocol.soap import Soap11
from spyne.server import ServerBase

from hpwsn_client.wsn import faults
from hpwsn_client.wsn.messages import Message, parse_message
from hpwsn_client.wsn.names import WSNT
from hpwsn_client.wsn.soap import Envelope


@dataclass(frozen=True, slots=True)
class Call:
    """One request on its way to an operation: the envelope, and the id in the address it was sent to."""

    envelope: Envelope
    resource: str


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


class Endpoint(ServerBase):
    """The operations of one kind of address."""

    transport = "http://schemas.xmlsoap.org/soap/http"

    def __init__(self, name: str, services: Iterable[type[Service]], context: object) -> None:
        super().__init__(
            Application(
                list(services),
                tns=WSNT,
                name=name,
                in_protocol=ParsedEnvelope(validator="soft"),
                out_protocol=Soap11(),
            )
        )
        self._context = context

    @property
    def operations(self) -> frozenset[str]:
        """The Clark names of the requests that are answered here."""
        return frozenset(self.app.interface.service_method_map)

    async def call(self, call: Call) -> Message | Answer | None:
        """Dispatch, validate and run; None for a one-way operation."""
        body = call.envelope.body
        if body is None:
            raise faults.InvalidMessage("the SOAP Body is empty: it must hold one request element")
        ctx = MethodContext(self, MethodContext.SERVER)
        ctx.in_document = body
        ctx.udc = self._context
        try:
            self.app.in_protocol.decompose_incoming_envelope(ctx)
            (ctx,) = self.app.in_protocol.generate_method_contexts(ctx)
            self.app.in_protocol.deserialize(ctx, self.app.in_protocol.REQUEST)
        except ResourceNotFoundError as error:
            raise faults.ActionNotSupported(
                f"{body.tag} is no operation of this address; it has {', '.join(sorted(self._names()))}"
            ) from error
        except Fault as error:
            parse_message(body)  # The wire has better words, if it sees the same trouble.
            raise faults.InvalidMessage(f"{body.tag}: {error.faultstring}") from error
        result: Message | Answer | None = await ctx.function(ctx, call)
        return result

    def _names(self) -> Iterable[str]:
        return (name.rpartition("}")[2] for name in self.operations)
