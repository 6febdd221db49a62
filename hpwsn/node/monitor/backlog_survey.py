"""What waits for all subscriptions of a node, and which of them need attention.

A walk over many subscriptions takes time, so that each second looks at STEP of them at most. With up to STEP
subscriptions the result is that of now; with more, it is that of the last complete walk.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from hpwsn.broker.subscriptions.subscription import State, Subscription
from hpwsn.door.rest.operations.subscription_items import EXPIRED, LIVE, PAUSED, RETRYING

STEP = 2000
"""Subscriptions that one step looks at."""


@dataclass(slots=True)
class Group:
    """Subscriptions of which the same is to be told: how many, and the one with the longest queue."""

    count: int = 0
    waiting: int = -1
    subscription: str = ""
    consumer: str = ""
    error: str = ""

    def add(self, subscription: Subscription, waiting: int) -> None:
        """Count a subscription."""
        self.count += 1
        if waiting > self.waiting:
            self.waiting = waiting
            self.subscription = subscription.id
            self.consumer = subscription.request.consumer.address
            self.error = subscription.progress.last_error or ""


class Backlogs:
    """The result of one walk."""

    def __init__(self) -> None:
        self.waiting = 0
        self.failing = Group()
        """Notifications wait for a consumer that has failed since its last delivery."""
        self.behind = Group()
        """More waits than the threshold, and they are not paused."""
        self.nearly_full = Group()
        """Their queue is near its limit."""
        self._total = self._paused = self._expired = 0

    def count(self, subscription: Subscription) -> None:
        """Count a subscription by its state; those that are retried are in `failing`."""
        self._total += 1
        if subscription.state is not State.LIVE:
            self._expired += 1
        elif subscription.paused:
            self._paused += 1

    def counts(self) -> dict[str, int]:
        """How many subscriptions have each state, as `GET /subscriptions` tells it."""
        retrying = self.failing.count
        live = self._total - self._paused - retrying - self._expired
        return {LIVE: live, PAUSED: self._paused, RETRYING: retrying, EXPIRED: self._expired}


class BacklogSurvey:
    """Walks over the subscriptions again and again."""

    def __init__(
        self,
        subscriptions: Callable[[], Iterator[Subscription]],
        limit: Callable[[Subscription], int],
        *,
        backlog: int,
        queue_percent: int,
    ) -> None:
        """`limit` is how many may wait for a subscription; the other two are the thresholds."""
        self._subscriptions = subscriptions
        self._limit = limit
        self._backlog = backlog
        self._share = queue_percent / 100
        self._left: list[Subscription] = []
        self._walk = Backlogs()
        self.result = Backlogs()

    def step(self) -> None:
        """Look at the next subscriptions; a walk that ends gives the result, and the next one begins."""
        if not self._left:
            self._left = list(self._subscriptions())
            self._walk = Backlogs()
        part, self._left = self._left[-STEP:], self._left[:-STEP]
        for subscription in part:
            self._look(subscription)
        if not self._left:
            self.result = self._walk

    def _look(self, subscription: Subscription) -> None:
        walk, waiting = self._walk, subscription.cursor.backlog
        walk.count(subscription)
        if subscription.retrying:
            walk.failing.add(subscription, waiting)
        if not waiting or subscription.state is State.ENDED:
            return
        walk.waiting += waiting
        if waiting >= self._backlog and not subscription.paused:
            walk.behind.add(subscription, waiting)
        if waiting >= self._share * self._limit(subscription):
            walk.nearly_full.add(subscription, waiting)
