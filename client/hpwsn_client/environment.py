"""The environment variables of the client, and the check that a URL can be used.

Variables give the defaults for arguments that the caller leaves out. They are read when they are needed,
never at import, so that a program can set one before it creates a client. An empty variable counts as unset.
"""

from __future__ import annotations

import os
import re
from urllib.parse import urlsplit

DEFAULT_URL = "http://127.0.0.1:8080/wsn"
URL, CA, TOKEN = "HPWSN_URL", "HPWSN_CA", "HPWSN_TOKEN"
VARIABLES = frozenset({URL, CA, TOKEN})
"""The variables of clients. A node, whose settings have the same prefix, ignores them."""
_is_token = re.compile(r"[A-Za-z0-9._~+/-]{1,4096}=*").fullmatch


def broker_url(given: str | None = None) -> str:
    """The given URL, else HPWSN_URL, else the default; ValueError if it is not an http or https URL."""
    if given is not None:
        return check_url(given)
    try:
        return check_url(os.environ.get(URL) or DEFAULT_URL)
    except ValueError as error:
        raise ValueError(f"the environment variable {URL}: {error}") from None


def authorities_file() -> str | None:
    """The PEM file that HPWSN_CA names; None if the variable is unset."""
    return os.environ.get(CA) or None


def bearer_token(given: str | None = None) -> str:
    """The given token, else HPWSN_TOKEN, else an empty one; ValueError, without the token, if not valid.

    Requests carry it as `Authorization: Bearer TOKEN` (RFC 6750). It must not appear in logs or errors.
    """
    token = (os.environ.get(TOKEN, "") if given is None else given).strip()
    if token and not _is_token(token):
        where = f"the environment variable {TOKEN}" if given is None else "the given token"
        raise ValueError(f"{where} is not a bearer token; give letters, digits and - . _ ~ + / only")
    return token


def authorization(token: str) -> dict[str, str]:
    """The header that shows a token; empty without one."""
    return {"Authorization": f"Bearer {token}"} if token else {}


def check_url(url: str) -> str:
    """Return the URL if it is an absolute http or https URL, else raise ValueError."""
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        # An unclosed bracket, or a port that is not a number.
        usable = False
    if not usable:
        raise ValueError(f"{url!r} is not an http or https URL; write it like http://127.0.0.1:8080/wsn")
    return url
