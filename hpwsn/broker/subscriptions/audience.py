"""Who gets a notification: topic first, then content.

Subscriptions without a content filter are in the topic tree one by one. Those with one are there as one group
for each set of topic expressions, which one look at the payloads of a run finds the members of, so that a
hundred thousand that do not want a notification cost its publisher next to nothing. The builder chooses the
matching engine of each group by its topics.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import cast

from hpwsn.broker.subscriptions.subscription import Subscriber, Subscription
from hpwsn.matching.content.content_filters import ContentFilters
from hpwsn.matching.content.content_group import ContentGroup
from hpwsn.matching.content.content_index import Engines
from hpwsn.notification import Notification
from hpwsn.topics.tree.tree import Node, TopicTree
from hpwsn_client.wsn.topics.topic_expressions import Topic, TopicExpression

Expressions = tuple[TopicExpression, ...]

MOST_REMEMBERED = 10_000
"""Topics whose subscribers are remembered."""


class Audience:
    """The live subscriptions, by topic and content; the filters of each must be acquired."""

    def __init__(
        self,
        tree: TopicTree[Subscriber],
        content: ContentFilters,
        engines_for: Callable[[Expressions], Engines],
    ) -> None:
        self._tree = tree
        self._content = content
        self._engines_for = engines_for
        self._groups: dict[Expressions, ContentGroup[Subscription]] = {}
        self._versions = (-1, -1)
        self._matched: dict[Node[Subscriber], list[Subscription] | None] = {}

    def enter(self, subscription: Subscription, *, restore: bool = False) -> None:
        """Let it get notifications; the fault of a fixed tree, unless it was there before a restart."""
        topics, filters = subscription.topics, subscription.content
        if not filters:
            self._tree.subscribe(topics, subscription, restore=restore)
            return
        wanted = self._content.find(filters)
        if wanted is None:
            raise LookupError(f"the filters of subscription {subscription.id} were not acquired")
        group = self._groups.get(topics)
        if group is None:
            group = ContentGroup(self._engines_for(topics))
        # For a group that is there this only asks whether its topics still are.
        self._tree.subscribe(topics, group, restore=restore)
        self._groups[topics] = group
        group.add(subscription, wanted)

    def leave(self, subscription: Subscription) -> None:
        """Let it get no more."""
        topics, filters = subscription.topics, subscription.content
        if not filters:
            self._tree.unsubscribe(topics, subscription)
            return
        group, wanted = self._groups.get(topics), self._content.find(filters)
        if group is None or wanted is None:
            return
        group.discard(subscription, wanted)
        if group:
            self._tree.interest_version += 1  # the tree knows only the group, which stays
            return
        del self._groups[topics]
        self._tree.unsubscribe(topics, group)

    def content_subscriptions(self) -> int:
        """How many subscriptions have a content filter."""
        return sum(map(len, self._groups.values()))

    def match_topic(
        self, topic: Topic | None, node: Node[Subscriber] | None = None
    ) -> list[Subscription] | None:
        """The subscriptions that want every notification on a topic; None if the content counts.

        Notifications have been accepted, so subscribers get them even where the topic was removed since. For
        the topic's node the answer is remembered until topics or subscribers change.
        """
        versions = self._tree.version, self._tree.interest_version
        if versions != self._versions:
            self._versions = versions
            self._matched.clear()
        elif node in self._matched:
            return self._matched[node]
        found: list[Subscription] | None = None
        matched = self._tree.match(topic, accepted=True)
        if not self._groups or not any(isinstance(each, ContentGroup) for each in matched):
            found = cast(list[Subscription], list(matched))
        if node is not None and len(self._matched) < MOST_REMEMBERED:
            self._matched[node] = found
        return found

    def match_each(self, notifications: Sequence[Notification]) -> list[list[Subscription]]:
        """The subscriptions that want each of these, all on one topic; a payload is parsed at most once."""
        return self._match_each(self._tree.match(notifications[0].topic, accepted=True), notifications)

    def _match_each(
        self, found: Iterable[Subscriber], notifications: Sequence[Notification]
    ) -> list[list[Subscription]]:
        plain: list[Subscription] = []
        groups: list[ContentGroup[Subscription]] = []
        for subscriber in found:
            if isinstance(subscriber, ContentGroup):
                groups.append(subscriber)
            else:
                plain.append(subscriber)
        if not groups:
            return [plain] * len(notifications)
        wanted = [plain.copy() for _ in notifications]
        evaluations = [self._content.evaluation(notification.payload) for notification in notifications]
        for group in groups:
            for some, more in zip(wanted, group.match(evaluations), strict=True):
                some += more
        return wanted
