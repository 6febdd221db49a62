"""The faults of SOAP and of the transport; those of WS-Notification are in wsn_faults.

The module does not use XML, so that the parser can raise these faults. Follows SOAP 1.1 section 4.4, SOAP 1.2
part 1 section 5.4 and the HTTP binding of part 2 section 7.

    SoapFault
    ├── MalformedXml          not XML, a DTD, an unknown encoding, too deep        400
    ├── TooLarge              more bytes than the limit                            413
    ├── NotSoap               the root is not an envelope
    ├── InvalidMessage        a SOAP message that the schema does not allow
    ├── ActionNotSupported    an unknown operation
    ├── MustUnderstandFault   a mustUnderstand header that is not understood
    ├── Busy                  overloaded; retry later                              503
    └── WsnFault              the faults of the standard: see faults.py
"""

from enum import Enum
from typing import ClassVar

from hpwsn_client.wsn.soap.names import wsa
from hpwsn_client.wsn.soap.version import SoapVersion


class FaultCode(Enum):
    """The fault codes of SOAP 1.2."""

    SENDER = "Sender"
    RECEIVER = "Receiver"
    VERSION_MISMATCH = "VersionMismatch"
    MUST_UNDERSTAND = "MustUnderstand"


class SoapFault(Exception):
    """A SOAP fault to send, or one that was received, in either version of SOAP."""

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
        """The SOAP version of the request; None until its envelope is parsed."""

    def http_status(self, version: SoapVersion) -> int:
        """The HTTP status of the response."""
        if self.status is not None:
            return self.status
        return 400 if version is SoapVersion.SOAP12 and self.code is FaultCode.SENDER else 500


class MalformedXml(SoapFault):
    """The bytes are not well-formed XML, or XML that is not accepted, such as a DTD.

    `line` and `column` count from 1; 0 means unknown.
    """

    default_status = 400
    line = 0
    column = 0


class TooLarge(SoapFault):
    """The message has more bytes than the limit."""

    default_status = 413


class NotSoap(SoapFault):
    """The document element is not an envelope of SOAP 1.1 or 1.2."""


class InvalidMessage(SoapFault):
    """The message does not conform to its schema."""


class ActionNotSupported(SoapFault):
    """The endpoint does not support the operation in the body."""

    default_subcode = wsa("ActionNotSupported")


class MustUnderstandFault(SoapFault):
    """Headers are marked mustUnderstand and not understood; `headers` has their Clark names."""

    default_code = FaultCode.MUST_UNDERSTAND

    def __init__(self, reason: str, *, headers: tuple[str, ...] = ()) -> None:
        super().__init__(reason)
        self.headers = headers


class Busy(SoapFault):
    """The server is overloaded; retry after `retry_after` seconds."""

    default_code = FaultCode.RECEIVER
    default_status = 503

    def __init__(self, reason: str, *, retry_after: float = 1.0) -> None:
        super().__init__(reason)
        self.retry_after = retry_after
