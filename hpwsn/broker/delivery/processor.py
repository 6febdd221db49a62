"""The notification processor: takes committed notifications in log order and finds who wants each.

Who wants it is the audience's business; the processor hands offsets to delivery and keeps each topic's
current message.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, groupby
from time import perf_counter
from typing import Any

from hpwsn.broker.delivery.backlog import Recent
from hpwsn.broker.delivery.delivery import Delivery
from hpwsn.broker.subscriptions.audience import Audience
from hpwsn.broker.subscriptions.pull_points import PullPoints
from hpwsn.broker.subscriptions.subscription import Subscriber
from hpwsn.histogram import Histogram
from hpwsn.notification import INTERNAL, Notification, Run
from hpwsn.topics.tree.tree import Node, TopicTree
from hpwsn_client.wsn.soap.faults import SoapFault
from hpwsn_client.wsn.topics.topic_expressions import Topic

log = logging.getLogger(__name__)

_POSTED = object()
"""In place of the topic of what has a target: posted straight to a pull point, or internal."""


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
        match_times: Histogram | None = None,
    ) -> None:
        self._tree = tree
        self._audience = audience
        self._recent = recent
        self._delivery = delivery
        self._pull_points = pull_points
        self._match_times = match_times or Histogram()

    def process(self, first: int, runs: Sequence[Run]) -> None:
        """Offer the runs of one commit to their subscribers, in order."""
        began = perf_counter()
        for topic, group in groupby(runs, _topic_of):
            together = list(group)
            size = sum([run.size for run in together])
            try:
                self._process(first, topic, together, size)
            except Exception:
                # What is stored must reach all others, whatever one notification does to its filters.
                log.exception("notification %d could not be matched", first)
            first += size
            self._delivery.head = first - 1
        self._match_times.observe(perf_counter() - began)

    def _process(self, first: int, topic: Any, runs: Sequence[Run], size: int) -> None:
        """Offer runs on one topic: most of a commit are on one, and have the same subscribers."""
        if topic is _POSTED:
            for run in runs:
                self._fill(run)
            return
        node = None if topic is None else self._keep_current(topic, first + size - 1)
        wanted = self._audience.match_topic(topic, node)
        if wanted is None:
            self._process_each(first, list(chain.from_iterable(runs)))
        elif wanted:
            self._recent.put(first, chain.from_iterable(runs))
            for subscription in wanted:
                self._delivery.offer(subscription, range(first, first + size))

    def _fill(self, run: Run) -> None:
        assert run.target is not None
        if run.target == INTERNAL:
            if run.topic is not None:
                self._tree.keep(run.topic)
        else:
            self._pull_points.filled(run.target)
            self._pull_points.arrived(run.target)

    def _process_each(self, first: int, notifications: Sequence[Notification]) -> None:
        """Offer each to those who want its content; all over again one by one where one cannot be matched."""
        try:
            found = self._audience.match_each(notifications)
        except Exception:
            if len(notifications) == 1:
                log.exception("notification %d could not be matched", first)
                return
            for offset, notification in enumerate(notifications, first):
                self._process_each(offset, (notification,))
            return
        for offset, wanted in enumerate(found, first):
            if wanted:
                self._recent.put(offset, (notifications[offset - first],))
                for subscription in wanted:
                    self._delivery.offer(subscription, range(offset, offset + 1))

    def _keep_current(self, topic: Topic, offset: int) -> Node[Subscriber] | None:
        try:
            return self._tree.retain(topic, offset)
        except SoapFault as fault:
            log.warning(
                "notification %d on %s is stored, and its topic has no place: %s", offset, topic, fault
            )
            return None

    def restore_internal(self, topics: Iterable[str]) -> None:
        """Take up the topics of which the log has events for jobs, after a restart."""
        for key in topics:
            self._tree.keep(Topic.parse(key))

    def restore_current(self, current: Mapping[str, int] | Iterable[tuple[str, int]]) -> None:
        """Take up each topic's current message after a restart."""
        for key, offset in dict(current).items():
            self._keep_current(Topic.parse(key), offset)


def _topic_of(run: Run) -> Any:
    """By what runs are taken together."""
    return run.topic if run.target is None else _POSTED
