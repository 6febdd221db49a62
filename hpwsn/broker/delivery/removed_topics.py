"""Ends subscriptions whose topics were all removed from the topic directory (`topics.on_remove = end`).

A subscription first gets its backlog, including notifications that the backbone still holds. Then its
consumer gets a TerminationNotification (WS-ResourceLifetime 1.2, section 3.3) in a Notify, which is tried
once, and the subscription ends. If a topic returns before that, the subscription stays. WS-BaseNotification
has no message for the end of a subscription: clients of pull points and of the original HPwsn see a
ResourceUnknownFault.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial

from hpwsn.broker.delivery.delivery import Delivery
from hpwsn.broker.push.request import Outcome, OutcomeKind
from hpwsn.broker.subscriptions.subscription import State, Subscriber, Subscription
from hpwsn.broker.subscriptions.subscriptions import Subscriptions
from hpwsn.errors import JournalUnavailable
from hpwsn.matching.content.content_group import ContentGroup
from hpwsn.notification import Notification
from hpwsn.topics.tree.tree import TopicTree
from hpwsn_client.wsn.formats.original import is_original
from hpwsn_client.wsn.operations.lifetime import encode_termination_notification
from hpwsn_client.wsn.operations.notifications import NotificationMessage, encode_content

log = logging.getLogger(__name__)

LOOK_AGAIN = 0.5
"""Seconds until a subscription with a backlog is checked again."""
REASON = "all topics of the subscription were removed from this broker"


class RemovedTopics:
    """Ends subscriptions that have no topic left."""

    def __init__(
        self,
        tree: TopicTree[Subscriber],
        subscriptions: Subscriptions,
        delivery: Delivery,
        more_comes: Callable[[], bool],
    ) -> None:
        self._tree = tree
        self._subscriptions = subscriptions
        self._delivery = delivery
        self._more_comes = more_comes
        self._ending: dict[Subscription, asyncio.Task[None]] = {}

    def look(self) -> None:
        """Start to end the subscriptions that match no topic."""
        for subscriber in self._tree.unmatched():
            for subscription in subscriber if isinstance(subscriber, ContentGroup) else (subscriber,):
                self._begin(subscription)

    def _begin(self, subscription: Subscription) -> None:
        if subscription not in self._ending:
            task = asyncio.get_running_loop().create_task(self._end(subscription))
            self._ending[subscription] = task
            task.add_done_callback(partial(self._ended, subscription))

    def _ended(self, subscription: Subscription, task: asyncio.Task[None]) -> None:
        del self._ending[subscription]

    async def close(self) -> None:
        """Stop; the next start finds the remaining subscriptions again."""
        tasks = list(self._ending.values())
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    async def _end(self, subscription: Subscription) -> None:
        while self._is_lost(subscription):
            more_comes = self._more_comes()  # read before the backlog, into which these notifications move
            await self._delivery.settle([subscription])
            cursor = subscription.cursor
            waits = cursor.backlog or cursor.behind or subscription.progress.busy
            if not (waits or more_comes):
                break
            await asyncio.sleep(LOOK_AGAIN)
        if not self._is_lost(subscription):
            return
        log.warning("subscription %s ends: %s", subscription.id, REASON)
        await self._tell(subscription)
        try:
            await self._subscriptions.end_all([subscription])
        except JournalUnavailable as error:
            log.error("subscription %s could not be ended: %s", subscription.id, error)

    def _is_lost(self, subscription: Subscription) -> bool:
        return subscription.state is State.LIVE and not self._tree.matches_any(subscription.topics)

    async def _tell(self, subscription: Subscription) -> None:
        if subscription.pull_point is not None or is_original(subscription.request) or subscription.webhook:
            return  # these get no SOAP
        told: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
        self._delivery.tell(subscription, _termination_notification(), told.set_result)
        outcome = await told
        if outcome.kind is not OutcomeKind.DELIVERED:
            log.warning("subscription %s: the consumer was not notified: %s", subscription.id, outcome.reason)


def _termination_notification() -> Notification:
    now = datetime.now(UTC)
    payload = encode_termination_notification(now, REASON)
    content, start, end = encode_content(NotificationMessage(None, payload))
    return Notification(None, content, start, end, now.timestamp())
