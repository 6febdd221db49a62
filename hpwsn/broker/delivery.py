"""Delivery: one ordered queue for each subscription, moved along by the outcome of every send.

No task and no thread belongs to a subscription. It is woken by a new notification, by the callback of its
last send, or by its retry timer; it has at most one send under way, which is what keeps its order. A send
carries as many waiting notifications as the policy allows. What no longer fits into memory is read from the
journal.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable, Coroutine, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from hpwsn.broker.push_request import Outcome, OutcomeKind
from hpwsn.broker.recent import Recent
from hpwsn.broker.retry import RetryPolicy
from hpwsn.broker.subscription import State, Subscription
from hpwsn.errors import JournalUnavailable
from hpwsn.journal.journal import Journal
from hpwsn.matching.content import ContentFilters
from hpwsn.notification import Notification
from hpwsn.topics.tree import TopicTree
from hpwsn_client.wsn.addressing import EndpointReference
from hpwsn_client.wsn.xml import DEFAULT_LIMITS

log = logging.getLogger(__name__)

Done = Callable[[Outcome], None]

BATCH_BYTES = 4 * 2**20
"""Content in one send, and in one read of the journal; a larger notification goes alone."""

JOURNAL_PAUSE = 1.0
"""Seconds until a read that the journal refused is tried again."""


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


class Delivery:
    """Moves every subscription's cursor."""

    def __init__(
        self,
        *,
        journal: Journal,
        tree: TopicTree[Subscription],
        content: ContentFilters,
        recent: Recent,
        reach: Reach,
        retry: RetryPolicy,
        clock: Callable[[], float],
    ) -> None:
        self._journal = journal
        self._tree = tree
        self._content = content
        self._recent = recent
        self._reach = reach
        self._retry = retry
        self._clock = clock
        self._timers: dict[Subscription, asyncio.TimerHandle] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._settling: dict[Subscription, list[asyncio.Future[None]]] = {}
        self._offered: dict[Subscription, None] = {}
        self._closing = False
        self.head = 0
        """The newest offset that has been offered to every subscription it matches."""
        self.totals = Totals()

    def check(self, consumer: EndpointReference) -> str | None:
        """The local pull point that the reference means, if any; a fault if it can never be reached."""
        return self._reach.resolve(consumer)

    def offer(self, subscription: Subscription, offset: int) -> None:
        """A notification matched; it goes out with all others of this commit, or when its turn comes."""
        subscription.cursor.offer(offset)
        if subscription.progress.busy:
            return
        if not self._offered:
            asyncio.get_running_loop().call_soon(self._proceed_offered)
        self._offered[subscription] = None

    def _proceed_offered(self) -> None:
        offered, self._offered = self._offered, {}
        for subscription in offered:
            self._proceed(subscription)

    def wake(self, subscription: Subscription) -> None:
        """Deliver what waits now, without sitting out a pause before a retry."""
        self._cancel_timer(subscription)
        self._proceed(subscription)

    def forget(self, subscription: Subscription) -> None:
        """Drop the timer and whoever waits for it."""
        self._cancel_timer(subscription)
        self._settled(subscription)

    def _cancel_timer(self, subscription: Subscription) -> None:
        timer = self._timers.pop(subscription, None)
        if timer is not None:
            timer.cancel()

    def _proceed(self, subscription: Subscription) -> None:
        if self._closing or subscription.progress.busy or subscription in self._timers:
            return
        if not subscription.deliverable:
            self._settled(subscription)
        elif subscription.cursor.waiting:
            self._send_next(subscription)
        elif subscription.cursor.behind:
            self._in_background(subscription, self._catch_up(subscription))
        else:
            self._settled(subscription)

    def _send_next(self, subscription: Subscription) -> None:
        sender = self._reach.sender(subscription)
        offsets = subscription.cursor.batch(sender.batch(subscription))
        notifications, size = [], 0
        for notification in map(self._recent.get, offsets):
            if notification is None or size > BATCH_BYTES:
                break
            notifications.append(notification)
            size += len(notification.content)
        if notifications:
            self._send(subscription, sender, offsets[: len(notifications)], notifications)
        else:
            self._in_background(subscription, self._read(subscription, sender, offsets))

    def _send(
        self,
        subscription: Subscription,
        sender: Sender,
        offsets: Sequence[int],
        notifications: Sequence[Notification],
    ) -> None:
        subscription.progress.busy = True
        self.totals.sends += 1
        sender.send(
            subscription, offsets, notifications, lambda outcome: self._done(subscription, offsets, outcome)
        )

    def _done(self, subscription: Subscription, offsets: Sequence[int], outcome: Outcome) -> None:
        progress = subscription.progress
        progress.busy = False
        if outcome.kind is OutcomeKind.DELIVERED:
            progress.attempt, progress.first_failure = 0, None
            progress.delivered += len(offsets)
            self.totals.delivered += len(offsets)
            self._advance(subscription, offsets)
            self._proceed(subscription)
        elif outcome.kind is not OutcomeKind.CANCELLED:
            self._failed(subscription, offsets, outcome)

    def _advance(self, subscription: Subscription, offsets: Sequence[int]) -> None:
        subscription.cursor.acknowledge(offsets[-1])
        if subscription.state is not State.ENDED:
            self._journal.advance(subscription.id, subscription.cursor.acknowledged)

    def _failed(self, subscription: Subscription, offsets: Sequence[int], outcome: Outcome) -> None:
        progress, now = subscription.progress, self._clock()
        progress.failures += 1
        progress.last_error = outcome.reason
        self.totals.failures[outcome.kind.value] = self.totals.failures.get(outcome.kind.value, 0) + 1
        if progress.first_failure is None:
            progress.first_failure = now
            log.warning("subscription %s: %s; it will be tried again", subscription.id, outcome.reason)
        if self._retry.exhausted(progress.first_failure, now):
            self._bury(subscription, offsets, outcome.reason)
            return
        self._proceed_later(
            subscription, self._retry.pause(progress.attempt, random.random(), outcome.retry_after)
        )
        progress.attempt += 1

    def _proceed_later(self, subscription: Subscription, pause: float) -> None:
        if not self._closing and subscription.deliverable:
            loop = asyncio.get_running_loop()
            self._timers[subscription] = loop.call_later(pause, self.wake, subscription)
        self._settled(subscription)

    def _bury(self, subscription: Subscription, offsets: Sequence[int], reason: str) -> None:
        log.error(
            "subscription %s: %d notifications go to the dead letters: %s",
            subscription.id,
            len(offsets),
            reason,
        )
        self.totals.buried += len(offsets)
        self._journal.bury(subscription.id, offsets, reason, self._clock())
        self._advance(subscription, offsets)
        self._proceed(subscription)

    def _in_background(self, subscription: Subscription, work: Coroutine[None, None, None]) -> None:
        subscription.progress.busy = True
        task = asyncio.get_running_loop().create_task(self._guard(subscription, work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _guard(self, subscription: Subscription, work: Coroutine[None, None, None]) -> None:
        try:
            await work
        except JournalUnavailable as error:
            subscription.progress.busy = False
            subscription.progress.last_error = str(error)
            self._proceed_later(subscription, JOURNAL_PAUSE)

    async def _read(self, subscription: Subscription, sender: Sender, offsets: Sequence[int]) -> None:
        """Send what memory no longer holds; what retention took meanwhile is passed over."""
        found = await self._journal.read(offsets)
        subscription.progress.busy = False
        last = found[-1].offset if found else offsets[-1]
        gone = {offset for offset in offsets if offset <= last} - {stored.offset for stored in found}
        if gone:
            log.error("subscription %s: %d notifications are no longer kept", subscription.id, len(gone))
            subscription.cursor.skip(gone)
        if found and subscription.deliverable and not self._closing:
            kept = [stored.offset for stored in found]
            self._send(subscription, sender, kept, [stored.notification for stored in found])
        else:
            self._proceed(subscription)

    async def _catch_up(self, subscription: Subscription) -> None:
        """Look through the next stretch of the log for what this subscription missed."""
        cursor = subscription.cursor
        scan = await self._journal.scan(
            cursor.seen,
            limit=cursor.window,
            topics=self._tree.keys(subscription.topics),
        )
        wanted = []
        for stored in scan.entries:
            if self._wants(subscription, stored.notification):
                self._recent.put(stored.offset, stored.notification)
                wanted.append(stored.offset)
        cursor.refill(wanted, upto=scan.upto, head=self.head)
        subscription.progress.busy = False
        self._proceed(subscription)

    def _wants(self, subscription: Subscription, notification: Notification) -> bool:
        if not subscription.content:
            return True
        return self._content.evaluation(notification.payload, DEFAULT_LIMITS).holds(subscription.content)

    async def settle(self, subscriptions: Iterable[Subscription]) -> None:
        """Wait until each has handed over all it could, or waits for a retry."""
        loop = asyncio.get_running_loop()
        waiting = []
        for subscription in subscriptions:
            if subscription.progress.busy or subscription in self._offered:
                future: asyncio.Future[None] = loop.create_future()
                self._settling.setdefault(subscription, []).append(future)
                waiting.append(future)
        if waiting:
            await asyncio.wait(waiting)

    def _settled(self, subscription: Subscription) -> None:
        for future in self._settling.pop(subscription, ()):
            if not future.done():
                future.set_result(None)

    def waiting(self) -> int:
        """How many subscriptions wait for a retry."""
        return len(self._timers)

    async def close(self) -> None:
        """Start nothing new; what is under way ends with its sender."""
        self._closing = True
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()
        for subscription in list(self._settling):
            self._settled(subscription)
        if self._tasks:
            await asyncio.wait(self._tasks)
