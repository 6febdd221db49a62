"""The interfaces and small parts of delivery: Sender, Senders, its totals, and waiters for a subscription."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from hpwsn.broker.push.request import Outcome
from hpwsn.broker.subscriptions.subscription import Subscription
from hpwsn.notification import Notification
from hpwsn_client.wsn.soap.addressing import EndpointReference

Done = Callable[[Outcome], None]


class Sender(Protocol):
    """Delivers notifications to a consumer."""

    def send(
        self,
        subscription: Subscription,
        offsets: Sequence[int],
        notifications: Sequence[Notification],
        done: Done,
    ) -> None:
        """Send the notifications; `done` is called once, later, with the outcome."""

    def batch(self, subscription: Subscription) -> int:
        """The maximum number of notifications in one send."""


def batch_of(subscription: Subscription, most: int) -> int:
    """The batch that the policy of a subscription asks for, at most `most`; without one, `most`."""
    policy = subscription.request.policy.delivery
    asked = policy.batch if policy else None
    return min(asked, most) if asked else most


class Senders(Protocol):
    """The senders: `push` and `webhook` to a consumer's address, `pull` into a local pull point's queue."""

    push: Sender
    pull: Sender
    webhook: Sender

    def resolve(self, consumer: EndpointReference, *, webhook: bool) -> str | None:
        """The id of the local pull point, or None for a push; a fault for an unusable reference."""


@dataclass(slots=True)
class Totals:
    """The counters in /status and /metrics."""

    delivered: int = 0
    sends: int = 0
    failures: dict[str, int] = field(default_factory=dict)
    buried: int = 0
    dropped: int = 0
    expired: int = 0


class RetryTimers:
    """The subscriptions that wait for a retry, each with one timer, which calls `wake`."""

    def __init__(self, wake: Callable[[Subscription], None]) -> None:
        self._wake = wake
        self._timers: dict[Subscription, asyncio.TimerHandle] = {}

    def __contains__(self, subscription: Subscription) -> bool:
        return subscription in self._timers

    def __len__(self) -> int:
        return len(self._timers)

    def set(self, subscription: Subscription, pause: float) -> None:
        """Wake a subscription after a pause in seconds; it must not have a timer."""
        loop = asyncio.get_running_loop()
        self._timers[subscription] = loop.call_later(pause, self._wake, subscription)

    def cancel(self, subscription: Subscription) -> None:
        """Remove the timer of a subscription, if it has one."""
        timer = self._timers.pop(subscription, None)
        if timer is not None:
            timer.cancel()

    def remaining(self, subscription: Subscription) -> float | None:
        """Seconds until a subscription is woken; None if it has no timer."""
        timer = self._timers.get(subscription)
        return None if timer is None else max(0.0, timer.when() - asyncio.get_running_loop().time())

    def close(self) -> None:
        """Cancel all timers."""
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()


class Settling:
    """Waiters for subscriptions that have delivered all they can; without waiters, `settled` is one check."""

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
        """Wake the waiters of a subscription."""
        if not self.waiting:
            return
        for future in self.waiting.pop(subscription, ()):
            if not future.done():
                future.set_result(None)

    def close(self) -> None:
        """Wake all waiters."""
        for subscription in list(self.waiting):
            self.settled(subscription)
