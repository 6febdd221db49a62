"""WS-Addressing 1.0: parsing and encoding of endpoint references and addressing headers.

An endpoint reference must have one address; the rest of its content is kept as self-contained XML and written
back unchanged. Of a repeated header, the first counts. Follows Core sections 2 and 3, and SOAP Binding
sections 3 and 5.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from lxml import etree

from hpwsn_client.wsn.soap.names import WSA, WSA_REPLY, wsa
from hpwsn_client.wsn.soap.soap_faults import InvalidMessage
from hpwsn_client.wsn.soap.wrong_namespace import namespace_hint
from hpwsn_client.wsn.soap.xml import encode_element, escape, parse_xml, prefixed


@dataclass(frozen=True, slots=True)
class EndpointReference:
    """An address with its parameters, metadata and extensions, each a self-contained element."""

    address: str
    reference_parameters: tuple[bytes, ...] = ()
    metadata: bytes | None = None
    extensions: tuple[bytes, ...] = ()


@dataclass(frozen=True, slots=True)
class Addressing:
    """The addressing headers of one message; `source` is wsa:From."""

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
"""The Clark names of the headers that parse_addressing reads."""


def parse_epr(element: etree._Element) -> EndpointReference:
    """Parse an endpoint reference; the element may have any name."""
    addresses = [_text(child) for child in element.iterchildren(_ADDRESS)]
    if len(addresses) != 1 or not addresses[0]:
        hint = namespace_hint(element, (_ADDRESS,))
        raise InvalidMessage(
            f"endpoint reference {element.tag} must have one wsa:Address that is not empty{hint}"
        )
    metadata = element.find(_METADATA)
    return EndpointReference(
        address=addresses[0],
        reference_parameters=tuple(
            encode_element(child) for parameters in element.iterchildren(_PARAMETERS) for child in parameters
        ),
        metadata=None if metadata is None else encode_element(metadata),
        extensions=tuple(
            encode_element(child) for child in element if child.tag not in (_ADDRESS, _PARAMETERS, _METADATA)
        ),
    )


def encode_epr(epr: EndpointReference, tag: str) -> bytes:
    """Encode an endpoint reference as a self-contained element with this Clark name."""
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
    """Parse the addressing headers among all headers of a message; of a repeated header, the first counts.

    zeep's addressing plugin repeats each header if the WSDL has actions, as HPwsn's WSDL does.
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
    """Encode the headers that are set, each self-contained, in the order of the standard."""
    return tuple(
        encode_epr(value, tag) if field in _REFERENCES else _encode_text(value, tag)
        for tag, field in _FIELDS.items()
        if (value := getattr(addressing, field))
    )


def _encode_text(text: str, tag: str) -> bytes:
    name, declaration = prefixed(tag)
    return f"<{name}{declaration}>{escape(text)}</{name}>".encode()


def reference_parameter_headers(epr: EndpointReference) -> tuple[bytes, ...]:
    """The reference parameters as headers with wsa:IsReferenceParameter, for a message to the endpoint."""
    return tuple(map(_as_header, epr.reference_parameters))


def _as_header(parameter: bytes) -> bytes:
    # The parent declares the prefix wsa; otherwise lxml would generate one for the attribute.
    parent = parse_xml(b'<h xmlns:wsa="' + WSA.encode() + b'">' + parameter + b"</h>")
    parent[0].set(wsa("IsReferenceParameter"), "true")
    return encode_element(parent[0])
