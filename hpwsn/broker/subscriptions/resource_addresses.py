"""Ids and addresses of subscriptions, pull points and registrations.

An id is random. In a cluster, a mark of the owner follows: a hyphen and ten hexadecimal digits of a hash of
its name, so that every node can find the owner. A node without a cluster uses no marks. `own_path` tells
whether an address is this node's own: a node that delivered to itself would loop, so such addresses are
refused. All loopback names count as one host. Other host names are not resolved, since that takes time and
the answer may change.
"""

from __future__ import annotations

import hashlib
import re
import secrets
from urllib.parse import SplitResult, urlsplit

_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
_PORTS = {"http": 80, "https": 443}
_MARKED = re.compile(r"[0-9a-f]{24}-([0-9a-f]{10})")


def mark_of(name: str) -> str:
    """The mark of a node, from its name."""
    return hashlib.sha256(name.encode("utf-8", "replace")).hexdigest()[:10]


def owner_mark(id_: str) -> str | None:
    """The mark in an id, or None."""
    found = _MARKED.fullmatch(id_)
    return found[1] if found else None


class ResourceIds:
    """Creates the ids of one node; `owner` is its name in a cluster."""

    def __init__(self, owner: str | None = None) -> None:
        self.mark = None if owner is None else mark_of(owner)

    def __call__(self) -> str:
        """A new id."""
        random = secrets.token_hex(12)
        return random if self.mark is None else f"{random}-{self.mark}"

    def is_elsewhere(self, id_: str) -> bool:
        """Whether another node of the cluster created this id."""
        return self.mark is not None and owner_mark(id_) not in (None, self.mark)


PLAIN_IDS = ResourceIds()
"""The ids of a node without a cluster."""


def own_path(address: str, base: str) -> str | None:
    """The path of an address below this node's base URL; None for an address of another host."""
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
