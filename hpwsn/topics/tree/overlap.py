"""Finds topic expressions that can match a common topic, whether or not that topic exists.

`overlap` compares two expressions. `OverlapIndex` finds, among many expressions, those that can overlap a
given one, by the fixed names at the start of their patterns. A Simple expression stands for its subtree if
the node's setting says so. The module knows neither the tree nor subscriptions.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from itertools import takewhile
from typing import Generic, TypeVar

from hpwsn_client.wsn.topics.topic_expressions import TopicExpression, TopicPattern

K = TypeVar("K", bound=Hashable)


def overlap(one: TopicExpression, other: TopicExpression, simple_subtree: bool) -> bool:
    """Whether a topic could exist that both expressions match."""
    bits = [_PatternBits(its, _subtree(its, other, simple_subtree)) for its in other.patterns]
    return any(
        mine.namespace == its.namespace and its.overlap(mine, _subtree(mine, one, simple_subtree))
        for mine in one.patterns
        for its in bits
    )


def _subtree(pattern: TopicPattern, expression: TopicExpression, simple_subtree: bool) -> bool:
    return pattern.subtree or (simple_subtree and expression.subtree)


class _PatternBits:
    """A pattern as bitsets: one bit for each position before a step, and the last for the end.

    Two patterns are matched against the names of an unknown topic, all positions of this pattern at once. The
    time is linear in the number of steps of the other pattern.
    """

    __slots__ = ("_all", "_names", "_repeat", "_wildcards", "namespace")

    def __init__(self, pattern: TopicPattern, subtree: bool) -> None:
        self.namespace = pattern.namespace
        end = 1 << len(pattern.steps)
        self._all = 2 * end - 1
        self._wildcards, self._repeat, self._names = 0, end if subtree else 0, {"*": end - 1}
        for position, step in enumerate(pattern.steps):
            if step.deep:
                self._repeat |= 1 << position
            if step.name == "*":
                self._wildcards |= 1 << position
            else:
                self._names[step.name] = self._names.get(step.name, 0) | 1 << position

    def overlap(self, other: TopicPattern, subtree: bool) -> bool:
        """Whether some sequence of names matches both patterns."""
        positions = 1
        for step in other.steps:
            positions = self._and_later(positions) if step.deep else positions
            named = positions & (self._names.get(step.name, 0) | self._wildcards)
            positions = named << 1 | positions & self._repeat
            if not positions:
                return False
        return bool((self._and_later(positions) if subtree else positions) > self._all >> 1)

    def _and_later(self, positions: int) -> int:
        """Return these and all later positions, reached while the other pattern takes any names."""
        return self._all ^ ((positions & -positions) - 1)


class _TrieNode(Generic[K]):
    """A node of the trie of fixed names.

    `exact` has the keys of patterns that match only this topic, `wider` those of patterns that can match
    others.
    """

    __slots__ = ("children", "exact", "wider")

    def __init__(self) -> None:
        self.children: dict[str, _TrieNode[K]] = {}
        self.exact: dict[K, None] = {}
        self.wider: dict[K, None] = {}

    @property
    def empty(self) -> bool:
        return not (self.children or self.exact or self.wider)

    def walk(self) -> Iterator[_TrieNode[K]]:
        """This node and all its descendants."""
        nodes = [self]
        while nodes:
            node = nodes.pop()
            yield node
            nodes.extend(node.children.values())


class OverlapIndex(Generic[K]):
    """Keys by expression, found by expressions that can overlap theirs."""

    def __init__(self, simple_subtree: bool) -> None:
        self._simple_subtree = simple_subtree
        self._roots: dict[str, _TrieNode[K]] = {}

    def add(self, expression: TopicExpression, key: K) -> None:
        """Add a key under an expression."""
        for pattern in expression.patterns:
            nodes, node = self._roots, None
            for name in (pattern.namespace, *_fixed(pattern)):
                node = nodes.get(name)
                if node is None:
                    node = nodes[name] = _TrieNode()
                nodes = node.children
            assert node is not None
            self._group(node, pattern, expression)[key] = None

    def discard(self, expression: TopicExpression, key: K) -> None:
        """Remove a key, and the trie nodes that become empty."""
        for pattern in expression.patterns:
            names = (pattern.namespace, *_fixed(pattern))
            path = [self._roots.get(names[0])]
            for name in names[1:]:
                path.append(path[-1] and path[-1].children.get(name))
            if path[-1] is not None:
                self._group(path[-1], pattern, expression).pop(key, None)
            for depth in range(len(names) - 1, -1, -1):
                node, parent = path[depth], path[depth - 1] if depth else None
                if node is not None and node.empty:
                    (self._roots if parent is None else parent.children).pop(names[depth], None)

    def _group(self, node: _TrieNode[K], pattern: TopicPattern, expression: TopicExpression) -> dict[K, None]:
        wide = pattern.topic is None or _subtree(pattern, expression, self._simple_subtree)
        return node.wider if wide else node.exact

    def candidates(self, expression: TopicExpression) -> Iterator[K]:
        """Yield all keys whose expressions overlap this one, and few others; keys can repeat."""
        for pattern in expression.patterns:
            wide = pattern.topic is None or _subtree(pattern, expression, self._simple_subtree)
            node = self._roots.get(pattern.namespace)
            for name in _fixed(pattern):
                if node is None:
                    break
                yield from node.wider
                node = node.children.get(name)
            if node is not None:
                for each in node.walk() if wide else (node,):
                    yield from each.exact
                    yield from each.wider


def _fixed(pattern: TopicPattern) -> tuple[str, ...]:
    """Return the names before the first wildcard step."""
    return tuple(
        step.name for step in takewhile(lambda step: not step.deep and step.name != "*", pattern.steps)
    )
