"""Whether an address that somebody gave is one of this node's own, however its host is written.

What a node sends to itself it takes in and sends again, for ever, so such addresses are refused where they
are given. Names of the loopback are one host; other names of the machine are not looked up, since asking
takes time and the answer may be another tomorrow.
"""

from __future__ import annotations

from urllib.parse import SplitResult, urlsplit

_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
_PORTS = {"http": 80, "https": 443}


def own_path(address: str, base: str) -> str | None:
    """The path below this node's base that an address leads to, None where it leads elsewhere."""
    try:
        theirs, ours = urlsplit(address), urlsplit(base)
        if _place(theirs) != _place(ours) or not theirs.path.startswith(ours.path):
            return None
    except ValueError:
        return None
    return theirs.path.removeprefix(ours.path).rstrip("/")


def _place(url: SplitResult) -> tuple[str, str, int | None]:
    host = url.hostname or ""
    return url.scheme, "localhost" if host in _LOOPBACK else host, url.port or _PORTS.get(url.scheme)
