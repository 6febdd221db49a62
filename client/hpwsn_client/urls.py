"""URLs that requests can be sent to."""

from __future__ import annotations

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
