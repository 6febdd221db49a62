"""What a router wants done, in order, and the bounds it works within. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from hpwsn.routing.wire.router_messages import Message, Publication

MIB = 1024**2


class Send(NamedTuple):
    """Send a message to each of these nodes; `stream` is by TCP, in order, else by UDP."""

    to: tuple[str, ...]
    message: Message
    stream: bool


class Deliver(NamedTuple):
    """A publication of another node for this one, never one that came before.

    Where it is reliable, `Router.stored` is to be called once the journal has committed it together with its
    id, or `Router.refused` where it cannot.
    """

    publication: Publication


@dataclass(frozen=True, slots=True)
class Abandoned:
    """A reliable publication that some target (a node or cluster) will never acknowledge.

    It is of this node, or this node carries it for its cluster or another. The target has been dead or gone
    for longer than `RouterSettings.dead_grace`.
    """

    number: int
    target: str


Effect = Send | Deliver | Abandoned


@dataclass(frozen=True, slots=True)
class RouterSettings:
    """Bounds and times of a router; seconds where nothing else is said."""

    simple_subtree: bool = True
    max_unacknowledged: int = 10_000
    """Reliable publications of this node that are kept for acknowledgement."""
    max_unacknowledged_bytes: int = 64 * MIB
    resend_after: float = 5.0
    """How long an acknowledgement may take; doubled each time, up to `resend_most`."""
    resend_max: float = 60.0
    dead_grace: float = 60.0
    """How long what is reliable is kept for a node or cluster that is dead or gone."""
    refresh: float = 10.0
    """How often nodes compare the versions of the interests they have."""
    settle: float = 0.02
    """How long changes of interest are gathered before they are told, save the first after a pause."""
    max_patterns: int = 10_000
    """Patterns in one interest; beyond it neighbours are merged into what covers them all."""
    max_routes: int = 10_000
    """Topics whose way is remembered."""
    window: int = 8192
    """Numbers of an origin, back from the newest, among which a duplicate is known."""
    max_origins: int = 10_000
    max_relayed: int = 20_000
    """Reliable publications of others that a representative carries at once."""
