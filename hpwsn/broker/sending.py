"""What delivery needs of the ways to a consumer, what goes into a send, and what it counts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from hpwsn.broker.push_request import Outcome
from hpwsn.broker.retry import RetryPolicy
from hpwsn.broker.subscription import Progress, Subscription
from hpwsn.notification import Notification
from hpwsn_client.wsn.addressing import EndpointReference

Done = Callable[[Outcome], None]
Batch = Sequence[tuple[int, float]]
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


class Reach(Protocol):
    """Chooses the sender for a consumer."""

    def resolve(self, consumer: EndpointReference) -> str | None:
        """The local pull point meant by the reference, or None for a push; a fault for neither."""

    def sender(self, subscription: Subscription) -> Sender:
        """The way to this subscription's consumer."""


@dataclass(slots=True)
class Totals:
    """What /status and /metrics show."""

    delivered: int = 0
    sends: int = 0
    failures: dict[str, int] = field(default_factory=dict)
    buried: int = 0
    dropped: int = 0
    expired: int = 0


def next_count(subscription: Subscription, sender: Sender) -> int:
    """How many go into the next send; one by one after a refusal of several."""
    return 1 if subscription.progress.alone else sender.batch(subscription)


def worn_out(progress: Progress, policy: RetryPolicy, batch: Batch, now: float, clock: float) -> list[int]:
    """The oldest of a failed batch that have used up their time, or were there for all attempts."""
    assert progress.first_failure is not None
    first, dead = progress.first_failure, []
    for offset, published in batch:
        attempts = progress.same if offset <= progress.tried else 0
        if not policy.exhausted(max(first, now - (clock - published)), now, attempts):
            break
        dead.append(offset)
    return dead
