"""TLS towards consumers and publishers whose addresses are https: whose certificates a node trusts.

They are those of the system's authorities, and of the file `delivery.ca_file` beside them, since consumers
are other people's.
"""

from __future__ import annotations

import ssl

from hpwsn.errors import SettingError

TRUST = "name the PEM file of the authority that signed it in delivery.ca_file"


def consumer_context(authorities: str) -> ssl.SSLContext | None:
    """What connections are secured with; None stands for the system's authorities alone."""
    if not authorities:
        return None
    context = ssl.create_default_context()
    try:
        context.load_verify_locations(authorities)
    except (ssl.SSLError, OSError) as error:
        reason = getattr(error, "reason", None) or error.strerror
        raise SettingError(
            "delivery.ca_file", authorities, f"cannot be used: {reason}; name a PEM file of authorities"
        ) from error
    return context
