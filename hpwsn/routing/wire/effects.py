"""The effects that a router returns, and the limits of a router. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from hpwsn.routing.wire.router_messages import Message, Publication

MIB = 1024**2


class Send(NamedTuple):
    """Send a message to each of these nodes: with `stream` over TCP and in order, else over UDP."""

    to: tuple[str, ...]
    message: Message
    stream: bool


class Deliver(NamedTuple):
    """Deliver a publication of another node here; it is not a duplicate.

    For a reliable publication, call `Router.stored` when the journal has committed it together with its id,
    or `Router.refused` if the journal cannot commit it.
    """

    publication: Publication


@dataclass(frozen=True, slots=True)
class Abandoned:
    """A reliable publication that a target (a node or cluster) will never acknowledge.

    The publication is of this node, or this node relays it. The target has been dead or gone for longer than
    `RouterSettings.dead_grace`.
    """

    number: int
    target: str


Effect = Send | Deliver | Abandoned


@dataclass(frozen=True, slots=True)
class RouterSettings:
    """Limits and times of a router; times are in seconds."""

    simple_subtree: bool = True
    max_unacknowledged: int = 10_000
    """The most unacknowledged publications of this node."""
    max_unacknowledged_bytes: int = 64 * MIB
    resend_after: float = 5.0
    """Time until an unacknowledged publication is resent; doubled each time, up to `resend_max`."""
    resend_max: float = 60.0
    dead_grace: float = 60.0
    """The grace period: how long publications are kept for a node or cluster that is dead or gone."""
    refresh: float = 10.0
    """The interval at which nodes compare the versions of interests."""
    settle: float = 0.02
    """How long changes of interest are collected before they are sent; none for the first after a pause."""
    max_patterns: int = 10_000
    """The most patterns of one interest; above it, patterns are replaced by a pattern that covers them."""
    max_routes: int = 10_000
    """The most cached routes."""
    window: int = 8192
    """The window of numbers of an origin within which duplicates are recognised."""
    max_origins: int = 10_000
    max_relayed: int = 20_000
    """The most publications of other nodes that a representative relays at once."""
