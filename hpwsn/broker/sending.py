"""What delivery needs of the ways to a consumer, and what it counts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from hpwsn.broker.push_request import Outcome
from hpwsn.broker.subscription import Subscription
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
