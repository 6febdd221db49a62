"""Ids of subscriptions, pull points and registrations: random, and in a cluster with a mark of their owner.

The mark, ten digits after a hyphen, is made from the owner's name, so that any node which knows the names
finds the owner, while an address tells nothing else. Ids of a node alone have none. Pure but for the random
part.
"""

from __future__ import annotations

import hashlib
import re
import secrets

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
