"""How many subscribers get the messages of each topic, and of each topic with all below it.

Most groups of subscribers match one topic or a whole subtree. Either costs one entry in a list of differences
and a walk to the root, however large the subtree is. Only a group that matches some topics of a subtree is
compared with each of them. The counts are built in steps, like the order of the tree (tree_order).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from itertools import accumulate
from operator import add
from typing import Generic

from hpwsn.topics.tree.subscriber_groups import S, SubscriberGroup
from hpwsn.topics.tree.tree_order import TreeOrder

STEP = 200
"""Subscriber groups of one step."""


class SubscriberCounts(Generic[S]):
    """The subscribers of each topic (`own`), and of each topic or any below it (`below`), by position.

    `weight` is how many a subscriber of the tree stands for. Internal topics have no subscribers. A
    subscriber must be in one group only: others would be counted twice.
    """

    def __init__(self, order: TreeOrder[S], weight: Callable[[S], int]) -> None:
        self._order = order
        self._weight = weight
        self.own: list[int] = []
        self.below: list[int] = []
        size = len(order) + 1
        # Differences: a value that is added at a position holds from there on.
        self._matching, self._within = [0] * size, [0] * size
        self._above = [0] * size
        self._reached = [0] * size

    def steps(self, groups: Iterable[SubscriberGroup[S]], everywhere: Iterable[S]) -> Iterator[None]:
        """Count the groups, and the subscribers that get the messages of every topic, step by step."""
        for number, group in enumerate(groups, 1):
            self._add(group, number)
            if not number % STEP:
                yield
        extra = sum(map(self._weight, everywhere))
        yield
        # A topic is internal with all below it, so an internal topic has no public one to count for.
        public = [0 if node.internal else extra for node in self._order.nodes]
        self.own = list(map(add, accumulate(self._matching), public))
        yield
        above = map(add, self._above, public)
        self.below = list(map(add, accumulate(self._within), above))

    def _add(self, group: SubscriberGroup[S], number: int) -> None:
        if not group.count:
            return
        order, scope = self._order, group.scope
        weight = sum(map(self._weight, group.subscribers.members))
        if len(scope.anchors) == 1:
            position = order.positions.get(scope.anchors[0])
            anchors = [] if position is None else [position]
        else:
            anchors = [order.positions[topic] for topic in scope.anchors if topic in order.positions]
        if scope.exact:
            self._add_each(group, anchors, weight, number)
            return
        ends, starts = order.ends, anchors
        if scope.namespaces:
            starts += self._roots(scope.namespaces)
        whole = group.count == sum([ends[start] - start for start in starts])
        for start in starts:
            end = ends[start]
            if whole and not order.has_internal(start, end):
                self._add_range(start, end, weight, number)
            else:
                self._add_each(group, range(start, end), weight, number)

    def _roots(self, namespaces: Collection[str]) -> Iterator[int]:
        """The positions of the root topics in these namespaces."""
        order, position = self._order, 0
        while position < len(order):
            if order.nodes[position].topic.namespace in namespaces:
                yield position
            position = order.ends[position]

    def _add_range(self, start: int, end: int, weight: int, number: int) -> None:
        """Count a group for all topics of a range, and for those above it."""
        self._matching[start] += weight
        self._matching[end] -= weight
        self._within[start] += weight
        self._within[end] -= weight
        self._add_above(self._order.parents[start], weight, number)

    def _add_each(
        self, group: SubscriberGroup[S], positions: Iterable[int], weight: int, number: int
    ) -> None:
        """Count a group for those topics that it matches, and for those above them."""
        nodes = self._order.nodes
        for position in positions:
            node = nodes[position]
            if group in node.groups and not node.internal:
                self._matching[position] += weight
                self._matching[position + 1] -= weight
                self._add_above(position, weight, number)

    def _add_above(self, position: int, weight: int, number: int) -> None:
        """Count a group for a topic and each one above it, unless it is counted there already."""
        above, reached, parents = self._above, self._reached, self._order.parents
        while position >= 0 and reached[position] != number:
            reached[position] = number
            above[position] += weight
            position = parents[position]
