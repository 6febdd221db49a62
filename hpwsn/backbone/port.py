"""The backbone port: one way in for publishers, one way out to the node.

An implementation promises that `send` returns only once the notifications can no longer be lost, and that
what it hands to the node arrives in the order in which it was sent.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

from hpwsn.notification import Notification

Receive = Callable[[Sequence[Notification]], Awaitable[int]]


class Backbone(Protocol):
    """What a node needs of a backbone."""

    async def start(self, receive: Receive) -> None:
        """Begin to hand notifications to `receive`, which returns the first offset with the commit."""

    async def send(self, notifications: Sequence[Notification]) -> int:
        """Carry notifications, all or none; returns when they are safe, with the offset of the first."""

    async def close(self) -> None:
        """Hand over what is under way and stop."""

    def problem(self) -> str | None:
        """Why this backbone is not ready, in plain words, or None when it is."""
