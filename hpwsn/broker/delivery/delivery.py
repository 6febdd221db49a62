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
from collections.abc import Callable, Iterable, Sequence
from time import perf_counter

from hpwsn.broker.delivery.backlog import Backlog, JournalWork, Recent
from hpwsn.broker.delivery.queue_limits import DEAD_LETTER, Overflow
from hpwsn.broker.delivery.resend import Once, give_up, next_letters, next_present
from hpwsn.broker.delivery.sending import Attempt, RetryTimers, Sender, Senders, Settling, Totals, worn_out
from hpwsn.broker.lifetimes.message_expiry import LOOKED_AT, Sorted, sort_out
from hpwsn.broker.lifetimes.retry import RetryPolicies
from hpwsn.broker.outcomes.outcome import Result
from hpwsn.broker.outcomes.reports import OutcomeReports
from hpwsn.broker.push.request import Outcome, OutcomeKind
from hpwsn.broker.subscriptions.subscription import State, Subscriber, Subscription
from hpwsn.histogram import Timings
from hpwsn.journal.journal import Journal
from hpwsn.listeners import Listeners
from hpwsn.matching.content.content_filters import ContentFilters
from hpwsn.notification import Notification
from hpwsn.recent_rates import RecentRates
from hpwsn.topics.tree.tree import TopicTree
from hpwsn_client.wsn.soap.addressing import EndpointReference

log = logging.getLogger(__name__)

JOURNAL_PAUSE = 1.0
"""Seconds until something that the journal refused is tried again."""

# A member of an Enum is a call to look up, and these are looked up for every send.
_DELIVERED = OutcomeKind.DELIVERED
_LIVE, _ENDED = State.LIVE, State.ENDED


class Delivery:
    """Moves every subscription's cursor."""

    def __init__(
        self,
        *,
        journal: Journal,
        tree: TopicTree[Subscriber],
        content: ContentFilters,
        recent: Recent,
        senders: Senders,
        retry: RetryPolicies,
        overflow: Overflow,
        clock: Callable[[], float],
        timings: Timings | None = None,
    ) -> None:
        self._journal = journal
        self._recent = recent
        self._backlog = Backlog(journal, tree, content, recent, lambda: self.head)
        self.withheld = self._backlog.withheld
        self._senders = senders
        self._retry = retry
        self._overflow = overflow
        self._clock = clock
        self._timings = timings or Timings()
        self._timers = RetryTimers(self.wake)
        self._work = JournalWork(lambda subscription: self._proceed_later(subscription, JOURNAL_PAUSE))
        self._in_background = self._work.start
        self._settling = Settling()
        self._offered: dict[Subscription, None] = {}
        self._closing = False
        self.head = 0
        """The newest offset that has been offered to every subscription it matches."""
        self.consumer_gone: Listeners[Subscription] = Listeners("a consumer that is gone")
        """Told of a consumer that says it is gone for good, if its subscription is to end with it."""
        self.reports = OutcomeReports(clock)
        """Told of every outcome."""
        self.totals = Totals()
        self.rates: RecentRates[Subscription] = RecentRates()
        """Notifications per second that each subscription got lately."""

    def check(self, consumer: EndpointReference, *, webhook: bool = False) -> str | None:
        """The local pull point that the reference means, if any; a fault if it can never be reached."""
        return self._senders.resolve(consumer, webhook=webhook)

    def offer(self, subscription: Subscription, offsets: range) -> None:
        """These matched; they go out with all others of this commit, or when their turn comes."""
        if not subscription.producer_holds:
            for offset in offsets:
                if subscription.cursor.pass_over(offset):
                    self._journal.advance(subscription.id, offset)
            return
        subscription.cursor.offer_run(offsets)
        if subscription.rejects is not False:
            self._overflow.watch(subscription)
        if not subscription.progress.busy:
            self._proceed_soon(subscription)

    def _proceed_soon(self, subscription: Subscription) -> None:
        if not self._offered:
            asyncio.get_running_loop().call_soon(self._proceed_offered)
        self._offered[subscription] = None

    def _proceed_offered(self) -> None:
        offered, self._offered = self._offered, {}
        for subscription in offered:
            self._proceed(subscription)

    def wake(self, subscription: Subscription) -> None:
        """Deliver what waits now, without sitting out a pause before a retry."""
        self._timers.cancel(subscription)
        self._overflow.watch(subscription)
        self._proceed(subscription)

    def forget(self, subscription: Subscription) -> None:
        """Drop the timer and whoever waits for it."""
        give_up(subscription)
        self._timers.cancel(subscription)
        self._overflow.forget(subscription)
        self._settled(subscription)

    def _settled(self, subscription: Subscription) -> None:
        if self._settling.waiting:
            self._settling.settled(subscription)

    def _sender(self, subscription: Subscription) -> Sender:
        if subscription.pull_point is not None:
            return self._senders.pull
        return self._senders.push if subscription.webhook is None else self._senders.webhook

    def _proceed(self, subscription: Subscription) -> None:
        """Take the next step, if none is under way: too long a queue first, then what may go out."""
        cursor = subscription.cursor
        if subscription.progress.busy:
            return
        if self._closing or subscription.state is not _LIVE:
            self._settled(subscription)
            return
        limit = subscription.queue_limit
        if limit is None or len(cursor.waiting) + cursor.beyond > limit:
            excess = self._overflow.excess(subscription)
            if excess:
                self._relieve(subscription, excess)
                return
        if not cursor.counted:
            self._in_background(subscription, self._catch_up(subscription))
        elif subscription in self._timers:
            return
        elif subscription.paused:
            self._settled(subscription)
        elif subscription.progress.replays or subscription.progress.present:
            self._in_background(subscription, self._send_beside(subscription))
        elif cursor.waiting:
            self._send_next(subscription)
        elif cursor.behind:
            self._in_background(subscription, self._catch_up(subscription))
        else:
            self._settled(subscription)

    def _send_next(self, subscription: Subscription) -> None:
        sender = self._sender(subscription)
        count = 1 if subscription.progress.alone else sender.batch(subscription)
        offsets = subscription.cursor.batch(count if subscription.expires is None else max(count, LOOKED_AT))
        notifications = self._backlog.gather(offsets)
        if not notifications:
            self._in_background(subscription, self._read(subscription, sender, offsets))
            return
        if len(notifications) < len(offsets):
            offsets = offsets[: len(notifications)]
        self._send(subscription, sender, offsets, notifications)

    def _send(
        self,
        subscription: Subscription,
        sender: Sender,
        offsets: Sequence[int],
        notifications: Sequence[Notification],
    ) -> None:
        if found := self._backlog.concealed(offsets, notifications):
            self._leave(subscription, found)
            offsets, notifications = found.offsets, found.notifications
        if subscription.expires is not None and offsets:
            offsets, notifications = self._unexpired(subscription, sender, offsets, notifications)
        if not offsets:
            self._proceed_soon(subscription)
            return
        subscription.progress.busy = True
        self.totals.sends += 1
        if subscription.progress.first_failure is None:
            self._timings.queue_wait.observe(self._clock() - notifications[0].time)
        began = perf_counter()
        sender.send(
            subscription,
            offsets,
            notifications,
            lambda outcome: self._done(subscription, offsets, notifications, outcome, began),
        )

    def _done(
        self,
        subscription: Subscription,
        offsets: Sequence[int],
        notifications: Sequence[Notification],
        outcome: Outcome,
        began: float,
    ) -> None:
        progress = subscription.progress
        progress.busy = False
        if self.reports:
            self.reports.sent(subscription, offsets, notifications, outcome)
        if outcome.kind is _DELIVERED:
            if progress.alone:
                progress.alone = max(0, progress.alone - len(offsets))
            if subscription.pull_point is None:
                self._timings.delivery.observe(perf_counter() - began)
            self._count_delivered(subscription, len(offsets))
            self._advance(subscription, offsets[-1])
            self._proceed(subscription)
        elif outcome.kind is OutcomeKind.UNAVAILABLE:
            progress.last_error = outcome.reason
            self._proceed_later(subscription, JOURNAL_PAUSE)
        elif outcome.kind is not OutcomeKind.CANCELLED:
            batch = [(offset, n.time) for offset, n in zip(offsets, notifications, strict=True)]
            self._failed(subscription, batch, outcome)

    def _count_delivered(self, subscription: Subscription, count: int) -> None:
        subscription.progress.note_delivered(count)
        self.totals.delivered += count
        self.rates.new[subscription] += count

    def _advance(self, subscription: Subscription, upto: int) -> None:
        subscription.cursor.acknowledge(upto)
        if subscription.rejects is not False:
            self._overflow.watch(subscription)
        if subscription.state is not _ENDED:
            self._journal.advance(subscription.id, subscription.cursor.acknowledged)

    def _failed(self, subscription: Subscription, attempt: Attempt, outcome: Outcome) -> None:
        progress, now = subscription.progress, asyncio.get_running_loop().time()
        self._count_failure(subscription, outcome)
        if progress.first_failure is None:
            progress.first_failure = now
            log.warning("subscription %s: %s; it will be tried again", subscription.id, outcome.reason)
        if outcome.gone:
            self.consumer_gone(subscription)
            return
        if outcome.kind is not progress.kind or not progress.same:
            progress.kind, progress.same, progress.tried = outcome.kind, 0, attempt[-1][0]
        if len(attempt) > 1 and outcome.status is not None:
            # It may be one notification that the consumer does not like: find out which.
            progress.alone = len(attempt)
        policy = self._retry.of(outcome.kind)
        dead = worn_out(progress, policy, attempt, now, self._clock())
        if dead and (len(attempt) == 1 or outcome.status is None):
            progress.attempt = progress.same = 0
            self._bury(subscription, dead, outcome.reason, outcome)
            return
        pause = policy.pause(progress.attempt, random.random(), outcome.retry_after)
        progress.attempt += 1
        progress.same += 1
        self._proceed_later(subscription, pause)

    def _count_failure(self, subscription: Subscription, outcome: Outcome) -> None:
        subscription.progress.failures += 1
        subscription.progress.last_error = outcome.reason
        failures = self.totals.failures
        failures[outcome.kind.value] = failures.get(outcome.kind.value, 0) + 1

    def _proceed_later(self, subscription: Subscription, pause: float) -> None:
        if not self._closing and subscription.deliverable:
            self._timers.set(subscription, pause)
        self._settled(subscription)

    # Notifications that waited too long

    def _unexpired(
        self,
        subscription: Subscription,
        sender: Sender,
        offsets: Sequence[int],
        notifications: Sequence[Notification],
    ) -> tuple[Sequence[int], Sequence[Notification]]:
        """As many as go into one send of those that may still go out; the others leave the queue."""
        assert subscription.expires is not None
        found = sort_out(subscription.expires, offsets, notifications, self._clock())
        if found.unsent:
            subscription.progress.expired += len(found.unsent)
            self.totals.expired += len(found.unsent)
            self._leave(subscription, found)
            if self.reports:
                left = [n for offset, n in zip(offsets, notifications, strict=True) if offset in found.unsent]
                self.reports.ended(subscription, Result.EXPIRED, found.unsent, left)
        count = 1 if subscription.progress.alone else sender.batch(subscription)
        return found.offsets[:count], found.notifications[:count]

    def _leave(self, subscription: Subscription, found: Sorted) -> None:
        subscription.cursor.skip(set(found.unsent))
        subscription.progress.alone = max(0, subscription.progress.alone - len(found.unsent))
        self._advance(subscription, found.done)

    def expire(self, subscription: Subscription) -> None:
        """Let what waited too long go, also where nothing is sent now: a pause, or a consumer away."""
        cursor = subscription.cursor
        if subscription.progress.busy or self._closing or subscription.state is not State.LIVE:
            return
        if subscription.expires is not None and (cursor.waiting or cursor.behind):
            self._in_background(subscription, self._expire(subscription))

    async def _expire(self, subscription: Subscription) -> None:
        cursor, sender, fresh = subscription.cursor, self._sender(subscription), False
        while not fresh and (cursor.waiting or cursor.behind) and not self._closing:
            if not cursor.waiting:
                await self._backlog.look_on(subscription)
                continue
            found = await self._journal.read(offsets := cursor.batch(LOOKED_AT))
            kept = [stored.offset for stored in found]
            rest, _ = self._unexpired(subscription, sender, kept, [stored.notification for stored in found])
            fresh = bool(rest) or offsets == cursor.batch(LOOKED_AT)
        subscription.progress.busy = False
        self._proceed(subscription)

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
            if self.reports:
                self.reports.ended(subscription, Result.DROPPED, offsets, reason="the queue was full")
            self._advance(subscription, offsets[-1])
            self._proceed(subscription)

    def _bury(
        self,
        subscription: Subscription,
        offsets: Sequence[int],
        reason: str,
        outcome: Outcome | None = None,
    ) -> None:
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
        buried.add_done_callback(lambda ended: self._buried(subscription, offsets, reason, outcome, ended))

    def _buried(
        self,
        subscription: Subscription,
        offsets: Sequence[int],
        reason: str,
        outcome: Outcome | None,
        ended: asyncio.Future[None],
    ) -> None:
        subscription.progress.busy = False
        if ended.cancelled() or ended.exception() is not None:
            self._proceed_later(subscription, JOURNAL_PAUSE)
            return
        self.totals.buried += len(offsets)
        if self.reports:
            self.reports.ended(subscription, Result.DEAD_LETTER, offsets, failure=outcome, reason=reason)
        subscription.progress.alone = max(0, subscription.progress.alone - len(offsets))
        subscription.cursor.acknowledge(offsets[-1])
        self._overflow.watch(subscription)
        self._proceed(subscription)

    def tell(
        self, subscription: Subscription, notification: Notification, done: Callable[[Outcome], None]
    ) -> None:
        """Send one notification that is not in the log, once; whoever asks sees to it that nothing waits."""
        self._sender(subscription).send(subscription, [], [notification], done)

    # What goes out once, beside the queue

    def replay(self, subscription: Subscription, letter: int, note: Callable[[bool], None]) -> None:
        """Send a dead letter, by id, once more, before what waits; if it fails again, it stays a dead letter.

        `note` is told whether it was delivered.
        """
        progress = subscription.progress
        if progress.replays is None:
            progress.replays = {}
        progress.replays.setdefault(letter, []).append(note)
        self.wake(subscription)

    def synchronize(self, subscription: Subscription) -> None:
        """Send the current message of each of its topics once more, before what waits.

        What it has still to get comes anyway. It is tried once: who asked can ask again.
        """
        subscription.progress.present = self._backlog.present(subscription)
        self.wake(subscription)

    async def _send_beside(self, subscription: Subscription) -> None:
        progress, sender = subscription.progress, self._sender(subscription)
        if progress.replays:
            size = 1 if progress.alone else sender.batch(subscription)
            once = await next_letters(self._journal, self._backlog, subscription, size)
        else:
            size = sender.batch(subscription)
            once = await next_present(self._journal, self._backlog, subscription, size)
        progress.busy = bool(once.stored) and subscription.deliverable and not self._closing
        if not progress.busy:
            self._proceed(subscription)
            return
        self.totals.sends += 1
        sender.send(
            subscription,
            [stored.offset for stored in once.stored],
            [stored.notification for stored in once.stored],
            lambda outcome: self._sent_beside(subscription, once, outcome),
        )

    def _sent_beside(self, subscription: Subscription, once: Once, outcome: Outcome) -> None:
        subscription.progress.busy = False
        if self.reports:
            offsets = [stored.offset for stored in once.stored]
            self.reports.sent(subscription, offsets, [each.notification for each in once.stored], outcome)
        if outcome.kind is _DELIVERED:
            self._count_delivered(subscription, len(once.stored))
        else:
            self._count_failure(subscription, outcome)
        once.note(outcome)
        self._proceed(subscription)

    # Reading the journal

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
        await self._backlog.look_on(subscription)
        self._overflow.watch(subscription)
        subscription.progress.busy = False
        self._proceed(subscription)

    # Waiting and ending

    async def settle(self, subscriptions: Iterable[Subscription]) -> None:
        """Wait until each has handed over all it could, or waits for a retry."""
        await self._settling.wait(
            subscription
            for subscription in subscriptions
            if subscription.progress.busy or subscription in self._offered
        )

    def waiting(self) -> int:
        """How many subscriptions wait for a retry."""
        return len(self._timers)

    def next_attempt(self, subscription: Subscription) -> float | None:
        """When it is tried again, in seconds since 1970; None if it does not wait for a retry."""
        pause = self._timers.remaining(subscription)
        return None if pause is None else self._clock() + pause

    def retry(self, subscription: Subscription) -> None:
        """Try a failing consumer now; the pauses start again, the limits of its retries do not."""
        subscription.progress.attempt = 0
        self.wake(subscription)

    async def close(self) -> None:
        """Start nothing new; what is under way ends with its sender."""
        self._closing = True
        self._timers.close()
        self._settling.close()
        await self._work.close()
