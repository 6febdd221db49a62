"""What the client takes from its process's environment where its caller names nothing else.

Read when it is asked for, never at import, so that a program may set a variable before it makes a client.
A variable that is set but empty counts as not set.

URLs that requests can be sent to.
"""

from __future__ import annotations

import os
from urllib.parse import urlsplit


def check_url(url: str) -> str:
    """The URL itself, where it is an absolute http or https one."""
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        # A bracket that is left open, or a port that is none.
        usable = False
    if not usable:
        raise ValueError(f"{url!r} is no http or https URL; write it like http://127.0.0.1:8080/wsn")
    return url


DEFAULT_URL = "http://127.0.0.1:8080/wsn"
URL, CA, TOKEN = "HPWSN_URL", "HPWSN_CA", "HPWSN_TOKEN"
VARIABLES = frozenset({URL, CA, TOKEN})
"""The variables of clients; a node, whose settings share the prefix, leaves them alone. TOKEN is reserved."""


def broker_url(given: str | None = None) -> str:
    """The URL given, else that of HPWSN_URL, else the default; ValueError where it is not an http URL."""
    if given is not None:
        return check_url(given)
    try:
        return check_url(os.environ.get(URL) or DEFAULT_URL)
    except ValueError as error:
        raise ValueError(f"the environment variable {URL}: {error}") from None


def authorities_file() -> str | None:
    """The PEM file that HPWSN_CA names, None where it names none."""
    return os.environ.get(CA) or None
