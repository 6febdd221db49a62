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

from hpwsn.broker.overflow import DEAD_LETTER, Overflow
from hpwsn.broker.push_request import Outcome, OutcomeKind
from hpwsn.broker.recent import Recent
from hpwsn.broker.retry import RetryPolicies, RetryPolicy
from hpwsn.broker.sending import Batch, Reach, Sender, Totals
from hpwsn.broker.subscription import Progress, State, Subscription
from hpwsn.errors import JournalUnavailable
from hpwsn.journal.journal import Journal
from hpwsn.matching.content import ContentFilters
from hpwsn.notification import Notification
from hpwsn.topics.tree import TopicTree
from hpwsn_client.wsn.addressing import EndpointReference

log = logging.getLogger(__name__)

BATCH_BYTES = 4 * 2**20
"""Content after which no more notifications are added to a send."""

READERS = 8
"""Subscriptions that read from the journal at once; a thousand that come back together take turns."""

JOURNAL_PAUSE = 1.0
"""Seconds until something that the journal refused is tried again."""


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
        retry: RetryPolicies,
        overflow: Overflow,
        clock: Callable[[], float],
    ) -> None:
        self._journal = journal
        self._tree = tree
        self._content = content
        self._recent = recent
        self._reach = reach
        self._retry = retry
        self._overflow = overflow
        self._clock = clock
        self._timers: dict[Subscription, asyncio.TimerHandle] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._settling: dict[Subscription, list[asyncio.Future[None]]] = {}
        self._offered: dict[Subscription, None] = {}
        self._reading = asyncio.Semaphore(READERS)
        self._closing = False
        self.head = 0
        """The newest offset that has been offered to every subscription it matches."""
        self.on_gone: Callable[[Subscription], None] | None = None
        """Told of a consumer that says it is gone for good, if its subscription is to end with it."""
        self.totals = Totals()

    def check(self, consumer: EndpointReference) -> str | None:
        """The local pull point that the reference means, if any; a fault if it can never be reached."""
        return self._reach.resolve(consumer)

    def offer(self, subscription: Subscription, offset: int) -> None:
        """A notification matched; it goes out with all others of this commit, or when its turn comes."""
        subscription.cursor.offer(offset)
        self._overflow.watch(subscription)
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
        self._overflow.watch(subscription)
        self._proceed(subscription)

    def forget(self, subscription: Subscription) -> None:
        """Drop the timer and whoever waits for it."""
        self._cancel_timer(subscription)
        self._overflow.forget(subscription)
        self._settled(subscription)

    def _cancel_timer(self, subscription: Subscription) -> None:
        timer = self._timers.pop(subscription, None)
        if timer is not None:
            timer.cancel()

    def _proceed(self, subscription: Subscription) -> None:
        """Take the next step, if none is under way: too long a queue first, then what may go out."""
        cursor = subscription.cursor
        if subscription.progress.busy:
            return
        if self._closing or subscription.state is not State.LIVE:
            self._settled(subscription)
            return
        if excess := self._overflow.excess(subscription):
            self._relieve(subscription, excess)
        elif not cursor.counted:
            self._in_background(subscription, self._catch_up(subscription))
        elif subscription in self._timers:
            return
        elif not subscription.deliverable:
            self._settled(subscription)
        elif subscription.progress.replays:
            self._in_background(subscription, self._replay(subscription))
        elif cursor.waiting:
            self._send_next(subscription)
        elif cursor.behind:
            self._in_background(subscription, self._catch_up(subscription))
        else:
            self._settled(subscription)

    def _send_next(self, subscription: Subscription) -> None:
        sender = self._reach.sender(subscription)
        offsets = subscription.cursor.batch(1 if subscription.progress.alone else sender.batch(subscription))
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
        batch = [(offset, n.time) for offset, n in zip(offsets, notifications, strict=True)]
        sender.send(
            subscription, offsets, notifications, lambda outcome: self._done(subscription, batch, outcome)
        )

    def _done(self, subscription: Subscription, batch: Batch, outcome: Outcome) -> None:
        progress = subscription.progress
        progress.busy = False
        if outcome.kind is OutcomeKind.DELIVERED:
            progress.attempt, progress.same, progress.first_failure = 0, 0, None
            progress.alone = max(0, progress.alone - len(batch))
            self._count_delivered(subscription, len(batch))
            self._advance(subscription, batch[-1][0])
            self._proceed(subscription)
        elif outcome.kind is OutcomeKind.UNAVAILABLE:
            progress.last_error = outcome.reason
            self._proceed_later(subscription, JOURNAL_PAUSE)
        elif outcome.kind is not OutcomeKind.CANCELLED:
            self._failed(subscription, batch, outcome)

    def _count_delivered(self, subscription: Subscription, count: int) -> None:
        subscription.progress.delivered += count
        self.totals.delivered += count

    def _advance(self, subscription: Subscription, upto: int) -> None:
        subscription.cursor.acknowledge(upto)
        self._overflow.watch(subscription)
        if subscription.state is not State.ENDED:
            self._journal.advance(subscription.id, subscription.cursor.acknowledged)

    def _failed(self, subscription: Subscription, batch: Batch, outcome: Outcome) -> None:
        progress, now = subscription.progress, asyncio.get_running_loop().time()
        self._count_failure(subscription, outcome)
        if progress.first_failure is None:
            progress.first_failure = now
            log.warning("subscription %s: %s; it will be tried again", subscription.id, outcome.reason)
        if outcome.gone and self.on_gone is not None:
            self.on_gone(subscription)
            return
        if outcome.kind is not progress.kind or not progress.same:
            progress.kind, progress.same, progress.tried = outcome.kind, 0, batch[-1][0]
        if len(batch) > 1 and outcome.status is not None:
            # It may be one notification that the consumer does not like: find out which.
            progress.alone = len(batch)
        policy = self._retry.of(outcome.kind)
        dead = self._dead(progress, policy, batch, now)
        if dead and (len(batch) == 1 or outcome.status is None):
            progress.attempt = progress.same = 0
            self._bury(subscription, dead, outcome.reason)
            return
        pause = policy.pause(progress.attempt, random.random(), outcome.retry_after)
        progress.attempt += 1
        progress.same += 1
        self._proceed_later(subscription, pause)

    def _dead(self, progress: Progress, policy: RetryPolicy, batch: Batch, now: float) -> list[int]:
        """The oldest of a batch that have used up their time, or were there for all attempts."""
        assert progress.first_failure is not None
        clock, first = self._clock(), progress.first_failure
        dead = []
        for offset, published in batch:
            attempts = progress.same if offset <= progress.tried else 0
            if not policy.exhausted(max(first, now - (clock - published)), now, attempts):
                break
            dead.append(offset)
        return dead

    def _count_failure(self, subscription: Subscription, outcome: Outcome) -> None:
        subscription.progress.failures += 1
        subscription.progress.last_error = outcome.reason
        failures = self.totals.failures
        failures[outcome.kind.value] = failures.get(outcome.kind.value, 0) + 1

    def _proceed_later(self, subscription: Subscription, pause: float) -> None:
        if not self._closing and subscription.deliverable:
            loop = asyncio.get_running_loop()
            self._timers[subscription] = loop.call_later(pause, self.wake, subscription)
        self._settled(subscription)

    # Queues that are too long, and notifications that nobody takes

    def _relieve(self, subscription: Subscription, excess: int) -> None:
        offsets = subscription.cursor.batch(excess)
        if not offsets:
            self._in_background(subscription, self._catch_up(subscription))
        elif self._overflow.policy(subscription) == DEAD_LETTER:
            limit = self._overflow.limit(subscription)
            self._bury(subscription, offsets, f"more than {limit} notifications waited")
        else:
            if not subscription.progress.dropped:
                log.warning("subscription %s: its queue is full, the oldest are dropped", subscription.id)
            subscription.progress.dropped += len(offsets)
            self.totals.dropped += len(offsets)
            self._advance(subscription, offsets[-1])
            self._proceed(subscription)

    def _bury(self, subscription: Subscription, offsets: Sequence[int], reason: str) -> None:
        """Make dead letters of the oldest, in the transaction that moves the cursor past them."""
        if subscription.state is State.ENDED:
            return
        log.error("subscription %s: %d dead letters: %s", subscription.id, len(offsets), reason)
        subscription.progress.busy = True
        buried = self._journal.bury(
            subscription.id,
            offsets,
            reason,
            self._clock(),
            cursor=offsets[-1],
            consumer=subscription.request.consumer.address,
        )
        buried.add_done_callback(lambda ended: self._buried(subscription, offsets, ended))

    def _buried(
        self, subscription: Subscription, offsets: Sequence[int], ended: asyncio.Future[None]
    ) -> None:
        subscription.progress.busy = False
        if ended.cancelled() or ended.exception() is not None:
            self._proceed_later(subscription, JOURNAL_PAUSE)
            return
        self.totals.buried += len(offsets)
        subscription.progress.alone = max(0, subscription.progress.alone - len(offsets))
        subscription.cursor.acknowledge(offsets[-1])
        self._overflow.watch(subscription)
        self._proceed(subscription)

    # Dead letters that an operator wants delivered after all

    def replay(self, subscription: Subscription, letters: Iterable[int]) -> None:
        """Send dead letters, by id, once more, before what waits; those that fail again stay dead letters."""
        subscription.progress.replays.update(dict.fromkeys(letters))
        self.wake(subscription)

    async def _replay(self, subscription: Subscription) -> None:
        """Send the next dead letters that are still there, one by one after a refusal."""
        replays, sender = subscription.progress.replays, self._reach.sender(subscription)
        size = 1 if subscription.progress.alone else sender.batch(subscription)
        letters = [
            letter
            for id_ in list(replays)[:size]
            if (letter := await self._journal.dead_letter(id_)) is not None or replays.pop(id_, None)
        ]
        subscription.progress.busy = False
        if not letters or not subscription.deliverable or self._closing:
            self._proceed(subscription)
            return
        subscription.progress.busy = True
        self.totals.sends += 1
        sender.send(
            subscription,
            [letter.stored.offset for letter in letters],
            [letter.stored.notification for letter in letters],
            lambda outcome: self._replayed(subscription, [letter.id for letter in letters], outcome),
        )

    def _replayed(self, subscription: Subscription, letters: Sequence[int], outcome: Outcome) -> None:
        progress = subscription.progress
        progress.busy = False
        if outcome.kind is OutcomeKind.DELIVERED:
            self._count_delivered(subscription, len(letters))
            self._journal.drop_dead_letters(letters)
        else:
            self._count_failure(subscription, outcome)
        if outcome.kind is not OutcomeKind.DELIVERED and outcome.status is None:
            progress.replays.clear()
            log.warning("subscription %s: dead letters stay: %s", subscription.id, outcome.reason)
        elif outcome.kind is not OutcomeKind.DELIVERED and len(letters) > 1:
            progress.alone = len(letters)
        else:
            for id_ in letters:
                progress.replays.pop(id_, None)
            progress.alone = max(0, progress.alone - len(letters))
        self._proceed(subscription)

    # Reading the journal

    def _in_background(self, subscription: Subscription, work: Coroutine[None, None, None]) -> None:
        subscription.progress.busy = True
        task = asyncio.get_running_loop().create_task(self._guard(subscription, work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _guard(self, subscription: Subscription, work: Coroutine[None, None, None]) -> None:
        try:
            async with self._reading:
                await work
        except JournalUnavailable as error:
            subscription.progress.busy = False
            subscription.progress.last_error = str(error)
            self._proceed_later(subscription, JOURNAL_PAUSE)
        except Exception as error:
            log.exception("subscription %s: its queue could not be read", subscription.id)
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
        # The topics are those of this moment: what comes after it may be on others.
        cursor, head, topics = subscription.cursor, self.head, self._tree.keys(subscription.topics)
        scan = await self._journal.scan(cursor.seen, limit=cursor.window, topics=topics, head=head)
        wanted = []
        for stored in scan.entries:
            if self._wants(subscription, stored.notification):
                self._recent.put(stored.offset, stored.notification)
                wanted.append(stored.offset)
        cursor.refill(wanted, upto=scan.upto, head=self.head)
        if not cursor.counted:
            # With a content filter the log does not tell how many; too few is safe, too many would drop some.
            cursor.count(0 if subscription.content else await self._journal.count(cursor.seen, topics))
        self._overflow.watch(subscription)
        subscription.progress.busy = False
        self._proceed(subscription)

    def _wants(self, subscription: Subscription, notification: Notification) -> bool:
        if not subscription.content:
            return True
        return self._content.evaluation(notification.payload).holds(subscription.content)

    # Waiting and ending

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
