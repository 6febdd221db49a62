"""What goes wrong between this program and the broker's answer: the network, the clock, or an answer that
is not SOAP.

A fault that the broker itself sends is not here: it arrives as the class of `hpwsn_client.wsn.soap.faults`
that bears the standard's name for it.

    Exception
    ├── HpwsnClientError
    │   ├── ConnectionFailed    nobody answers at the URL, or the connection was lost (also a ConnectionError)
    │   │   └── CertificateRefused  the certificate of an https URL is not trusted
    │   ├── TimedOut            no answer, or no notification, in the time allowed (also a TimeoutError)
    │   ├── BadReply            an answer came that is not the SOAP answer asked for
    │   ├── PublishFailed       batches of a Publisher that the broker did not accept
    │   └── Closed              the client or receiver was used after it was closed
    └── SoapFault               the broker refused (hpwsn_client.wsn.soap.faults)
"""

from __future__ import annotations

import os
import ssl
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hpwsn_client.tls import certificate_problem

if TYPE_CHECKING:
    from hpwsn_client.wsn.operations.notifications import NotificationMessage


class HpwsnClientError(Exception):
    """Everything the client raises for trouble on the way; `url` is the endpoint concerned.

    `happened` is the message without the advice, which is for whoever runs a client.
    """

    def __init__(self, message: str, url: str, *, remedy: str = "") -> None:
        super().__init__(f"{message}; {remedy}" if remedy else message)
        self.url = url
        self.happened = message


class ConnectionFailed(HpwsnClientError, ConnectionError):
    """No connection could be made, or it broke before the answer was complete."""


class CertificateRefused(ConnectionFailed):
    """This side does not accept the server's certificate; `certificate` is what TLS said of it."""

    def __init__(self, url: str, certificate: ssl.SSLCertVerificationError) -> None:
        why, remedy = certificate_problem(certificate)
        super().__init__(f"the certificate of {url} is not accepted ({why})", url, remedy=remedy)
        self.certificate = certificate


class TimedOut(HpwsnClientError, TimeoutError):
    """The answer or the notification did not come in time."""


class BadReply(HpwsnClientError):
    """The peer answered something else than the SOAP message that was due; `status` is the HTTP status."""

    def __init__(self, message: str, url: str, status: int | None = None, *, remedy: str = "") -> None:
        super().__init__(message, url, remedy=remedy)
        self.status = status


class PublishFailed(HpwsnClientError):
    """Batches that were not accepted; `failed` has each with its messages and the reason."""

    def __init__(self, message: str, url: str, failed: Sequence[FailedBatch]) -> None:
        super().__init__(message, url)
        self.failed = tuple(failed)


@dataclass(frozen=True, slots=True)
class FailedBatch:
    """Messages that travelled in one Notify, and what became of it."""

    messages: tuple[NotificationMessage, ...]
    error: Exception


class Closed(HpwsnClientError):
    """The object was closed before, and serves no more."""


def reason_of(error: OSError) -> str:
    """In the system's words, since Python's repeat the address.

    A name's trouble has a negative number, and that of TLS one which is not the system's.
    """
    if error.errno and error.errno > 0 and not isinstance(error, ssl.SSLError):
        return os.strerror(error.errno)
    return error.strerror or str(error)
