"""TLS settings for connections to a broker: the trusted certificate authorities, and messages for TLS errors.

The caller's authorities come first, then the PEM file that HPWSN_CA names, then the system's. A file replaces
the system's authorities, as in other HTTP clients.
"""

from __future__ import annotations

import os
import ssl

from hpwsn_client.environment import CA, authorities_file

Tls = ssl.SSLContext | str | os.PathLike[str]
"""An SSLContext, which may have a client certificate, or the path of a PEM file of authorities."""

TRUST = f"give the PEM file of the authority that signed it: {CA}, --ca, or Client(tls=…)"
_NOT_YET_VALID, _EXPIRED = 9, 10
_WRONG_NAMES = (62, 64)
_REMEDIES = {
    _NOT_YET_VALID: "compare the clocks of both machines",
    _EXPIRED: "the server needs a new certificate",
    **dict.fromkeys(_WRONG_NAMES, "use an address that the certificate names"),
}
_SERVER_WITHOUT_TLS = ("WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "UNEXPECTED_MESSAGE", "HTTP_REQUEST")


def tls_context(tls: Tls | None = None) -> ssl.SSLContext | None:
    """The context for https URLs; None means the system's authorities.

    Raises ValueError if the file of authorities cannot be used.
    """
    if isinstance(tls, ssl.SSLContext):
        return tls
    source = "tls" if tls is not None else f"the environment variable {CA}"
    file = authorities_file() if tls is None else os.fspath(tls)
    if file is None:
        return None
    try:
        return ssl.create_default_context(cafile=file)
    except OSError as error:
        why = "it does not contain a PEM certificate" if isinstance(error, ssl.SSLError) else error.strerror
        raise ValueError(f"{source}: {file} cannot be used: {why}; give a PEM file of authorities") from None


def certificate_problem(error: ssl.SSLCertVerificationError, trust: str = TRUST) -> tuple[str, str]:
    """The reason why a certificate was rejected, and the remedy; `trust` says how to add an authority."""
    why = str(getattr(error, "verify_message", "") or error).rstrip(".")
    return why, _REMEDIES.get(getattr(error, "verify_code", 0), trust)


def handshake_problem(error: ssl.SSLError) -> tuple[str, str]:
    """The reason why TLS failed before a certificate was checked, and the remedy."""
    # Only errors from OpenSSL have a reason; the end of the connection, for example, has none.
    reason = getattr(error, "reason", None) or ""
    why = reason.replace("_", " ").lower() or str(error)
    if reason in _SERVER_WITHOUT_TLS:
        return why, "if the server has no certificate, write http:// instead of https://"
    return why, "check which versions of TLS the server supports"
