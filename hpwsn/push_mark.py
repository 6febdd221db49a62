"""The mark of a node on what it pushes to consumers, so that no push is published again where it came from.

A consumer's address may lead back to the node by a name that only the network knows. The mark has an id of
this process, and the node's URL, by which the other nodes of its clusters know it.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable
from urllib.parse import quote

PUSHED_BY = "Hpwsn-Pushed-By"
"""The header with the mark."""


class PushMark:
    """The mark of one node; `peers` are the URLs of the other nodes of its clusters."""

    def __init__(self, url: Callable[[], str], peers: Callable[[], Iterable[str]] = tuple) -> None:
        self._id = secrets.token_hex(12)
        self._url = url
        self._peers = peers

    def header(self) -> bytes:
        """The header line."""
        return f"{PUSHED_BY}: {self._id} {_encoded(self._url())}\r\n".encode()

    def would_loop(self, mark: str) -> bool:
        """Whether a push with this mark comes from this node, or from another one of its clusters."""
        id_, _, url = mark.partition(" ")
        return id_ == self._id or url in map(_encoded, self._peers())


def _encoded(url: str) -> str:
    return quote(url, safe="%/:?[]@!$&'()*+,;=~-._")
