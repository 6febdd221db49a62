"""The registry of subscriptions: create, renew, pause, end, and restore after a restart.

Follows WS-BaseNotification 1.3, sections 4 (Subscribe) and 6 (the managers). Every change is in the journal
before its answer is sent. An expired subscription has a grace period in which a Renew revives it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from hpwsn.broker.lifetimes.leases import Lifetimes, end_of
from hpwsn.broker.queueing.cet_rules import cet_rules
from hpwsn.broker.queueing.transmissions import Transmissions
from hpwsn.broker.subscriptions.audience import Audience
from hpwsn.broker.subscriptions.cursor import Cursor
from hpwsn.broker.subscriptions.producer_conditions import Conditions
from hpwsn.broker.subscriptions.ranked_cursor import RankedCursor
from hpwsn.broker.subscriptions.resource_addresses import PLAIN_IDS, ResourceIds
from hpwsn.broker.subscriptions.stored_subscribe import parse_stored_subscribe
from hpwsn.broker.subscriptions.subscribe_policy import check_grantable
from hpwsn.broker.subscriptions.subscription import State, Subscription, subscription_key
from hpwsn.broker.subscriptions.webhook import webhook_of
from hpwsn.journal.journal import Journal
from hpwsn.journal.store.records import SubscriptionRecord
from hpwsn.listeners import Listeners
from hpwsn.matching.content.content_filters import ContentFilters
from hpwsn_client.wsn.operations.filters import Filter
from hpwsn_client.wsn.operations.messages import Subscribe, encode_message
from hpwsn_client.wsn.soap import faults
from hpwsn_client.wsn.soap.addressing import EndpointReference
from hpwsn_client.wsn.soap.envelope import SoapVersion
from hpwsn_client.wsn.soap.times import Termination

Clock = Callable[[], float]

log = logging.getLogger(__name__)

EXPIRE_AGAIN = 5.0
"""Seconds until the removal of an expired subscription is retried after the journal failed."""

RESTORE_STEP = 2000
"""Subscriptions between two log lines about the progress of a restart."""


class Consumers(Protocol):
    """The part of delivery that the registry uses."""

    def check(self, consumer: EndpointReference, *, webhook: bool = False) -> str | None:
        """The id of the local pull point, or None for a push; a fault for an unusable reference."""

    def wake(self, subscription: Subscription) -> None:
        """Deliver the backlog, if the subscription is not paused or expired."""

    async def settle(self, subscriptions: Iterable[Subscription]) -> None:
        """Wait until each subscription has delivered all it can."""

    def forget(self, subscription: Subscription) -> None:
        """Drop the timers and other state of a subscription."""


@dataclass(frozen=True, slots=True)
class SubscriptionSettings:
    """Limits of the registry; `grace` and `max_lifetime` in seconds, 0 for no maximum."""

    limit: int = 1_000_000
    grace: float = 60.0
    max_lifetime: float = 0.0
    window: int = 1024
    raw_only: bool = False


class Subscriptions:
    """The registry and life cycle of subscriptions."""

    def __init__(
        self,
        *,
        audience: Audience,
        content: ContentFilters,
        conditions: Conditions,
        journal: Journal,
        consumers: Consumers,
        base_url: Callable[[], str],
        clock: Clock,
        settings: SubscriptionSettings,
        transmissions: Transmissions,
        ids: ResourceIds = PLAIN_IDS,
    ) -> None:
        self._audience = audience
        self._content = content
        self._conditions = conditions
        self._journal = journal
        self._consumers = consumers
        self._base_url = base_url
        self._clock = clock
        self._settings = settings
        self._transmissions = transmissions
        self._ids = ids
        self._by_id: dict[str, Subscription] = {}
        self._by_key: dict[object, Subscription] = {}
        self._by_pull_point: dict[str, set[Subscription]] = {}
        self._lifetimes: Lifetimes[str] = Lifetimes()
        self.lifetimes_changed: Listeners[()] = Listeners("lifetimes of subscriptions")
        self.created: Listeners[Subscription] = Listeners("a new subscription")
        """Called once a subscription is stored; not for those that a restart restores."""
        self.ended: Listeners[Subscription] = Listeners("the end of a subscription")
        self.interest_changed: Listeners[Subscription] = Listeners("the interest of a subscription")
        """Called for each subscription that starts or stops to want notifications."""
        self.check_filter: Callable[[Filter], None] = lambda wanted: None
        """Raises a fault for a filter that no notification here can match."""

    async def subscribe(self, request: Subscribe, version: SoapVersion) -> Subscription:
        """Create the subscription, or renew the lease of the existing equal one."""
        now = self._clock()
        terminates = self._terminates(
            request.termination, now, faults.UnacceptableInitialTerminationTimeFault
        )
        pull_point = self._pull_point(request)
        key = subscription_key(request, pull_point)
        while (repeated := self._by_key.get(key)) is not None:
            if await self._repeat(repeated, terminates):
                return repeated
        return await self._create(request, version, now, terminates, pull_point)

    async def _repeat(self, subscription: Subscription, terminates: float | None) -> bool:
        """Renew the lease; False if the subscription ended in the meantime."""
        try:
            await self._prolong(subscription, terminates)
        except faults.ResourceUnknownFault:
            return False
        return True

    async def _create(
        self,
        request: Subscribe,
        version: SoapVersion,
        now: float,
        terminates: float | None,
        pull_point: str | None,
    ) -> Subscription:
        if len(self._by_id) >= self._settings.limit:
            raise faults.SubscribeCreationFailedFault(
                f"this node holds its limit of {self._settings.limit} subscriptions"
                " (subscriptions.limit); end some or raise it"
            )
        check_grantable(request, pull_point, raw_only=self._settings.raw_only)
        self.check_filter(request.filter)
        subscription = self._build(
            self._ids(), request, version, now, terminates, pull_point, self._journal.last_offset
        )
        self._admit(subscription)
        try:
            if subscription.producer_properties:
                await self._conditions.look()
            await self._journal.put_subscription(self._record(subscription))
        except BaseException:
            self._remove(subscription)
            raise
        self.created(subscription)
        return subscription

    def _build(
        self,
        id_: str,
        request: Subscribe,
        version: SoapVersion,
        created: float,
        terminates: float | None,
        pull_point: str | None,
        cursor: int,
        ahead: Sequence[int] = (),
    ) -> Subscription:
        return Subscription(
            id=id_,
            request=request,
            version=version,
            created=created,
            terminates=terminates,
            cursor=self._cursor(request, cursor, ahead),
            base_url=self._base_url(),
            pull_point=pull_point,
        )

    def _cursor(self, request: Subscribe, acknowledged: int, ahead: Sequence[int]) -> Cursor:
        """The place in the log, of the kind that the discipline of the queue needs."""
        window, head = self._settings.window, self._journal.last_offset
        rules = cet_rules(request.policy.delivery)
        if rules is None:
            return Cursor(acknowledged, window=window, head=head)
        return RankedCursor(
            acknowledged,
            window=window,
            head=head,
            rules=rules,
            transmissions=self._transmissions,
            ahead=ahead,
        )

    def _admit(self, subscription: Subscription, *, restore: bool = False) -> None:
        self._conditions.watch(subscription)
        try:
            self._content.acquire(subscription.content)
        except BaseException:
            self._conditions.forget(subscription)
            raise
        try:
            self._audience.enter(subscription, restore=restore)
        except BaseException:
            self._conditions.forget(subscription)
            self._content.release(subscription.content)
            raise
        self._by_id[subscription.id] = subscription
        self._by_key[subscription.key] = subscription
        if subscription.pull_point is not None:
            self._by_pull_point.setdefault(subscription.pull_point, set()).add(subscription)
        self._watch(subscription)
        self.interest_changed(subscription)

    def find_same(self, request: Subscribe) -> Subscription | None:
        """The existing subscription that is equal to the request, or None."""
        return self._by_key.get(subscription_key(request, self._pull_point(request)))

    def _pull_point(self, request: Subscribe) -> str | None:
        return self._consumers.check(request.consumer, webhook=webhook_of(request) is not None)

    def find(self, id_: str) -> Subscription | None:
        """The subscription by its id, or None."""
        return self._by_id.get(id_)

    def get(self, id_: str) -> Subscription:
        """The subscription by its id, even if expired; ResourceUnknownFault if it does not exist."""
        subscription = self._by_id.get(id_)
        if subscription is None:
            raise _unknown(id_)
        return subscription

    def live(self, id_: str) -> Subscription:
        """The subscription by its id; ResourceUnknownFault if it does not exist or has expired."""
        return self._live(id_)

    def _live(self, id_: str) -> Subscription:
        subscription = self.get(id_)
        if subscription.state is not State.LIVE:
            raise faults.ResourceUnknownFault(
                f"subscription {id_!r} ended when its termination time passed;"
                " subscribe again, or Renew it at once"
            )
        return subscription

    async def renew(self, id_: str, termination: Termination) -> Subscription:
        """Renew the lease; within the grace period this revives an expired subscription."""
        subscription = self.get(id_)
        terminates = self._terminates(termination, self._clock(), faults.UnacceptableTerminationTimeFault)
        await self._prolong(subscription, terminates)
        return subscription

    async def keep_alive(self, id_: str, until: float) -> Subscription:
        """Extend the lease to `until`, within the maximum lifetime; never shorten it."""
        subscription = self._live(id_)
        longest = self._settings.max_lifetime
        until = min(until, self._clock() + longest) if longest else until
        if subscription.terminates is not None and subscription.terminates < until:
            await self._prolong(subscription, until)
        return subscription

    async def _prolong(self, subscription: Subscription, terminates: float | None) -> None:
        before = subscription.terminates
        subscription.terminates = terminates
        self._watch(subscription)
        try:
            await self._journal.put_subscription(self._record(subscription))
        except BaseException:
            if subscription.state is not State.ENDED:
                subscription.terminates = before
                self._watch(subscription)
            raise
        if subscription.state is State.EXPIRED:
            self._revive(subscription)
        await self._refuse_ended(subscription)

    async def _refuse_ended(self, subscription: Subscription) -> None:
        """Prevent a change that races with the end from restoring the record."""
        if subscription.state is State.ENDED:
            await self._journal.delete_subscription(subscription.id)
            raise _unknown(subscription.id)

    def _revive(self, subscription: Subscription) -> None:
        self._audience.enter(subscription, restore=True)
        subscription.state = State.LIVE
        subscription.cursor.rewind(self._journal.last_offset)
        self._consumers.wake(subscription)
        self.interest_changed(subscription)

    async def pause(self, id_: str) -> None:
        """Stop deliveries; new notifications stay in the backlog."""
        await self._set_paused(self._live(id_), True)

    async def resume(self, id_: str) -> None:
        """Resume deliveries, beginning with the backlog."""
        subscription = self._live(id_)
        await self._set_paused(subscription, False)
        self._consumers.wake(subscription)

    async def _set_paused(self, subscription: Subscription, paused: bool) -> None:
        before, subscription.paused = subscription.paused, paused
        try:
            await self._journal.put_subscription(self._record(subscription))
        except BaseException:
            subscription.paused = before
            raise
        self.interest_changed(subscription)
        await self._refuse_ended(subscription)

    async def unsubscribe(self, id_: str) -> None:
        """End the subscription and free its state."""
        subscription = self._live(id_)
        if subscription.pull_point is not None:
            # Notifications accepted before the end still go to the pull point.
            await self._consumers.settle([subscription])
        await self.end_all([subscription])

    def consumer_gone(self, subscription: Subscription) -> None:
        """End a subscription whose consumer is gone for good."""
        log.warning("subscription %s ends: %s", subscription.id, subscription.progress.last_error)
        if subscription.state is not State.ENDED:
            self._remove(subscription)
            self._journal.delete_subscription(subscription.id)

    async def end_all(self, subscriptions: Iterable[Subscription]) -> None:
        """End several subscriptions in any state."""
        for subscription in list(subscriptions):
            await self._journal.delete_subscription(subscription.id)
            if subscription.state is not State.ENDED:
                self._remove(subscription)

    def _remove(self, subscription: Subscription) -> None:
        if subscription.state is State.LIVE:
            self._audience.leave(subscription)
        subscription.state = State.ENDED
        self.interest_changed(subscription)
        self._content.release(subscription.content)
        self._conditions.forget(subscription)
        self._lifetimes.discard(subscription.id)
        self._consumers.forget(subscription)
        del self._by_id[subscription.id]
        if self._by_key.get(subscription.key) is subscription:
            del self._by_key[subscription.key]
        if subscription.pull_point is not None:
            leading = self._by_pull_point[subscription.pull_point]
            leading.discard(subscription)
            if not leading:
                del self._by_pull_point[subscription.pull_point]
        self.ended(subscription)

    def leading_to(self, pull_point: str) -> list[Subscription]:
        """The subscriptions that deliver into this pull point."""
        return list(self._by_pull_point.get(pull_point, ()))

    def restore(self, records: Iterable[SubscriptionRecord]) -> int:
        """Restore the subscriptions of the journal at their cursors; return their number."""
        count = 0
        for record in records:
            if count and count % RESTORE_STEP == 0:
                log.info("%d subscriptions restored so far", count)
            subscription = self._build(
                record.id,
                parse_stored_subscribe(record.request),
                SoapVersion[record.version],
                record.created,
                record.terminates,
                record.address,
                record.cursor,
                record.ahead,
            )
            subscription.paused = record.paused
            self._admit(subscription, restore=True)
            count += 1
        return count

    def wake_all(self) -> None:
        """Deliver the backlog of all subscriptions, as after a restart."""
        for subscription in list(self._by_id.values()):
            self._consumers.wake(subscription)

    def next_due(self) -> float | None:
        """When the next lease or grace period ends; None if none does."""
        return self._lifetimes.next_due()

    async def expire(self, now: float) -> int:
        """Expire due subscriptions, end those past their grace period; return how many were due."""
        ended = []
        due = self._lifetimes.due(now)
        for id_ in due:
            subscription = self._by_id.get(id_)
            if subscription is None:
                continue
            if subscription.state is State.LIVE and self._settings.grace > 0:
                self._audience.leave(subscription)
                subscription.state = State.EXPIRED
                self.interest_changed(subscription)
                self._watch(subscription)
            else:
                ended.append(subscription)
        try:
            await self.end_all(ended)
        finally:
            for subscription in ended:
                if subscription.state is not State.ENDED:
                    self._lifetimes.set(subscription.id, now + EXPIRE_AGAIN)
        return len(due)

    def _watch(self, subscription: Subscription) -> None:
        when = subscription.terminates
        if when is not None and subscription.state is State.EXPIRED:
            when += self._settings.grace
        self._lifetimes.set(subscription.id, when)
        self.lifetimes_changed()

    def _terminates(
        self,
        termination: Termination,
        now: float,
        fault: type[faults.UnacceptableInitialTerminationTimeFault | faults.UnacceptableTerminationTimeFault],
    ) -> float | None:
        longest = self._settings.max_lifetime
        return end_of(termination, now, fault, longest, "subscriptions.max_lifetime")

    def _record(self, subscription: Subscription) -> SubscriptionRecord:
        return SubscriptionRecord(
            id=subscription.id,
            request=encode_message(subscription.request),
            version=subscription.version.name,
            created=subscription.created,
            terminates=subscription.terminates,
            paused=subscription.paused,
            cursor=subscription.cursor.acknowledged,
            address=subscription.pull_point,
        )

    def __iter__(self) -> Iterator[Subscription]:
        return iter(list(self._by_id.values()))

    def __len__(self) -> int:
        return len(self._by_id)


def _unknown(id_: str) -> faults.ResourceUnknownFault:
    return faults.ResourceUnknownFault(
        f"subscription {id_!r} does not exist here: it has ended, or was never created; subscribe again"
    )
