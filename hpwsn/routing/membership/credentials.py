"""The credentials of a node in its cluster: the cluster secret, and TLS to the admin node and other nodes.

The secret comes from a setting, or from the file that a setting names. The certificates of https addresses
are verified with the system's authorities, or with those of `cluster.ca_file`. If the other side requests a
client certificate, the node sends the certificate of its own port.
"""

from __future__ import annotations

import ssl
from pathlib import Path

from hpwsn.errors import HpwsnError, SettingError
from hpwsn.settings import ClusterSettings, Config

_MAX_SECRET = 4096


def shared_secret(settings: ClusterSettings) -> bytes:
    """Return the cluster secret; raise an error that says how to set it."""
    secret = settings.secret if settings.secret else _from_file(settings.secret_file)
    if settings.secret_file and not secret.strip():
        raise SettingError(
            "cluster.secret_file", settings.secret_file, "is empty; write the cluster's secret into it"
        )
    if settings.secret and not secret.strip():
        raise SettingError("cluster.secret", "***", "is blank; set HPWSN_CLUSTER_SECRET to the secret")
    if not secret.strip():
        raise HpwsnError(
            "a cluster needs a secret, the same for the admin node and all nodes; write one into a file"
            " and name the file in cluster.secret_file, or set HPWSN_CLUSTER_SECRET"
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
            f"contains more than {_MAX_SECRET} characters, which is too long; name the file of the secret",
        )
    return secret


def peer_context(config: Config) -> ssl.SSLContext:
    """Return the TLS context for connections to https addresses."""
    server = config.server
    context = peer_authorities(config.cluster.ca_file)
    if server.tls_certificate:
        context.load_cert_chain(server.tls_certificate, server.tls_key or server.tls_certificate)
    return context


def peer_authorities(authorities: str) -> ssl.SSLContext:
    """Return a context that trusts the authorities in a file; with an empty name, those of the system."""
    try:
        return ssl.create_default_context(cafile=authorities or None)
    except (ssl.SSLError, OSError) as error:
        reason = getattr(error, "reason", None) or error.strerror or error
        raise SettingError(
            "cluster.ca_file",
            authorities,
            f"contains no certificates: {reason}; name a PEM file of authorities",
        ) from error
