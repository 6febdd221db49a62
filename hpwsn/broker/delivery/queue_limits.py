"""What happens when more waits for a subscription than it, or the node, allows.

`drop-oldest` loses the oldest and counts them, `dead-letter` sets the oldest aside for an operator, and
`reject` turns publishers away as long as the subscription is full. Limits are checked as notifications come,
so what was already on its way when a queue became full still goes in.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hpwsn.broker.queueing.delivery_steps import DEAD_LETTER
from hpwsn.broker.subscriptions.audience import Audience
from hpwsn.broker.subscriptions.subscription import Subscription
from hpwsn.notification import Run
from hpwsn_client.wsn.soap.faults import Busy

DROP_OLDEST, REJECT = "drop-oldest", "reject"

RELIEF = 1000
"""Most notifications that leave a queue in one step."""


@dataclass(frozen=True, slots=True)
class QueueLimits:
    """What holds for subscriptions that ask for nothing else."""

    max_queue: int = 1_000_000
    overflow: str = DEAD_LETTER


class Overflow:
    """Knows which queues are too long, and which turn publishers away."""

    def __init__(self, limits: QueueLimits, audience: Audience) -> None:
        self._limits = limits
        self._audience = audience
        self.full: set[Subscription] = set()
        """Subscriptions whose queue is full, and that must not lose any."""

    def limit(self, subscription: Subscription) -> int:
        """How many may wait for this subscription."""
        if subscription.queue_limit is None:
            asked = subscription.request.policy.delivery
            subscription.queue_limit = (
                asked.max_queue if asked and asked.max_queue else self._limits.max_queue
            )
        return subscription.queue_limit

    def policy(self, subscription: Subscription) -> str:
        """What to do when more do."""
        asked = subscription.request.policy.delivery
        return asked.overflow if asked and asked.overflow else self._limits.overflow

    def excess(self, subscription: Subscription) -> int:
        """How many of the oldest must go now; dead letters of a large queue, a hundredth of it at a time."""
        limit = self.limit(subscription)
        over = subscription.cursor.backlog - limit
        if over <= 0:
            return 0
        policy = self.policy(subscription)
        if policy == REJECT:
            return 0
        return min(over + (limit // 100 if policy == DEAD_LETTER else 0), RELIEF)

    def watch(self, subscription: Subscription) -> None:
        """Note whether a queue that turns publishers away is full now."""
        if subscription.rejects is None:
            subscription.rejects = self.policy(subscription) == REJECT
        if not subscription.rejects:
            return
        cursor = subscription.cursor
        # After a restart nobody knows how long a queue is until it has been counted.
        if not cursor.counted or cursor.backlog >= self.limit(subscription):
            self.full.add(subscription)
        else:
            self.full.discard(subscription)

    def forget(self, subscription: Subscription) -> None:
        """The subscription is gone, or gets nothing for now."""
        self.full.discard(subscription)

    def check_room(self, runs: Sequence[Run]) -> None:
        """Raise Busy if one of the notifications is for a full queue that must not lose any."""
        for run in runs:
            if run.target is None:
                self._check_run(run)

    def _check_run(self, run: Run) -> None:
        for wanted in self._audience.match_each(run.members):
            for subscription in wanted:
                if subscription in self.full and subscription.producer_holds:
                    raise Busy(
                        f"nothing was stored: subscription {subscription.id} to this topic allows a queue of"
                        f" {self.limit(subscription)} notifications and rejects more; try again later"
                    )
