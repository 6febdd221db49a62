"""The faults that belong to SOAP and to the transport rather than to WS-Notification.

Owns what every other module raises when bytes are no message of ours; knows nothing of XML, so that the
parser itself can raise them. Follows SOAP 1.1 section 4.4, SOAP 1.2 part 1 section 5.4 and the HTTP binding
of part 2 section 7.

    SoapFault
    ├── MalformedXml          not XML, a DTD, an unknown encoding, too deep        400
    ├── TooLarge              more bytes than accepted                             413
    ├── NotSoap               the root is no envelope
    ├── InvalidMessage        XML and SOAP, but against the schema
    ├── ActionNotSupported    an operation nobody offers
    ├── MustUnderstandFault   a header that had to be understood and is not
    ├── Busy                  try again later                                      503
    └── WsnFault              the standard's own: see faults.py
"""

from enum import Enum
from typing import ClassVar

from hpwsn_client.wsn.soap.names import wsa
from hpwsn_client.wsn.soap.version import SoapVersion


class FaultCode(Enum):
    """Whose fault it was, in the words of SOAP 1.2."""

    SENDER = "Sender"
    RECEIVER = "Receiver"
    VERSION_MISMATCH = "VersionMismatch"
    MUST_UNDERSTAND = "MustUnderstand"


class SoapFault(Exception):
    """A fault as it is sent or was received, in terms that fit both versions of SOAP."""

    default_code: ClassVar[FaultCode] = FaultCode.SENDER
    default_subcode: ClassVar[str | None] = None
    default_status: ClassVar[int | None] = None

    def __init__(
        self,
        reason: str,
        *,
        code: FaultCode | None = None,
        subcode: str | None = None,
        detail: tuple[bytes, ...] = (),
        status: int | None = None,
    ) -> None:
        super().__init__(reason)
        self.reason = reason
        self.code = code or self.default_code
        self.subcode = subcode or self.default_subcode
        self.detail = detail
        self.status = status or self.default_status
        self.version: SoapVersion | None = None
        """The version of the request that was at fault, once the envelope has told it."""

    def http_status(self, version: SoapVersion) -> int:
        """The HTTP status to answer with."""
        if self.status is not None:
            return self.status
        return 400 if version is SoapVersion.SOAP12 and self.code is FaultCode.SENDER else 500


class MalformedXml(SoapFault):
    """The bytes are not XML that is accepted here."""

    default_status = 400


class TooLarge(SoapFault):
    """The message has more bytes than are accepted."""

    default_status = 413


class NotSoap(SoapFault):
    """The document element is not an envelope of SOAP 1.1 or 1.2."""


class InvalidMessage(SoapFault):
    """The message breaks the schema of what it claims to be."""


class ActionNotSupported(SoapFault):
    """Nobody here offers the operation that the body asks for."""

    default_subcode = wsa("ActionNotSupported")


class MustUnderstandFault(SoapFault):
    """Headers, by Clark name, that the sender wants understood or refused."""

    default_code = FaultCode.MUST_UNDERSTAND

    def __init__(self, reason: str, *, headers: tuple[str, ...] = ()) -> None:
        super().__init__(reason)
        self.headers = headers


class Busy(SoapFault):
    """The node cannot take the message now and may be asked again after so many seconds."""

    default_code = FaultCode.RECEIVER
    default_status = 503

    def __init__(self, reason: str, *, retry_after: float = 1.0) -> None:
        super().__init__(reason)
        self.retry_after = retry_after
