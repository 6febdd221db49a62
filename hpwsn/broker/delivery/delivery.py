"""Delivery: one ordered queue for each subscription, moved along by the outcome of every send.

This is the driver: it tells `decide` of `queueing/delivery_steps` what happened, and carries out the actions
that are the answer. What comes next in a queue is the choice of its cursor.

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
from typing import Any

from hpwsn.broker.delivery.backlog import Backlog, JournalWork, Recent
from hpwsn.broker.delivery.queue_exits import QueueExits
from hpwsn.broker.delivery.queue_limits import Overflow
from hpwsn.broker.delivery.resend import Once, give_up, next_letters, next_present
from hpwsn.broker.delivery.sending import RetryTimers, Sender, Senders, Settling, Totals
from hpwsn.broker.lifetimes.message_expiry import LOOKED_AT
from hpwsn.broker.lifetimes.retry import RetryPolicies
from hpwsn.broker.outcomes.reports import OutcomeReports
from hpwsn.broker.push.request import Outcome, OutcomeKind
from hpwsn.broker.queueing.delivery_events import (
    Acknowledge,
    Action,
    Actions,
    Bury,
    CatchUp,
    Chosen,
    Drop,
    EndSubscription,
    Event,
    Expire,
    Failed,
    Full,
    NoteTrouble,
    Passed,
    Proceed,
    ProceedSoon,
    Relieve,
    Rest,
    Send,
    SendBeside,
    SendNext,
    SentBeside,
    Settle,
)
from hpwsn.broker.queueing.delivery_steps import (
    JOURNAL_PAUSE,
    SEND_NEXT,
    SETTLE,
    decide,
    expire,
    next_step,
    note_delivery,
    send_size,
)
from hpwsn.broker.queueing.transmissions import Transmissions
from hpwsn.broker.subscriptions.audience import Audience
from hpwsn.broker.subscriptions.ranked_cursor import RankedCursor
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

# A member of an Enum is a call to look up, and these are looked up for every send.
_DELIVERED = OutcomeKind.DELIVERED
_PREVENTED = frozenset({OutcomeKind.CANCELLED, OutcomeKind.UNAVAILABLE})
"""Failures of this node, not of the consumer."""
_LIVE = State.LIVE


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
        audience: Audience,
        transmissions: Transmissions,
        clock: Callable[[], float],
        timings: Timings | None = None,
    ) -> None:
        self._journal = journal
        self._recent = recent
        self._backlog = Backlog(journal, tree, content, recent, audience, transmissions, lambda: self.head)
        self._transmissions = transmissions
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
        self._exits = QueueExits(
            journal, overflow, lambda: self._clock(), self.reports, self.totals, self._decide
        )
        self._carry_out: dict[type[Action], Callable[[Subscription, Any], None]] = {
            Settle: lambda subscription, action: self._settled(subscription),
            Relieve: self._relieve,
            CatchUp: lambda subscription, action: self._in_background(
                subscription, self._catch_up(subscription)
            ),
            SendBeside: lambda subscription, action: self._in_background(
                subscription, self._send_beside(subscription)
            ),
            SendNext: lambda subscription, action: self._send_next(subscription),
            Send: lambda subscription, action: self._post(
                subscription, self._sender(subscription), action.offsets, action.notifications
            ),
            Expire: self._exits.expired,
            Acknowledge: lambda subscription, action: self._exits.acknowledge(subscription, action.offsets),
            Passed: self._exits.passed,
            Bury: self._exits.bury,
            Drop: self._exits.drop,
            NoteTrouble: self._note_trouble,
            EndSubscription: lambda subscription, action: self.consumer_gone(subscription),
            Rest: lambda subscription, action: self._proceed_later(subscription, action.pause),
            Proceed: lambda subscription, action: self._proceed(subscription),
            ProceedSoon: lambda subscription, action: self._proceed_soon(subscription),
        }

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
        cursor = subscription.cursor
        if cursor.ranked:
            self._expect(subscription, offsets)
        cursor.offer_run(offsets)
        if subscription.rejects is not False:
            self._overflow.watch(subscription)
        if not subscription.progress.busy:
            self._proceed_soon(subscription)

    def _expect(self, subscription: Subscription, offsets: range) -> None:
        """Tell a ranked queue the times of new notifications, which nobody has yet."""
        assert isinstance(subscription.cursor, RankedCursor)
        known = {}
        for offset in offsets:
            notification = self._recent.get(offset)
            known[offset] = (self._clock() if notification is None else notification.time), 0
        subscription.cursor.expect(known)

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
        if isinstance(subscription.cursor, RankedCursor):
            subscription.cursor.release()
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
        """Take the next step, if none is under way."""
        progress, cursor = subscription.progress, subscription.cursor
        if progress.busy:
            return
        live = subscription.state is _LIVE and not self._closing
        limit, excess = subscription.queue_limit, 0
        if live and (limit is None or len(cursor.waiting) + cursor.beyond > limit):
            excess = self._overflow.excess(subscription)
        step = next_step(
            progress,
            live,
            excess,
            cursor.counted,
            subscription in self._timers,
            subscription.paused,
            progress.replays or progress.present,
            cursor.waiting,
            cursor.behind,
        )
        if step is SEND_NEXT:
            self._send_next(subscription)
        elif step is SETTLE:
            self._settled(subscription)
        else:
            self._carry_out_all(subscription, step)

    def _decide(self, subscription: Subscription, event: Event) -> None:
        self._carry_out_all(subscription, decide(subscription.progress, event))

    def _carry_out_all(self, subscription: Subscription, actions: Actions) -> None:
        for action in actions:
            self._carry_out[type(action)](subscription, action)

    def _send_next(self, subscription: Subscription) -> None:
        cursor = subscription.cursor
        if cursor.ranked and self._exits.drop_stale(subscription):
            self._proceed_soon(subscription)
            return
        sender = self._sender(subscription)
        count = 1 if subscription.progress.alone else sender.batch(subscription)
        offsets = cursor.batch(count if subscription.expires is None else max(count, LOOKED_AT))
        notifications = self._backlog.gather(offsets)
        if not notifications:
            self._in_background(subscription, self._read(subscription, offsets))
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
            self._exits.leave(subscription, found)
            offsets, notifications = found.offsets, found.notifications
        if not offsets:
            self._proceed_soon(subscription)
        elif subscription.expires is None:
            self._post(subscription, sender, offsets, notifications)
        else:
            size = send_size(subscription.progress, sender.batch(subscription))
            chosen = Chosen(offsets, notifications, subscription.expires, self._clock(), size)
            self._decide(subscription, chosen)

    def _post(
        self,
        subscription: Subscription,
        sender: Sender,
        offsets: Sequence[int],
        notifications: Sequence[Notification],
    ) -> None:
        progress = subscription.progress
        progress.busy = True
        self.totals.sends += 1
        if progress.first_failure is None:
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
        if self.reports:
            self.reports.sent(subscription, offsets, notifications, outcome)
        if outcome.kind is not _DELIVERED:
            self._failed(subscription, offsets, notifications, outcome)
            return
        if subscription.pull_point is None:
            self._timings.delivery.observe(perf_counter() - began)
        count = len(offsets)
        self._count_delivered(subscription, count)
        if self._transmissions.watched:
            self._transmissions.delivered(offsets)
        # What `decide` answers to Delivered, without an event and its actions: all notifications come here.
        note_delivery(subscription.progress, count)
        if subscription.cursor.ranked:
            self._exits.acknowledge(subscription, offsets)
        else:
            self._exits.advance(subscription, offsets[-1])
        self._proceed(subscription)

    def _failed(
        self,
        subscription: Subscription,
        offsets: Sequence[int],
        notifications: Sequence[Notification],
        outcome: Outcome,
    ) -> None:
        if outcome.kind not in _PREVENTED:
            self._count_failure(outcome)
        failed = Failed(
            outcome,
            [(offset, n.time) for offset, n in zip(offsets, notifications, strict=True)],
            self._retry.of(outcome.kind),
            asyncio.get_running_loop().time(),
            self._clock(),
            random.random(),
            bool(self.consumer_gone),
        )
        self._decide(subscription, failed)

    def _count_failure(self, outcome: Outcome) -> None:
        failures = self.totals.failures
        failures[outcome.kind.value] = failures.get(outcome.kind.value, 0) + 1

    def _note_trouble(self, subscription: Subscription, action: NoteTrouble) -> None:
        log.warning("subscription %s: %s; it will be tried again", subscription.id, action.reason)

    def _count_delivered(self, subscription: Subscription, count: int) -> None:
        self.totals.delivered += count
        self.rates.new[subscription] += count

    def _proceed_later(self, subscription: Subscription, pause: float) -> None:
        if not self._closing and subscription.deliverable:
            self._timers.set(subscription, pause)
        self._settled(subscription)

    # Notifications that waited too long

    def expire(self, subscription: Subscription) -> None:
        """Let what waited too long go, also where nothing is sent now: a pause, or a consumer away."""
        cursor = subscription.cursor
        if subscription.progress.busy or self._closing or subscription.state is not State.LIVE:
            return
        if (subscription.expires is not None or cursor.ranked) and (cursor.waiting or cursor.behind):
            self._in_background(subscription, self._expire(subscription))

    async def _expire(self, subscription: Subscription) -> None:
        cursor, fresh = subscription.cursor, False
        while not fresh and (cursor.waiting or cursor.behind) and not self._closing:
            if not cursor.waiting:
                await self._backlog.look_on(subscription)
            elif not (cursor.ranked and self._exits.drop_stale(subscription)):
                fresh = subscription.expires is None or await self._expire_oldest(subscription)
        subscription.progress.busy = False
        self._proceed(subscription)

    async def _expire_oldest(self, subscription: Subscription) -> bool:
        """Let the oldest of a queue go that waited too long; whether one of those looked at did not."""
        cursor = subscription.cursor
        assert subscription.expires is not None
        stored = await self._journal.read(offsets := cursor.oldest(LOOKED_AT))
        kept = [each.offset for each in stored]
        notifications = [each.notification for each in stored]
        found, actions = expire(subscription.expires, kept, notifications, self._clock())
        self._carry_out_all(subscription, actions)
        return bool(found.offsets) or offsets == cursor.oldest(LOOKED_AT)

    # Queues that are too long, and notifications that nobody takes

    def _relieve(self, subscription: Subscription, action: Relieve) -> None:
        offsets = subscription.cursor.oldest(action.excess)
        policy, limit = self._overflow.policy(subscription), self._overflow.limit(subscription)
        self._decide(subscription, Full(offsets, limit, policy))

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
            size = send_size(progress, sender.batch(subscription))
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
        count = len(once.stored)
        if self.reports:
            offsets = [stored.offset for stored in once.stored]
            self.reports.sent(subscription, offsets, [each.notification for each in once.stored], outcome)
        if outcome.kind is _DELIVERED:
            self._count_delivered(subscription, count)
        else:
            self._count_failure(outcome)
        actions = decide(subscription.progress, SentBeside(outcome, count))
        once.note(outcome)
        self._carry_out_all(subscription, actions)

    # Reading the journal

    async def _read(self, subscription: Subscription, offsets: Sequence[int]) -> None:
        """Send what memory no longer holds; what retention took meanwhile is passed over."""
        found = await self._journal.read(offsets)
        subscription.progress.busy = False
        last = found[-1].offset if found else max(offsets)
        gone = {offset for offset in offsets if offset <= last} - {stored.offset for stored in found}
        if gone:
            log.error("subscription %s: %d notifications are no longer kept", subscription.id, len(gone))
            subscription.cursor.skip(gone)
        if found and subscription.deliverable and not self._closing:
            chosen = {offset: place for place, offset in enumerate(offsets)}
            found.sort(key=lambda stored: chosen[stored.offset])
            kept = [stored.offset for stored in found]
            self._send(
                subscription, self._sender(subscription), kept, [stored.notification for stored in found]
            )
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

    def announced(self, subscription: Subscription) -> bool:
        """The consumer says that it is reachable: deliver what waits now; False if it may get nothing."""
        if not subscription.deliverable or self._closing:
            return False
        if subscription.progress.busy:
            # A send that was begun before the consumer came back may still fail.
            subscription.progress.announced = True
        self.retry(subscription)
        return True

    async def close(self) -> None:
        """Start nothing new; what is under way ends with its sender."""
        self._closing = True
        self._timers.close()
        self._settling.close()
        await self._work.close()
