"""Webhooks: subscriptions whose consumer gets JSON events instead of SOAP, signed if there is a secret.

A webhook is stored as a Subscribe with the extension `hp:Webhook`, which has the secret in hexadecimal. Only
the journal has this form: the JSON door makes it, no door shows it, and the SOAP doors refuse it.
"""

from __future__ import annotations

import hmac
import re
from dataclasses import dataclass, field

from hpwsn_client.wsn.operations.messages import Subscribe
from hpwsn_client.wsn.soap.faults import SubscribeCreationFailedFault
from hpwsn_client.wsn.soap.names import HPWSN
from hpwsn_client.wsn.soap.xml import STORED_LIMITS, parse_xml

SIGNATURE = "Hpwsn-Signature"
"""The header with `sha256=` and the HMAC of the body in hexadecimal."""
LONGEST_SECRET = 1024
"""The most characters of a secret."""

_extension = re.compile(
    rb'<hp:Webhook xmlns:hp="%b"(?: secret="((?:[0-9a-f]{2}){1,%d})")?/>'
    % (re.escape(HPWSN.encode()), 4 * LONGEST_SECRET)
).fullmatch
_HEADERS = b"Content-Type: application/json\r\n"


@dataclass(frozen=True, slots=True)
class Webhook:
    """How events are posted to the consumer; `secret` is None where nothing is signed."""

    secret: bytes | None = field(default=None, repr=False)

    def extension(self) -> bytes:
        """The extension of the stored Subscribe."""
        secret = "" if self.secret is None else f' secret="{self.secret.hex()}"'
        return f'<hp:Webhook xmlns:hp="{HPWSN}"{secret}/>'.encode()

    def headers(self, body: bytes) -> bytes:
        """The header lines of a request with this body."""
        if self.secret is None:
            return _HEADERS
        digest = hmac.digest(self.secret, body, "sha256").hex()
        return _HEADERS + f"{SIGNATURE}: sha256={digest}\r\n".encode()


def webhook_of(request: Subscribe) -> Webhook | None:
    """The webhook that a Subscribe stands for; None if its consumer gets SOAP."""
    for each in request.extensions:
        if found := _extension(each):
            return Webhook(None if found[1] is None else bytes.fromhex(found[1].decode()))
    return None


def refuse_webhook(request: Subscribe) -> None:
    """Check a Subscribe from a SOAP door; a fault if it has the extension of stored webhooks, in any form."""
    for each in request.extensions:
        if b"Webhook" in each and parse_xml(each, STORED_LIMITS).tag == f"{{{HPWSN}}}Webhook":
            raise SubscribeCreationFailedFault(
                "a Subscribe cannot have the extension hp:Webhook; create webhooks with POST /subscriptions"
            )
