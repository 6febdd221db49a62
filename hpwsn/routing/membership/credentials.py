"""The cluster secret, from the settings or from the file that they name.

TLS from this node to the admin node and to other nodes, where their addresses are https.

They are checked against the system's authorities, or those of `cluster.ca_file`. To nodes that ask for a
certificate this node shows the one of its own port.
"""

from __future__ import annotations

import ssl
from pathlib import Path

from hpwsn.errors import HpwsnError, SettingError
from hpwsn.settings import ClusterSettings, Config


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


_MAX_SECRET = 4096


def shared_secret(settings: ClusterSettings) -> bytes:
    """The secret; an error tells how to give one."""
    secret = settings.secret if settings.secret else _from_file(settings.secret_file)
    if settings.secret_file and not secret.strip():
        raise SettingError(
            "cluster.secret_file", settings.secret_file, "is empty; write the cluster's secret into it"
        )
    if settings.secret and not secret.strip():
        raise SettingError("cluster.secret", "***", "is blank; set HPWSN_CLUSTER_SECRET to the secret")
    if not secret.strip():
        raise HpwsnError(
            "a cluster needs a secret, the same for the admin node and all nodes: put one into a file"
            " and name it in cluster.secret_file, or give HPWSN_CLUSTER_SECRET"
        )
    return secret.strip().encode()


def _from_file(name: str) -> str:
    if not name:
        return ""
    try:
        with Path(name).open(encoding="utf-8") as file:
            secret = file.read(_MAX_SECRET + 1)
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8"
        remedy = "name a file that this user can read"
        raise SettingError("cluster.secret_file", name, f"cannot be read: {reason}; {remedy}") from error
    if len(secret) > _MAX_SECRET:
        raise SettingError(
            "cluster.secret_file",
            name,
            f"holds more than {_MAX_SECRET} characters, too many for a secret; name the file of the secret",
        )
    return secret
