"""The effect of an edit of topics on subscriptions, told before or with the edit.

A subscription counts if the edit removes, moves away or makes internal all topics that it matches. In an open
tree it can still get events of a removed topic, if somebody publishes there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from hpwsn.broker.subscriptions.subscription import Subscriber, Subscription
from hpwsn.matching.content.content_group import ContentGroup
from hpwsn.topics.editing.edit_plan import EditPlan
from hpwsn.topics.tree.tree import TopicTree
from hpwsn_client.wsn.topics.topic_expressions import Topic


class TopicEffect:
    """Counts what edits of one tree touch."""

    def __init__(self, tree: TopicTree[Subscriber]) -> None:
        self._tree = tree

    def of(self, plan: EditPlan) -> dict[str, int]:
        """Return the number of topics, of subscriptions that then match nothing, and of their messages.

        The tree must not show the plan yet.
        """
        lost = list(_subscriptions(self._tree.losing(self._gone(plan), plan.made())))
        return {
            "topics": plan.touched(),
            "subscriptions": len(lost),
            "waiting": sum(each.cursor.backlog for each in lost),
        }

    def _gone(self, plan: EditPlan) -> set[Topic]:
        """Return the topics that subscribers no longer get; a topic that becomes internal hides all below."""
        found = set(plan.gone())
        for topic in plan.hidden():
            node = self._tree.find(topic)
            found.update(() if node is None else (each.topic for each in node.walk()))
        return found


def _subscriptions(subscribers: Iterable[Subscriber]) -> Iterator[Subscription]:
    for each in subscribers:
        yield from each if isinstance(each, ContentGroup) else (each,)
