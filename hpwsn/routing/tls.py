"""TLS from this node to the admin node and to other nodes, where their addresses are https.

They are checked against the system's authorities, or those of `cluster.ca_file`. To nodes that ask for a
certificate this node shows the one of its own port.
"""

from __future__ import annotations

import ssl

from hpwsn.errors import HpwsnError
from hpwsn.settings import Config


def peer_context(config: Config) -> ssl.SSLContext:
    """What connections to https addresses are secured with."""
    server, authorities = config.server, config.cluster.ca_file
    try:
        context = ssl.create_default_context(cafile=authorities or None)
    except (ssl.SSLError, OSError) as error:
        reason = getattr(error, "reason", None) or error.strerror or error
        raise HpwsnError(f"cluster.ca_file: {authorities} holds no certificates: {reason}") from error
    if server.tls_certificate:
        context.load_cert_chain(server.tls_certificate, server.tls_key or server.tls_certificate)
    return context
