"""The topics of a tree in the order in which a list shows them.

The order is depth-first: a topic, then all below it, before its next sibling. Siblings are in the order of
their names, by code points, and root topics first in that of their namespaces. That is the order of topics as
tuples. So the topics below a topic are consecutive, and the sum over a subtree is the difference of two
running totals.

A tree may hold a million topics. So the order is built in steps: the caller iterates over `steps`, and may do
other work between two steps. A topic that comes or goes meanwhile may or may not be included.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from itertools import accumulate
from typing import Generic

from hpwsn.topics.tree.subscriber_groups import S
from hpwsn.topics.tree.topic_node import Branch, Node
from hpwsn_client.wsn.topics.topic_expressions import Topic

STEP = 200
"""Topics of one step."""


class TreeOrder(Generic[S]):
    """A snapshot of the order: `nodes`, and for each its number of names, its parent, and where it ends.

    Positions are indexes of `nodes`. A root has the parent -1. A subtree is before the position in `ends`.
    """

    def __init__(self) -> None:
        self.nodes: list[Node[S]] = []
        self.levels = array("i")
        self.parents = array("i")
        self.ends = array("i")
        self.positions: dict[Topic, int] = {}
        self._has_internal = False
        self._internal: list[int] = []

    def steps(self, root: Branch[S]) -> Iterator[None]:
        """Fill the snapshot, step by step."""
        nodes, parents = self.nodes, self.parents
        positions, levels = self.positions, self.levels
        waiting = [(child, -1) for child in _last_first(root)]
        while waiting:
            (topic, node), parent = waiting.pop()
            position = positions[topic] = len(nodes)
            nodes.append(node)
            parents.append(parent)
            levels.append(len(topic.path))
            if node.children:
                waiting += [(child, position) for child in _last_first(node)]
            if not position % STEP:
                yield
        yield from self._close()

    def _close(self) -> Iterator[None]:
        """Compute where subtrees end, and where internal topics are."""
        parents, ends = self.parents, array("i", range(1, len(self.nodes) + 1))
        for position in range(len(ends) - 1, -1, -1):
            parent = parents[position]
            if parent >= 0 and ends[parent] < ends[position]:
                ends[parent] = ends[position]
            if not position % STEP:
                yield
        self.ends = ends
        internal = [node.internal for node in self.nodes]
        self._has_internal = any(internal)
        self._internal = [0, *accumulate(internal)] if self._has_internal else []

    def __len__(self) -> int:
        return len(self.nodes)

    def has_internal(self, start: int, end: int) -> bool:
        """Whether there are internal topics in a range of positions."""
        return self._has_internal and self._internal[end] > self._internal[start]

    def below(self, topic: Topic) -> range:
        """The positions of the topics below one; empty if there are none, or if the topic is unknown."""
        position = self.positions.get(topic)
        return range(0) if position is None else range(position + 1, self.ends[position])

    def after(self, topic: Topic) -> int:
        """The first position behind that of a topic, or behind the one that it would have."""
        return bisect_right(self.nodes, topic, key=_topic)

    def sums(self, values: Iterable[int]) -> list[int]:
        """For each topic the sum of the values, given in order, of it and all below it."""
        totals = [0, *accumulate(values)]
        return [totals[end] - totals[start] for start, end in enumerate(self.ends)]


def _topic(node: Node[S]) -> Topic:
    return node.topic


def _last_first(branch: Branch[S]) -> list[tuple[Topic, Node[S]]]:
    # Topics differ, so nodes are never compared.
    return sorted(branch.children.items(), reverse=True)
