"""Ids of subscriptions, pull points and registrations: random, and in a cluster with a mark of their
owner.

The mark, ten digits after a hyphen, is made from the owner's name, so that any node which knows the names
finds the owner, while an address tells nothing else. Ids of a node alone have none. Pure but for the
random part.

Whether an address that somebody gave is one of this node's own, however its host is written.

What a node sends to itself it takes in and sends again, for ever, so such addresses are refused where
they are given. Names of the loopback are one host; other names of the machine are not looked up, since
asking takes time and the answer may be another tomorrow.
"""

from __future__ import annotations

import hashlib
import re
import secrets
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


_MARKED = re.compile(r"[0-9a-f]{24}-([0-9a-f]{10})")


def mark_of(name: str) -> str:
    """The mark of a node's ids."""
    return hashlib.sha256(name.encode("utf-8", "replace")).hexdigest()[:10]


def owner_mark(id_: str) -> str | None:
    """The mark in an id, if it has one."""
    found = _MARKED.fullmatch(id_)
    return found[1] if found else None


class ResourceIds:
    """Makes the ids of one node; `owner` is its name in a cluster."""

    def __init__(self, owner: str | None = None) -> None:
        self.mark = None if owner is None else mark_of(owner)

    def __call__(self) -> str:
        """A new id."""
        random = secrets.token_hex(12)
        return random if self.mark is None else f"{random}-{self.mark}"

    def is_elsewhere(self, id_: str) -> bool:
        """Whether another node of the cluster made this id."""
        return self.mark is not None and owner_mark(id_) not in (None, self.mark)


PLAIN_IDS = ResourceIds()
"""Those of a node alone."""
