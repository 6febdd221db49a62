"""What the core tells a door when it starts it, as JSON on its command line; no secret is among it. Pure."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass

from hpwsn.settings import ServerSettings
from hpwsn_client.wsn.xml import Limits


@dataclass(frozen=True, slots=True)
class Terms:
    """All that a door knows of the node."""

    number: int
    doors: int
    connections: int
    """Most connections of all doors and the core."""
    request_timeout: float
    drain_timeout: float
    body_limit: int
    depth_limit: int
    attribute_limit: int
    message_limit: int
    log_level: str
    log_format: str
    tls_certificate: str = ""
    """Files, as in the settings."""
    tls_key: str = ""
    tls_client_ca: str = ""
    link: int = -1
    """Inherited files: the link, the way for connections, and the counts of connections."""
    passing: int = -1
    counts: int = -1

    @property
    def limits(self) -> Limits:
        """The bounds of a request."""
        return Limits(
            body=self.body_limit,
            depth=self.depth_limit,
            attributes=self.attribute_limit,
            messages=self.message_limit,
        )

    @property
    def tls(self) -> ServerSettings:
        """The settings that TLS is made of."""
        return ServerSettings(
            tls_certificate=self.tls_certificate, tls_key=self.tls_key, tls_client_ca=self.tls_client_ca
        )


def encode_terms(terms: Terms) -> str:
    """One argument of a command."""
    return json.dumps(asdict(terms), separators=(",", ":"))


def parse_terms(text: str) -> Terms:
    """Read it in the door."""
    return Terms(**json.loads(text))
