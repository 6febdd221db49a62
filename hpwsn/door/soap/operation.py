"""What the SOAP operations share: their context, the parser of a request, and the Notify operation.

The headers hp:MessageId, hp:Routing, hp:ReceiptTo and hp:Traceparent are read here too.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol, TypeVar

from lxml import etree

from hpwsn.background import in_thread
from hpwsn.broker.admission.admission import Source
from hpwsn.broker.broker import Broker
from hpwsn.door.soap.dispatch import Call
from hpwsn.notification import PARTIAL, RELIABLE, Notification
from hpwsn_client.wsn.operations.messages import parse_message
from hpwsn_client.wsn.operations.notifications import parse_notify
from hpwsn_client.wsn.operations.receipts import RECEIPT_TO, ReceiptTo
from hpwsn_client.wsn.soap.addressing import parse_epr
from hpwsn_client.wsn.soap.envelope import Envelope
from hpwsn_client.wsn.soap.names import hp
from hpwsn_client.wsn.soap.soap_faults import InvalidMessage
from hpwsn_client.wsn.soap.trace_context import TRACEPARENT, encode_traces, parse_traces
from hpwsn_client.wsn.soap.xml import Limits
from hpwsn_client.wsn.topics.topic import shown


@dataclass(frozen=True, slots=True)
class Context:
    """The broker that the operations use, and the limits of a request."""

    broker: Broker
    limits: Limits


class SpyneContext(Protocol):
    """The context object that Spyne passes to an operation."""

    @property
    def udc(self) -> Context:
        """The context of the address (Spyne's user-defined context)."""


_Request = TypeVar("_Request")


def read(ctx: SpyneContext, call: Call, expected: type[_Request]) -> _Request:
    """Parse the request of a call, which Spyne has dispatched by its name."""
    assert call.envelope.body is not None
    request = parse_message(call.envelope.body, ctx.udc.limits)
    assert isinstance(request, expected)
    return request


async def publish(
    context: Context,
    call: Call,
    *,
    target: str | None = None,
    registration: str | None = None,
    door: str = "soap",
) -> None:
    """Publish the messages of a Notify; an id in the header hp:MessageId is that of the whole Notify."""
    envelope = call.envelope
    assert envelope.body is not None
    if call.large:
        messages = await in_thread(parse_notify, envelope.body, context.limits)
    else:
        messages = parse_notify(envelope.body, context.limits)
    messages = tuple(context.broker.ask_for_receipts(messages, receipt_to(envelope)))
    await context.broker.admission.publish(
        messages,
        message_id=message_id(envelope),
        target=target,
        source=Source(registration=registration, door=door),
        routing=routing(envelope),
        traces=traces(call, len(messages)),
    )


def traces(call: Call, count: int) -> list[str | None]:
    """Return the trace of each of `count` messages; empty if none has one.

    The header hp:Traceparent goes before the HTTP header; without a valid value the HTTP header counts.
    """
    header = call.envelope.header(TRACEPARENT) if call.envelope.headers else None
    found = parse_traces(header.text or "", count) if header is not None else []
    if not any(found):
        found = [call.trace] * count
    return found if any(found) else []


def trace_headers(notifications: Iterable[Notification]) -> tuple[bytes, ...]:
    """Return the SOAP headers of an answer with these notifications."""
    found = [each.trace for each in notifications]
    return (encode_traces(found),) if any(found) else ()


def routing(envelope: Envelope) -> int:
    """Return the flags of the header hp:Routing; 0 without the header."""
    header = envelope.header(hp("Routing")) if envelope.headers else None
    if header is None:
        return 0
    return RELIABLE * _is_true(header, "reliable") + PARTIAL * _is_true(header, "partial")


def receipt_to(envelope: Envelope) -> ReceiptTo | None:
    """Return the header hp:ReceiptTo, with the message id that receipts quote; None without the header."""
    header = envelope.header(RECEIPT_TO) if envelope.headers else None
    if header is None:
        return None
    return ReceiptTo(parse_epr(header), message_id(envelope))


def _is_true(header: etree._Element, name: str) -> bool:
    value = header.get(name, "false").strip(" \t\r\n")
    if value not in ("true", "1", "false", "0"):
        raise InvalidMessage(f"{name} of the header hp:Routing is {shown(value)}; write true or false")
    return value in ("true", "1")


def message_id(envelope: Envelope) -> str | None:
    """Return the text of the header hp:MessageId; None without the header, or if it is empty."""
    header = envelope.header(hp("MessageId")) if envelope.headers else None
    return ((header.text or "").strip() or None) if header is not None else None
