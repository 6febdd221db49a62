"""Receipts: what a publisher asks for with the header hp:ReceiptTo, and what the broker then reports to it.

The header is an endpoint reference of the publisher. A broker keeps it with the notification, as an extension
of its ProducerReference, so it survives a restart, reaches other nodes, and is visible to consumers. A
receipt reports the outcome for one consumer: in SOAP as the element hp:Receipt, in JSON as an object. It
identifies the consumer by a digest, since the address of a subscription would let the publisher end it.
"""

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from lxml import etree

from hpwsn_client.wsn.soap.addressing import EndpointReference, encode_epr, parse_epr
from hpwsn_client.wsn.soap.names import HPWSN, WSA_ANONYMOUS, hp
from hpwsn_client.wsn.soap.soap_faults import InvalidMessage
from hpwsn_client.wsn.soap.times import format_time, parse_time
from hpwsn_client.wsn.soap.xml import escape, escape_attribute, parse_xml

RECEIPT_TO, RECEIPT = hp("ReceiptTo"), hp("Receipt")
ACTION_RECEIPT = f"{HPWSN}:Receipt"
OUTCOMES = ("delivered", "queued", "dead-letter", "expired", "dropped")
"""The outcomes for one consumer; `queued` means that the notification is in a pull point."""

SOAP_FORM, JSON_FORM = "soap", "json"
_ID, _FORM = "messageId", "form"


@dataclass(frozen=True, slots=True)
class ReceiptTo:
    """The address for receipts, the message id that they quote, and their form: SOAP_FORM or JSON_FORM."""

    address: EndpointReference
    message_id: str | None = None
    form: str = SOAP_FORM


@dataclass(frozen=True, slots=True)
class Receipt:
    """The outcome of `count` notifications of one request for one consumer."""

    outcome: str
    consumer: str
    """A digest that is the same for all receipts of one subscription, and different for each."""
    time: datetime
    count: int = 1
    message_id: str | None = None
    topic: str | None = None
    status: int | None = None
    """The last HTTP status of the consumer; None if it gave none."""
    reason: str | None = None
    """The class of the last error, such as `refused` or `timeout`; None for a delivery."""

    @property
    def is_delivered(self) -> bool:
        """Whether the consumer, or its pull point, has the notifications."""
        return self.outcome in ("delivered", "queued")


def parse_receipt_to(element: etree._Element) -> ReceiptTo:
    """Parse the header, or the extension of a ProducerReference."""
    form = element.get(_FORM, SOAP_FORM)
    if form not in (SOAP_FORM, JSON_FORM):
        raise InvalidMessage(f"form of hp:ReceiptTo is {form!r}; write {SOAP_FORM} or {JSON_FORM}")
    return ReceiptTo(parse_epr(element), element.get(_ID), form)


def encode_receipt_to(receipt_to: ReceiptTo) -> bytes:
    """Encode the element, self-contained."""
    element, id_ = encode_epr(receipt_to.address, RECEIPT_TO), receipt_to.message_id
    attributes = "" if id_ is None else f' {_ID}="{escape_attribute(id_)}"'
    attributes += "" if receipt_to.form == SOAP_FORM else f' {_FORM}="{receipt_to.form}"'
    name = b"<hp:ReceiptTo"
    return name + attributes.encode() + element.removeprefix(name)


def with_receipt_to(producer: EndpointReference | None, receipt_to: ReceiptTo) -> EndpointReference:
    """A ProducerReference that has the request for receipts as an extension."""
    known = producer or EndpointReference(WSA_ANONYMOUS)
    return replace(known, extensions=(*known.extensions, encode_receipt_to(receipt_to)))


def without_receipt_to(producer: EndpointReference) -> EndpointReference:
    """The ProducerReference without requests for receipts that were meant for another broker."""
    kept = tuple(each for each in producer.extensions if not _is_request(each))
    return producer if len(kept) == len(producer.extensions) else replace(producer, extensions=kept)


def _is_request(extension: bytes) -> bool:
    return b"ReceiptTo" in extension and parse_xml(extension).tag == RECEIPT_TO


def encode_receipt(receipt: Receipt) -> bytes:
    """Encode the element hp:Receipt."""
    values = {
        "Outcome": receipt.outcome,
        "MessageId": receipt.message_id,
        "Topic": receipt.topic,
        "Consumer": receipt.consumer,
        "Count": receipt.count,
        "Status": receipt.status,
        "Reason": receipt.reason,
        "Time": format_time(receipt.time),
    }
    parts = (f"<hp:{name}>{escape(str(v))}</hp:{name}>" for name, v in values.items() if v is not None)
    return f'<hp:Receipt xmlns:hp="{HPWSN}">{"".join(parts)}</hp:Receipt>'.encode()


def parse_receipt(element: etree._Element) -> Receipt:
    """Parse the element hp:Receipt."""
    found = {etree.QName(child).localname: (child.text or "").strip(" \t\r\n") for child in element}
    try:
        return Receipt(
            outcome=_one_of(found["Outcome"]),
            consumer=found["Consumer"],
            time=_moment(found["Time"]),
            count=int(found["Count"]),
            message_id=found.get("MessageId"),
            topic=found.get("Topic"),
            status=int(found["Status"]) if "Status" in found else None,
            reason=found.get("Reason"),
        )
    except (KeyError, ValueError) as error:
        raise InvalidMessage(f"the receipt is not complete or not valid: {error}") from error


def receipt_object(receipt: Receipt) -> dict[str, Any]:
    """The receipt as a JSON object; fields without a value are null."""
    return {
        "outcome": receipt.outcome,
        "message_id": receipt.message_id,
        "topic": receipt.topic,
        "consumer": receipt.consumer,
        "count": receipt.count,
        "status": receipt.status,
        "reason": receipt.reason,
        "time": format_time(receipt.time),
    }


def _one_of(outcome: str) -> str:
    if outcome not in OUTCOMES:
        raise ValueError(f"outcome {outcome!r} is unknown")
    return outcome


def _moment(text: str) -> datetime:
    time = parse_time(text)
    if not isinstance(time, datetime):
        raise ValueError(f"Time {text!r} is not a point in time")
    return time
