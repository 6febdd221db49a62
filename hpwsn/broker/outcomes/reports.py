"""Reports the outcome of each send, and of each notification that delivery gives up, to listeners.

Delivery checks first whether anybody listens, so that an outcome costs one check where nobody does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from hpwsn.broker.outcomes.outcome import DeliveryOutcome, Result
from hpwsn.broker.push.request import Outcome, OutcomeKind
from hpwsn.broker.subscriptions.subscription import Subscription
from hpwsn.listeners import Listeners
from hpwsn.notification import Notification

_DELIVERED = OutcomeKind.DELIVERED
_PREVENTED = frozenset({OutcomeKind.CANCELLED, OutcomeKind.UNAVAILABLE})


class OutcomeReports:
    """True while anybody listens."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self.listeners: Listeners[DeliveryOutcome] = Listeners("an outcome of a delivery")

    def __bool__(self) -> bool:
        return bool(self.listeners)

    def sent(
        self,
        subscription: Subscription,
        offsets: Sequence[int],
        notifications: Sequence[Notification],
        outcome: Outcome,
    ) -> None:
        """Report the outcome of a send; a send that this node itself prevented has none."""
        if outcome.kind is _DELIVERED:
            result = Result.DELIVERED if subscription.pull_point is None else Result.QUEUED
            self.ended(subscription, result, offsets, notifications, status=outcome.status)
        elif outcome.kind not in _PREVENTED:
            self.ended(subscription, Result.FAILED, offsets, notifications, failure=outcome)

    def ended(
        self,
        subscription: Subscription,
        result: Result,
        offsets: Sequence[int],
        notifications: Sequence[Notification] = (),
        *,
        failure: Outcome | None = None,
        status: int | None = None,
        reason: str = "",
    ) -> None:
        """Report a result; `failure` is the last attempt's outcome if that is why."""
        self.listeners(
            DeliveryOutcome(
                result,
                subscription.id,
                subscription.request.consumer.address,
                offsets,
                self._clock(),
                notifications,
                attempt=subscription.progress.attempt + 1,
                status=status if failure is None else failure.status,
                kind=None if failure is None else failure.kind.value,
                reason=reason if failure is None else failure.reason,
            )
        )
