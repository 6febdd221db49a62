"""WS-Addressing 1.0: endpoint references and message addressing headers, between trees and values.

Refuses an endpoint reference without an address, and a header that may come once and comes twice. What an
endpoint reference holds beside its address is kept as self-contained XML and given back as it came (Core
sections 2 and 3, SOAP Binding sections 3 and 5).
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from lxml import etree

from hpwsn_client.wsn.soap.names import WSA, WSA_REPLY, wsa
from hpwsn_client.wsn.soap.soap_faults import InvalidMessage
from hpwsn_client.wsn.soap.xml import encode_element, escape, parse_xml, prefixed


@dataclass(frozen=True, slots=True)
class EndpointReference:
    """An address, and the XML that goes with it: each fragment one self-contained element."""

    address: str
    reference_parameters: tuple[bytes, ...] = ()
    metadata: bytes | None = None
    extensions: tuple[bytes, ...] = ()


@dataclass(frozen=True, slots=True)
class Addressing:
    """The addressing headers of one message; source is wsa:From."""

    action: str | None = None
    to: str | None = None
    message_id: str | None = None
    relates_to: str | None = None
    reply_to: EndpointReference | None = None
    fault_to: EndpointReference | None = None
    source: EndpointReference | None = None


NO_ADDRESSING = Addressing()

_ADDRESS, _PARAMETERS, _METADATA = wsa("Address"), wsa("ReferenceParameters"), wsa("Metadata")
_FIELDS = {
    wsa("To"): "to",
    wsa("Action"): "action",
    wsa("MessageID"): "message_id",
    wsa("RelatesTo"): "relates_to",
    wsa("From"): "source",
    wsa("ReplyTo"): "reply_to",
    wsa("FaultTo"): "fault_to",
}
_REFERENCES = frozenset({"source", "reply_to", "fault_to"})

ADDRESSING_HEADERS = frozenset(_FIELDS)
"""The Clark names of the headers that parse_addressing takes care of."""


def parse_epr(element: etree._Element) -> EndpointReference:
    """Read an endpoint reference, whatever the element around it is called."""
    addresses = [_text(child) for child in element.iterchildren(_ADDRESS)]
    if len(addresses) != 1 or not addresses[0]:
        raise InvalidMessage(f"endpoint reference {element.tag} needs one wsa:Address that is not empty")
    metadata = element.find(_METADATA)
    return EndpointReference(
        address=addresses[0],
        reference_parameters=tuple(
            encode_element(child) for holder in element.iterchildren(_PARAMETERS) for child in holder
        ),
        metadata=None if metadata is None else encode_element(metadata),
        extensions=tuple(
            encode_element(child) for child in element if child.tag not in (_ADDRESS, _PARAMETERS, _METADATA)
        ),
    )


def encode_epr(epr: EndpointReference, tag: str) -> bytes:
    """Write an endpoint reference as a self-contained element of this Clark name."""
    name, declaration = prefixed(tag)
    if not tag.startswith(f"{{{WSA}}}"):
        declaration += f' xmlns:wsa="{WSA}"'
    parameters = b"".join(epr.reference_parameters)
    if parameters:
        parameters = b"<wsa:ReferenceParameters>" + parameters + b"</wsa:ReferenceParameters>"
    return b"".join(
        (
            f"<{name}{declaration}><wsa:Address>{escape(epr.address)}</wsa:Address>".encode(),
            parameters,
            epr.metadata or b"",
            *epr.extensions,
            f"</{name}>".encode(),
        )
    )


def parse_addressing(headers: Iterable[etree._Element]) -> Addressing:
    """Read the addressing headers among all headers of a message; of one that comes again, the first.

    zeep with its addressing plugin sends each twice where the WSDL names actions, as ours does.
    """
    found: dict[str, Any] = {}
    for header in headers:
        field = _FIELDS.get(header.tag)
        if field is None or header.get("RelationshipType", WSA_REPLY) != WSA_REPLY:
            continue
        if field not in found:
            found[field] = parse_epr(header) if field in _REFERENCES else _text(header) or None
    return Addressing(**found) if found else NO_ADDRESSING


def _text(element: etree._Element) -> str:
    return (element.text or "").strip(" \t\r\n")


def encode_addressing(addressing: Addressing) -> tuple[bytes, ...]:
    """Write the headers that are set, each self-contained, in the order of the standard."""
    return tuple(
        encode_epr(value, tag) if field in _REFERENCES else _encode_text(value, tag)
        for tag, field in _FIELDS.items()
        if (value := getattr(addressing, field))
    )


def _encode_text(text: str, tag: str) -> bytes:
    name, declaration = prefixed(tag)
    return f"<{name}{declaration}>{escape(text)}</{name}>".encode()


def reference_parameter_headers(epr: EndpointReference) -> tuple[bytes, ...]:
    """The reference parameters as headers of a message to the endpoint, marked as what they are."""
    return tuple(map(_mark, epr.reference_parameters))


def _mark(parameter: bytes) -> bytes:
    # The holder lends its prefix, so that the attribute does not get an invented one.
    holder = parse_xml(b'<h xmlns:wsa="' + WSA.encode() + b'">' + parameter + b"</h>")
    holder[0].set(wsa("IsReferenceParameter"), "true")
    return encode_element(holder[0])
