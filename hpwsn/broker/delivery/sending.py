"""What delivery needs of the ways to a consumer, what goes into a send, and what it counts.

Who waits until a subscription has handed over all it could.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from hpwsn.broker.lifetimes.retry import RetryPolicy
from hpwsn.broker.push.request import Outcome
from hpwsn.broker.subscriptions.subscription import Progress, Subscription
from hpwsn.notification import Notification
from hpwsn_client.wsn.soap.addressing import EndpointReference


class Settling:
    """Futures by subscription; where nobody waits, a subscription that settles costs one look."""

    def __init__(self) -> None:
        self.waiting: dict[Subscription, list[asyncio.Future[None]]] = {}

    async def wait(self, subscriptions: Iterable[Subscription]) -> None:
        """Wait until each of these has settled."""
        loop = asyncio.get_running_loop()
        waiting = []
        for subscription in subscriptions:
            future: asyncio.Future[None] = loop.create_future()
            self.waiting.setdefault(subscription, []).append(future)
            waiting.append(future)
        if waiting:
            await asyncio.wait(waiting)

    def settled(self, subscription: Subscription) -> None:
        """Tell those who wait for it."""
        if not self.waiting:
            return
        for future in self.waiting.pop(subscription, ()):
            if not future.done():
                future.set_result(None)

    def close(self) -> None:
        """Let nobody wait any longer."""
        for subscription in list(self.waiting):
            self.settled(subscription)


Done = Callable[[Outcome], None]
Attempt = Sequence[tuple[int, float]]
"""Offsets and the times at which they were published."""


class Sender(Protocol):
    """One way of handing notifications to a consumer."""

    def send(
        self,
        subscription: Subscription,
        offsets: Sequence[int],
        notifications: Sequence[Notification],
        done: Done,
    ) -> None:
        """Hand them over; `done` is called once, later, with what became of it."""

    def batch(self, subscription: Subscription) -> int:
        """How many may go in one send."""


class Senders(Protocol):
    """The two ways to a consumer: pushes to its address, and the queue of a local pull point."""

    push: Sender
    pull: Sender

    def resolve(self, consumer: EndpointReference) -> str | None:
        """The local pull point meant by the reference, or None for a push; a fault for neither."""


@dataclass(slots=True)
class Totals:
    """What /status and /metrics show."""

    delivered: int = 0
    sends: int = 0
    failures: dict[str, int] = field(default_factory=dict)
    buried: int = 0
    dropped: int = 0
    expired: int = 0


def worn_out(
    progress: Progress, policy: RetryPolicy, attempt: Attempt, now: float, clock: float
) -> list[int]:
    """The oldest of a failed attempt that have used up their time, or were there for all attempts."""
    assert progress.first_failure is not None
    first, dead = progress.first_failure, []
    for offset, published in attempt:
        attempts = progress.same if offset <= progress.tried else 0
        if not policy.exhausted(max(first, now - (clock - published)), now, attempts):
            break
        dead.append(offset)
    return dead
