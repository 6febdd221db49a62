"""The ways in which notifications leave a subscription's queue, each with its trace in the journal.

They are acknowledged, expire, are dropped because the queue is full or by the rules of its discipline, or
become dead letters. All but the first are counted, logged and reported.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence

from hpwsn.broker.delivery.queue_limits import Overflow
from hpwsn.broker.delivery.sending import Totals
from hpwsn.broker.lifetimes.message_expiry import Sorted
from hpwsn.broker.outcomes.outcome import Result
from hpwsn.broker.outcomes.reports import OutcomeReports
from hpwsn.broker.queueing.delivery_events import Buried, Bury, Drop, Event, Expire, Passed
from hpwsn.broker.subscriptions.ranked_cursor import RankedCursor
from hpwsn.broker.subscriptions.subscription import State, Subscription
from hpwsn.journal.journal import Journal

log = logging.getLogger(__name__)

MOST_NAMED = 10
"""Offsets of dropped notifications that a line of the log names."""

_ENDED = State.ENDED


class QueueExits:
    """Takes notifications out of queues."""

    def __init__(
        self,
        journal: Journal,
        overflow: Overflow,
        clock: Callable[[], float],
        reports: OutcomeReports,
        totals: Totals,
        decide: Callable[[Subscription, Event], None],
    ) -> None:
        """`decide` is told what came of a change of the journal."""
        self._journal = journal
        self._overflow = overflow
        self._clock = clock
        self._reports = reports
        self._totals = totals
        self._decide = decide

    def acknowledge(self, subscription: Subscription, offsets: Sequence[int]) -> None:
        """Be done with offsets, and have the journal know it soon."""
        cursor = subscription.cursor
        ahead = cursor.settle(offsets)
        if subscription.rejects is not False:
            self._overflow.watch(subscription)
        if subscription.state is not _ENDED:
            if ahead:
                self._journal.advance_ahead(subscription.id, ahead)
            self._journal.advance(subscription.id, cursor.acknowledged)

    def advance(self, subscription: Subscription, upto: int) -> None:
        """Move past everything up to an offset."""
        subscription.cursor.acknowledge(upto)
        if subscription.rejects is not False:
            self._overflow.watch(subscription)
        if subscription.state is not _ENDED:
            self._journal.advance(subscription.id, subscription.cursor.acknowledged)

    def passed(self, subscription: Subscription, action: Passed) -> None:
        subscription.cursor.settle(action.offsets)
        self._overflow.watch(subscription)

    def leave(self, subscription: Subscription, found: Sorted) -> None:
        subscription.progress.sent_alone(len(found.unsent))
        if subscription.cursor.ranked:
            self.acknowledge(subscription, found.unsent)
            return
        subscription.cursor.skip(set(found.unsent))
        self.advance(subscription, found.done)

    def expired(self, subscription: Subscription, action: Expire) -> None:
        """Take what waited too long out of the queue; it is counted, and not sent."""
        found = action.found
        subscription.progress.expired += len(found.unsent)
        self._totals.expired += len(found.unsent)
        self.leave(subscription, found)
        if self._reports:
            self._reports.ended(subscription, Result.EXPIRED, found.unsent, action.notifications)

    def drop_stale(self, subscription: Subscription) -> bool:
        """Drop what the rules of a ranked queue drop now; whether anything was."""
        assert isinstance(subscription.cursor, RankedCursor)
        found = subscription.cursor.stale(self._clock())
        for dropped in found:
            log.warning(
                "subscription %s: %d notifications are dropped, %s: offsets %s%s",
                subscription.id,
                len(dropped.offsets),
                dropped.reason,
                ", ".join(map(str, dropped.offsets[:MOST_NAMED])),
                ", …" if len(dropped.offsets) > MOST_NAMED else "",
            )
            self._count_dropped(subscription, dropped.offsets, dropped.reason)
            subscription.progress.sent_alone(len(dropped.offsets))
            self.acknowledge(subscription, dropped.offsets)
        return bool(found)

    def drop(self, subscription: Subscription, action: Drop) -> None:
        if not subscription.progress.dropped:
            log.warning("subscription %s: its queue is full, the oldest are dropped", subscription.id)
        self._count_dropped(subscription, action.offsets, action.reason)

    def _count_dropped(self, subscription: Subscription, offsets: Sequence[int], reason: str) -> None:
        subscription.progress.dropped += len(offsets)
        self._totals.dropped += len(offsets)
        if self._reports:
            self._reports.ended(subscription, Result.DROPPED, offsets, reason=reason)

    def bury(self, subscription: Subscription, action: Bury) -> None:
        """Make dead letters of notifications, in the transaction that moves the cursor past them."""
        if subscription.state is State.ENDED:
            return
        offsets, reason = action.offsets, action.reason
        log.error("subscription %s: %d dead letters: %s", subscription.id, len(offsets), reason)
        subscription.progress.busy = True
        upto, ahead = subscription.cursor.passing(offsets)
        buried = self._journal.bury(
            subscription.id,
            offsets,
            reason,
            self._clock(),
            cursor=upto,
            ahead=ahead,
            consumer=subscription.request.consumer.address,
        )
        buried.add_done_callback(lambda ended: self._buried(subscription, action, ended))

    def _buried(self, subscription: Subscription, action: Bury, ended: asyncio.Future[None]) -> None:
        stored = not ended.cancelled() and ended.exception() is None
        if stored:
            self._totals.buried += len(action.offsets)
            if self._reports:
                self._reports.ended(
                    subscription,
                    Result.DEAD_LETTER,
                    action.offsets,
                    failure=action.outcome,
                    reason=action.reason,
                )
        self._decide(subscription, Buried(action.offsets, stored))
