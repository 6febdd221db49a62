"""What every SOAP operation has in common: what it works on, how it is declared, how its request is read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from lxml import etree
from spyne import rpc

from hpwsn.broker.admission.admission import Source
from hpwsn.broker.broker import Broker
from hpwsn.door.soap.dispatch import Call
from hpwsn.notification import PARTIAL, RELIABLE
from hpwsn_client.wsn.operations.messages import parse_message
from hpwsn_client.wsn.operations.notifications import parse_notify
from hpwsn_client.wsn.soap.envelope import Envelope
from hpwsn_client.wsn.soap.names import hp
from hpwsn_client.wsn.soap.soap_faults import InvalidMessage
from hpwsn_client.wsn.soap.xml import Limits
from hpwsn_client.wsn.topics.topic import shown


@dataclass(frozen=True, slots=True)
class Context:
    """What the operations work on."""

    broker: Broker
    limits: Limits


class SpyneContext(Protocol):
    """What Spyne hands to an operation."""

    @property
    def udc(self) -> Context:
        """What the operations of this address work on."""


_Request = TypeVar("_Request")


def read(ctx: SpyneContext, call: Call, expected: type[_Request]) -> _Request:
    """The request as the wire reads it."""
    assert call.envelope.body is not None
    request = parse_message(call.envelope.body, ctx.udc.limits)
    assert isinstance(request, expected)
    return request


def operation(model: type, returns: type | None = None, name: str | None = None) -> Any:
    """Declare an operation for requests of a model; `name` is theirs where it is not the model's."""
    return rpc(model, _returns=returns, _body_style="bare", _in_message_name=name or model.__name__)


async def publish(
    context: Context, envelope: Envelope, *, target: str | None = None, registration: str | None = None
) -> None:
    """Take a Notify in, under the id that its MessageId header gives the whole of it."""
    assert envelope.body is not None
    messages = parse_notify(envelope.body, context.limits)
    await context.broker.admission.publish(
        messages,
        message_id=message_id(envelope),
        target=target,
        source=Source(registration=registration),
        routing=routing(envelope),
    )


def routing(envelope: Envelope) -> int:
    """What the header Routing asks for; nothing where there is none."""
    header = envelope.header(hp("Routing"))
    if header is None:
        return 0
    return RELIABLE * _is_true(header, "reliable") + PARTIAL * _is_true(header, "partial")


def _is_true(header: etree._Element, name: str) -> bool:
    value = header.get(name, "false").strip(" \t\r\n")
    if value not in ("true", "1", "false", "0"):
        raise InvalidMessage(f"{name} of the header hp:Routing is {shown(value)}, and must be true or false")
    return value in ("true", "1")


def message_id(envelope: Envelope) -> str | None:
    """The text of the header MessageId, if there is one."""
    header = envelope.header(hp("MessageId"))
    return ((header.text or "").strip() or None) if header is not None else None
