"""TLS of the node's port: its server certificate, and the authorities for client certificates.

The files are read at the start, where an error prevents the start, and again on reload: open connections keep
the old certificate, new ones get the new one. Only TLS 1.2 and later.
"""

from __future__ import annotations

import ssl
from pathlib import Path

from hpwsn.errors import SettingError
from hpwsn.settings import ServerSettings


def server_context(server: ServerSettings) -> ssl.SSLContext | None:
    """The TLS context of the port; None for plain HTTP."""
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
    """Read certificate and key; SettingError names the setting that is wrong."""
    key = server.tls_key or server.tls_certificate
    _readable("server.tls_certificate", server.tls_certificate)
    _readable("server.tls_key" if server.tls_key else "server.tls_certificate", key)
    try:
        # A certificate that does not match leaves the context without a key, so try a new context first.
        for each in (ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), context):
            # An encrypted key would prompt on the terminal, which a service does not have.
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
            f"has no certificates of authorities: {_words(error)}; name a PEM file",
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
