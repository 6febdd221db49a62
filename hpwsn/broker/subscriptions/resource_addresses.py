"""Ids and addresses of subscriptions, pull points and registrations.

An id is random. In a cluster, a mark of the owner follows: a hyphen and ten hexadecimal digits of a hash of
its name, so that every node can find the owner. A node without a cluster uses no marks. `own_path` tells
whether an address is this node's own: a node that delivered to itself would loop, so such addresses are
refused, in all spellings of an IP address. The usual loopback names count as one host. Other host names are
not resolved, since that takes time and the answer may change; hpwsn.push_mark stops what they let through.
"""

from __future__ import annotations

import hashlib
import ipaddress
import re
import secrets
import socket
from contextlib import closing
from urllib.parse import unquote, urlsplit

from hpwsn.broker.push.request import parse_target

_LOOPBACK = "localhost"
_LOOPBACK_ADDRESSES = frozenset({"127.0.0.1", "::1", "0.0.0.0", "::"})
"""The addresses at which this machine connects to itself, besides its own; a client may use the last two."""
_ANY = frozenset({"0.0.0.0", "::"})
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
    """The path of an address below a node's base URL; None for an address of another host.

    A base URL with the host 0.0.0.0 or :: is at all addresses of this machine.
    """
    try:
        scheme, host, port = parse_target(address).key
        if (scheme, port) != parse_target(base).key[::2] or not _is_same(host, parse_target(base).key[1]):
            return None
        path, below = unquote(urlsplit(address).path), urlsplit(base).path
    except ValueError:
        return None
    return path.removeprefix(below).rstrip("/") if path.startswith(below) else None


def _is_same(host: str, ours: str) -> bool:
    host = _canonical(host)
    return host == _canonical(ours) or (ours in _ANY and _is_here(host))


def _canonical(host: str) -> str:
    """One spelling for all that mean the same host without a look into the network."""
    host = host.lower().rstrip(".")
    if host == _LOOPBACK or host.endswith(f".{_LOOPBACK}"):
        return _LOOPBACK
    try:
        # It takes the short, octal, hexadecimal and integer forms, as a connection does.
        text = socket.inet_ntoa(socket.inet_aton(host))
    except OSError:
        try:
            found = ipaddress.IPv6Address(host.partition("%")[0])
        except ValueError:
            return host
        text = str(found.ipv4_mapped or found)
    return _LOOPBACK if text in _LOOPBACK_ADDRESSES else text


def _is_here(host: str) -> bool:
    """Whether a host in canonical form is an address or the name of this machine."""
    if host in (_LOOPBACK, socket.gethostname().lower()):
        return True
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        socket.inet_pton(family, host)
        with closing(socket.socket(family, socket.SOCK_DGRAM)) as probe:
            probe.bind((host, 0))  # nothing is sent; the machine must have the address
    except OSError:
        return False
    return True
