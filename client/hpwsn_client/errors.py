"""The client's exceptions: network errors, timeouts, and replies that are not the expected SOAP message.

Faults that the broker sends are not defined here: they are raised as classes of `hpwsn_client.wsn.faults`,
which have the standard's names.

    Exception
    ├── HpwsnClientError
    │   ├── ConnectionFailed    cannot connect, or the connection was lost (also a ConnectionError)
    │   │   └── CertificateRefused  the certificate of an https URL is not trusted
    │   ├── TimedOut            no reply, or no notification, before the timeout (also a TimeoutError)
    │   ├── BadReply            the reply is not the SOAP message that was expected
    │   ├── PublishFailed       the broker did not accept some batches of a Publisher
    │   └── Closed              the object was used after it was closed
    └── SoapFault               the broker replied with a fault (hpwsn_client.wsn.faults)
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
    """Base class of the client's exceptions; `url` is the endpoint concerned.

    `happened` is the message without the remedy.
    """

    def __init__(self, message: str, url: str, *, remedy: str = "") -> None:
        super().__init__(f"{message}; {remedy}" if remedy else message)
        self.url = url
        self.happened = message


class ConnectionFailed(HpwsnClientError, ConnectionError):
    """The connection could not be opened, or was lost before the reply was complete."""


class CertificateRefused(ConnectionFailed):
    """The client does not trust the server's certificate; `certificate` is the error from the ssl module."""

    def __init__(self, url: str, certificate: ssl.SSLCertVerificationError) -> None:
        why, remedy = certificate_problem(certificate)
        super().__init__(f"the certificate of {url} is not accepted ({why})", url, remedy=remedy)
        self.certificate = certificate


class TimedOut(HpwsnClientError, TimeoutError):
    """The reply or the notification did not arrive before the timeout."""


class BadReply(HpwsnClientError):
    """The reply is not the SOAP message that was expected; `status` is the HTTP status, None if unknown."""

    def __init__(self, message: str, url: str, status: int | None = None, *, remedy: str = "") -> None:
        super().__init__(message, url, remedy=remedy)
        self.status = status


class PublishFailed(HpwsnClientError):
    """The broker did not accept some batches; `failed` holds each batch with its messages and the error."""

    def __init__(self, message: str, url: str, failed: Sequence[FailedBatch]) -> None:
        super().__init__(message, url)
        self.failed = tuple(failed)


@dataclass(frozen=True, slots=True)
class FailedBatch:
    """The messages of one Notify request that failed, and the error."""

    messages: tuple[NotificationMessage, ...]
    error: Exception


class Closed(HpwsnClientError):
    """The object was used after it was closed."""


def reason_of(error: OSError) -> str:
    """The operating system's message for the error, without the address that Python's message repeats.

    Name resolution errors have negative numbers, and TLS errors have OpenSSL's numbers, so these keep their
    own message.
    """
    if error.errno and error.errno > 0 and not isinstance(error, ssl.SSLError):
        return os.strerror(error.errno)
    return error.strerror or str(error)
