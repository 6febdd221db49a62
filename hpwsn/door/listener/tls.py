"""TLS at the node's port, below both lanes: the certificate that it shows, and whose it demands.

It reads the files at the start, so that a wrong one is an error then, and again when the operator says so:
connections that are open keep what they began with, new ones get the new certificate. Only TLS 1.2 and later.
"""

from __future__ import annotations

import ssl
from pathlib import Path

from hpwsn.errors import SettingError
from hpwsn.settings import ServerSettings


def server_context(server: ServerSettings) -> ssl.SSLContext | None:
    """What connections are secured with; None where the port speaks plain HTTP."""
    if not server.tls_certificate:
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    load_certificate(context, server)
    if server.tls_client_ca:
        _demand_certificates(context, server.tls_client_ca)
    return context


def load_certificate(context: ssl.SSLContext, server: ServerSettings) -> None:
    """Read certificate and key; what is wrong is said with the setting to look at."""
    key = server.tls_key or server.tls_certificate
    _readable("server.tls_certificate", server.tls_certificate)
    _readable("server.tls_key" if server.tls_key else "server.tls_certificate", key)
    try:
        # One that is not the key's own would leave the context with no key at all: so try another first.
        for each in (ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), context):
            # An encrypted key would ask on the terminal; a service has nobody there.
            each.load_cert_chain(server.tls_certificate, key, password=lambda: b"")
    except (ssl.SSLError, OSError, ValueError) as error:
        raise SettingError(
            "server.tls_certificate",
            server.tls_certificate,
            f"cannot be used for TLS with the key {key}: {_words(error)}; both must be PEM, the key"
            " unencrypted and the certificate's own",
        ) from error


def _demand_certificates(context: ssl.SSLContext, authorities: str) -> None:
    _readable("server.tls_client_ca", authorities)
    try:
        context.load_verify_locations(authorities)
    except (ssl.SSLError, OSError) as error:
        raise SettingError(
            "server.tls_client_ca",
            authorities,
            f"holds no certificates of authorities: {_words(error)}; name a PEM file",
        ) from error
    context.verify_mode = ssl.CERT_REQUIRED


def _readable(setting: str, file: str) -> None:
    try:
        with Path(file).open("rb"):
            pass
    except OSError as error:
        remedy = "name a PEM file that this user can read"
        raise SettingError(setting, file, f"cannot be read: {error.strerror}; {remedy}") from error


def _words(error: Exception) -> str:
    return getattr(error, "reason", None) or str(error)
