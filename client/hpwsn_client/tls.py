"""TLS towards a broker: whose certificates are trusted, and what is said of one that is not.

Without a choice of the caller's, HPWSN_CA names a PEM file of authorities; without that, they are the
system's. The authorities of a file stand instead of the system's, as with other HTTP clients.
"""

from __future__ import annotations

import os
import ssl

from hpwsn_client.environment import CA, authorities_file

Tls = ssl.SSLContext | str | os.PathLike[str]
"""A context of the caller's own, which may hold a client certificate, or a PEM file of authorities."""

TRUST = f"name the PEM file of the authority that signed it: {CA}, --ca, or Client(tls=…)"
_NOT_YET_VALID, _EXPIRED = 9, 10
_WRONG_NAMES = (62, 64)
_REMEDIES = {
    _NOT_YET_VALID: "compare the clocks of both machines",
    _EXPIRED: "the server needs a new certificate",
    **dict.fromkeys(_WRONG_NAMES, "use an address that the certificate names"),
}
_PLAIN = ("WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "UNEXPECTED_MESSAGE", "HTTP_REQUEST")


def tls_context(tls: Tls | None = None) -> ssl.SSLContext | None:
    """The context for connections to https URLs; None stands for the system's authorities.

    ValueError where the file of authorities cannot be used.
    """
    if isinstance(tls, ssl.SSLContext):
        return tls
    named = "tls" if tls is not None else f"the environment variable {CA}"
    file = authorities_file() if tls is None else os.fspath(tls)
    if file is None:
        return None
    try:
        return ssl.create_default_context(cafile=file)
    except OSError as error:
        why = "it holds no certificate in PEM" if isinstance(error, ssl.SSLError) else error.strerror
        raise ValueError(f"{named}: {file} cannot be used: {why}; name a PEM file of authorities") from None


def certificate_problem(error: ssl.SSLCertVerificationError, trust: str = TRUST) -> tuple[str, str]:
    """Why a certificate is not accepted, and what to do; `trust` is how to trust another authority."""
    why = str(getattr(error, "verify_message", "") or error).rstrip(".")
    return why, _REMEDIES.get(getattr(error, "verify_code", 0), trust)


def handshake_problem(error: ssl.SSLError) -> tuple[str, str]:
    """Why TLS failed before any certificate was judged, and what to do."""
    # An error of TLS that OpenSSL did not make, such as the end of the connection, has no reason.
    reason = getattr(error, "reason", None) or ""
    why = reason.replace("_", " ").lower() or str(error)
    if reason in _PLAIN:
        return why, "where the server has no certificate, write http:// instead of https://"
    return why, "see which versions of TLS the server speaks"
