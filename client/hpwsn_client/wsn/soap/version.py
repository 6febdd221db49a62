"""The two versions of SOAP: content types, HTTP headers and the encoding of envelopes.

Both faults and envelopes import this module. Follows SOAP 1.1 section 4 and SOAP 1.2 part 1 section 5.
"""

from collections.abc import Iterable
from enum import Enum
from typing import Literal

from hpwsn_client.wsn.soap.names import SOAP11, SOAP12

SoapAction = Literal["empty", "action"]
"""The value of the SOAPAction header of a SOAP 1.1 request: empty, or the action URI."""

SOAP_ACTIONS: tuple[SoapAction, ...] = ("empty", "action")


class SoapVersion(Enum):
    """A version of SOAP; a response has the version of its request."""

    SOAP11 = SOAP11
    SOAP12 = SOAP12

    @property
    def namespace(self) -> str:
        """The namespace of the envelope, which identifies the version."""
        return self.value

    @property
    def content_type(self) -> str:
        """The media type for HTTP, always in UTF-8."""
        return _CONTENT_TYPES[self]


_CONTENT_TYPES = {
    SoapVersion.SOAP11: "text/xml; charset=utf-8",
    SoapVersion.SOAP12: "application/soap+xml; charset=utf-8",
}
_OPEN = {version: f'<soap:Envelope xmlns:soap="{version.namespace}">'.encode() for version in SoapVersion}


def request_headers(version: SoapVersion, action: str, soap_action: SoapAction = "empty") -> dict[str, str]:
    """The HTTP headers of a request.

    In SOAP 1.2 the action is a parameter of the media type. The standard's WSDLs define no binding, and so no
    SOAPAction: a SOAP 1.1 server expects an empty one, unless it dispatches on the header.
    """
    if version is SoapVersion.SOAP12:
        return {"Content-Type": f'{version.content_type}; action="{action}"'}
    value = action if soap_action == "action" else ""
    return {"Content-Type": version.content_type, "SOAPAction": f'"{value}"'}


def encode_envelope(version: SoapVersion, body: bytes, headers: Iterable[bytes] = ()) -> bytes:
    """Encode an envelope from self-contained header blocks and one self-contained body element."""
    header = b"".join(headers)
    if header:
        header = b"<soap:Header>" + header + b"</soap:Header>"
    return b"".join((_OPEN[version], header, b"<soap:Body>", body, b"</soap:Body></soap:Envelope>"))
