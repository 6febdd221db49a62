"""TLS from this node to the admin node and to other nodes, where their addresses are https.

They are checked against the system's authorities, or those of `cluster.ca_file`. To nodes that ask for a
certificate this node shows the one of its own port.
"""

from __future__ import annotations

import ssl

from hpwsn.errors import SettingError
from hpwsn.settings import Config


def peer_context(config: Config) -> ssl.SSLContext:
    """What connections to https addresses are secured with."""
    server = config.server
    context = peer_authorities(config.cluster.ca_file)
    if server.tls_certificate:
        context.load_cert_chain(server.tls_certificate, server.tls_key or server.tls_certificate)
    return context


def peer_authorities(authorities: str) -> ssl.SSLContext:
    """A context that trusts the authorities of a file; the system's where it has no name."""
    try:
        return ssl.create_default_context(cafile=authorities or None)
    except (ssl.SSLError, OSError) as error:
        reason = getattr(error, "reason", None) or error.strerror or error
        raise SettingError(
            "cluster.ca_file", authorities, f"holds no certificates: {reason}; name a PEM file of authorities"
        ) from error
