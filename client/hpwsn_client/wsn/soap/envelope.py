"""Parsing of SOAP 1.1 and 1.2 envelopes, and the mustUnderstand check.

Requests are dispatched by the element in the body, because clients send arbitrary SOAPAction headers. So a
body may have at most one element. Follows SOAP 1.1 section 4 and SOAP 1.2 part 1 sections 2 and 5.
"""

from collections.abc import Container
from dataclasses import dataclass
from typing import NamedTuple

from lxml import etree

from hpwsn_client.wsn.soap.addressing import ADDRESSING_HEADERS, NO_ADDRESSING, Addressing, parse_addressing
from hpwsn_client.wsn.soap.faults import (
    FaultCode,
    InvalidMessage,
    MustUnderstandFault,
    NotSoap,
    SoapFault,
    parse_fault,
)
from hpwsn_client.wsn.soap.names import SOAP12
from hpwsn_client.wsn.soap.payload_xml import parse_message_xml
from hpwsn_client.wsn.soap.version import SoapVersion, encode_envelope
from hpwsn_client.wsn.soap.xml import DEFAULT_LIMITS, Limits

__all__ = [
    "Envelope",
    "SoapVersion",
    "check_must_understand",
    "encode_envelope",
    "parse_envelope",
    "parse_reply",
]


class _Names(NamedTuple):
    version: SoapVersion
    envelope: str
    header: str
    body: str
    fault: str
    must_understand: str
    role: str


def _names(version: SoapVersion, role: str) -> _Names:
    locals_ = ("Envelope", "Header", "Body", "Fault", "mustUnderstand", role)
    return _Names(version, *(f"{{{version.namespace}}}{local}" for local in locals_))


_NAMES = {
    SoapVersion.SOAP11: _names(SoapVersion.SOAP11, "actor"),
    SoapVersion.SOAP12: _names(SoapVersion.SOAP12, "role"),
}
_BY_ROOT = {names.envelope: names for names in _NAMES.values()}
_OUR_ROLES = {
    "",
    "http://schemas.xmlsoap.org/soap/actor/next",
    SOAP12 + "/role/next",
    SOAP12 + "/role/ultimateReceiver",
}


@dataclass(frozen=True, slots=True)
class Envelope:
    """One message: its header blocks, the element of its body (None if empty), and its addressing headers."""

    version: SoapVersion
    headers: tuple[etree._Element, ...]
    body: etree._Element | None
    addressing: Addressing

    def header(self, clark: str) -> etree._Element | None:
        """The first header block with this Clark name."""
        return next((header for header in self.headers if header.tag == clark), None)


def parse_envelope(
    data: bytes, limits: Limits = DEFAULT_LIMITS, charset: str | None = None, *, raw: bool = False
) -> Envelope:
    """Parse an envelope; a fault has the SOAP version of the envelope, if it is known, for the reply.

    With `raw`, the element in the body may be a payload, and keeps its comments.
    """
    root = parse_message_xml(data, limits, charset, raw=raw)
    names = _BY_ROOT.get(root.tag)
    if names is None:
        raise _not_soap(root)
    try:
        return _parse_parts(root, names)
    except SoapFault as fault:
        fault.version = names.version
        raise


def _not_soap(root: etree._Element) -> NotSoap:
    name = etree.QName(root)
    if name.localname == "Envelope" and name.namespace:
        reason = f"envelope namespace {name.namespace!r} is not that of SOAP 1.1 or 1.2; use one of them"
        return NotSoap(reason, code=FaultCode.VERSION_MISMATCH)
    return NotSoap(f"the document element is {root.tag}; send a SOAP 1.1 or 1.2 Envelope")


def _parse_parts(root: etree._Element, names: _Names) -> Envelope:
    headers: tuple[etree._Element, ...] = ()
    bodies = []
    for child in root:
        if child.tag == names.body:
            bodies.append(child)
        elif child.tag == names.header:
            headers += tuple(child)
    if len(bodies) != 1:
        raise InvalidMessage(f"the envelope has {len(bodies)} Body elements; send one")
    content = list(bodies[0])
    if len(content) > 1:
        raise InvalidMessage(f"the Body has {len(content)} elements; send one")
    addressing = parse_addressing(headers) if headers else NO_ADDRESSING
    return Envelope(names.version, headers, content[0] if content else None, addressing)


def parse_reply(data: bytes, limits: Limits = DEFAULT_LIMITS, charset: str | None = None) -> Envelope:
    """Parse a reply; raises the fault if it is one."""
    envelope = parse_envelope(data, limits, charset)
    if envelope.body is not None and envelope.body.tag == _NAMES[envelope.version].fault:
        raise parse_fault(envelope.body, envelope.version)
    return envelope


def check_must_understand(envelope: Envelope, understood: Container[str]) -> None:
    """Raise MustUnderstandFault for headers that are marked mustUnderstand and not in `understood`.

    Headers of WS-Addressing always count as understood.
    """
    names = _NAMES[envelope.version]
    missing = tuple(
        header.tag
        for header in envelope.headers
        if header.get(names.must_understand, "0").strip() in ("1", "true")
        and header.get(names.role, "").strip() in _OUR_ROLES
        and header.tag not in ADDRESSING_HEADERS
        and header.tag not in understood
    )
    if missing:
        fault = MustUnderstandFault(
            f"headers not understood: {', '.join(missing)}",
            headers=missing,
        )
        fault.version = envelope.version
        raise fault
