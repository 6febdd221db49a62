"""The notification processor: takes committed notifications in log order and finds who wants each.

Who wants it is the audience's business; the processor hands offsets to delivery and keeps each topic's
current message.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence

from hpwsn.broker.audience import Audience
from hpwsn.broker.delivery import Delivery
from hpwsn.broker.pull_points import PullPoints
from hpwsn.broker.readers import Readers
from hpwsn.broker.recent import Recent
from hpwsn.broker.subscription import Subscriber
from hpwsn.notification import Notification
from hpwsn.topics.tree import TopicTree
from hpwsn_client.wsn.faults import SoapFault
from hpwsn_client.wsn.topics import Topic

log = logging.getLogger(__name__)


class Processor:
    """Matches, and hands over to delivery."""

    def __init__(
        self,
        *,
        tree: TopicTree[Subscriber],
        audience: Audience,
        recent: Recent,
        delivery: Delivery,
        pull_points: PullPoints,
        readers: Readers,
    ) -> None:
        self._tree = tree
        self._audience = audience
        self._recent = recent
        self._delivery = delivery
        self._pull_points = pull_points
        self._readers = readers

    def process(self, first: int, notifications: Sequence[Notification]) -> None:
        """Offer each notification of one commit to its subscribers, in order."""
        for offset, notification in enumerate(notifications, first):
            try:
                self._process(offset, notification)
            except Exception:
                # What is stored must reach all others, whatever one notification does to its filters.
                log.exception("notification %d could not be matched", offset)
            self._delivery.head = offset
        self._readers.committed(first, notifications)

    def _process(self, offset: int, notification: Notification) -> None:
        if notification.target is not None:
            self._pull_points.filled(notification.target)
            self._pull_points.arrived(notification.target)
            return
        if notification.topic is not None:
            self._keep_current(notification.topic, offset)
        wanted = self._audience.match(notification)
        if wanted:
            self._recent.put(offset, notification)
        for subscription in wanted:
            self._delivery.offer(subscription, offset)

    def _keep_current(self, topic: Topic, offset: int) -> None:
        try:
            self._tree.retain(topic, offset)
        except SoapFault as fault:
            log.warning(
                "notification %d on %s is stored, and its topic has no place: %s", offset, topic, fault
            )

    def restore_current(self, current: Mapping[str, int] | Iterable[tuple[str, int]]) -> None:
        """Take up each topic's current message after a restart."""
        for key, offset in dict(current).items():
            self._keep_current(Topic.parse(key), offset)
