"""The notification processor: takes committed notifications in log order and finds who wants each.

Who wants it is the audience's business; the processor hands offsets to delivery and keeps each topic's
current message.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain

from hpwsn.broker.delivery.backlog import Recent
from hpwsn.broker.delivery.delivery import Delivery
from hpwsn.broker.delivery.log_readers import Readers
from hpwsn.broker.subscriptions.audience import Audience
from hpwsn.broker.subscriptions.pull_points import PullPoints
from hpwsn.broker.subscriptions.subscription import Subscriber, Subscription
from hpwsn.notification import Notification, Run, parts_of
from hpwsn.topics.tree.tree import TopicTree
from hpwsn_client.wsn.soap.faults import SoapFault
from hpwsn_client.wsn.topics.topic_expressions import Topic

log = logging.getLogger(__name__)

_NO_TOPIC = object()
"""Unlike that of any notification: what is posted straight to a pull point is by itself."""


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
        offset = first
        for run in chain.from_iterable(map(_runs, parts_of(notifications))):
            self._process(offset, run)
            offset += len(run)
            self._delivery.head = offset - 1
        self._readers.committed(first, notifications)

    def _process(self, first: int, run: Sequence[Notification]) -> None:
        try:
            wanted = self._find_wanted(first, run)
            if wanted:
                self._recent.put(first, run)
                for subscription in wanted:
                    self._delivery.offer(subscription, range(first, first + len(run)))
        except Exception:
            # What is stored must reach all others, whatever one notification does to its filters.
            log.exception("notification %d could not be matched", first)
            return
        if wanted is None:
            self._process_each(first, run)

    def _process_each(self, first: int, run: Sequence[Notification]) -> None:
        """Offer each to those who want its content; all over again one by one where one cannot be matched."""
        try:
            found = self._audience.match_each(run)
        except Exception:
            if len(run) == 1:
                log.exception("notification %d could not be matched", first)
                return
            for offset, notification in enumerate(run, first):
                self._process_each(offset, (notification,))
            return
        for offset, wanted in enumerate(found, first):
            if wanted:
                self._recent.put(offset, run[offset - first : offset - first + 1])
                for subscription in wanted:
                    self._delivery.offer(subscription, range(offset, offset + 1))

    def _find_wanted(self, first: int, run: Sequence[Notification]) -> list[Subscription] | None:
        """Who wants all of them; None where each has to be asked for by itself."""
        topic, target = (run.topic, None) if isinstance(run, Run) else (run[0].topic, run[0].target)
        if target is not None:
            self._pull_points.filled(target)
            self._pull_points.arrived(target)
            return []
        if topic is not None:
            self._keep_current(topic, first + len(run) - 1)
        return self._audience.match_alike(run)

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


def _runs(notifications: Sequence[Notification]) -> Iterator[Sequence[Notification]]:
    """Those in a row that are on one topic: most of a commit are, and are wanted by the same."""
    if isinstance(notifications, Run):
        yield notifications
        return
    begin = 0
    topic: object = notifications[0].topic
    for index, notification in enumerate(notifications):
        if notification.topic is not topic or notification.target is not None:
            if index > begin:
                yield notifications[begin:index]
            begin = index
            topic = notification.topic if notification.target is None else _NO_TOPIC
    yield notifications[begin:]
