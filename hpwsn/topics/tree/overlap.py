"""Which topic expressions could match a topic in common, whether or not that topic exists.

Owns the comparison of two expressions, and an index that finds, for one expression, those among many that
overlap it, by the names that their patterns begin with: what cannot overlap is hardly looked at. A Simple
expression stands for its subtree where the node's setting says so. Knows no tree and no subscriptions.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from itertools import takewhile
from typing import Generic, TypeVar

from hpwsn_client.wsn.topics.topic_expressions import TopicExpression, TopicPattern

K = TypeVar("K", bound=Hashable)


def overlap(one: TopicExpression, other: TopicExpression, simple_subtree: bool) -> bool:
    """Whether there could be a topic that both expressions match."""
    bits = [_PatternBits(its, _subtree(its, other, simple_subtree)) for its in other.patterns]
    return any(
        mine.namespace == its.namespace and its.overlap(mine, _subtree(mine, one, simple_subtree))
        for mine in one.patterns
        for its in bits
    )


def _subtree(pattern: TopicPattern, expression: TopicExpression, simple_subtree: bool) -> bool:
    return pattern.subtree or (simple_subtree and expression.subtree)


class _PatternBits:
    """A pattern as bits, one for each place before a step and the last for its end.

    Two patterns are walked over the names of a topic that is not known, all places in one of them at once,
    so that the time is linear in the steps of the other, whatever is asked for.
    """

    __slots__ = ("_all", "_anything", "_names", "_repeat", "namespace")

    def __init__(self, pattern: TopicPattern, subtree: bool) -> None:
        self.namespace = pattern.namespace
        end = 1 << len(pattern.steps)
        self._all = 2 * end - 1
        self._anything, self._repeat, self._names = 0, end if subtree else 0, {"*": end - 1}
        for place, step in enumerate(pattern.steps):
            if step.deep:
                self._repeat |= 1 << place
            if step.name == "*":
                self._anything |= 1 << place
            else:
                self._names[step.name] = self._names.get(step.name, 0) | 1 << place

    def overlap(self, other: TopicPattern, subtree: bool) -> bool:
        """Whether both can be read to their ends on the same names."""
        places = 1
        for step in other.steps:
            places = self._and_later(places) if step.deep else places
            named = places & (self._names.get(step.name, 0) | self._anything)
            places = named << 1 | places & self._repeat
            if not places:
                return False
        return bool((self._and_later(places) if subtree else places) > self._all >> 1)

    def _and_later(self, places: int) -> int:
        """These and all later places: where the other pattern takes any name, this one may go on alone."""
        return self._all ^ ((places & -places) - 1)


class _TrieNode(Generic[K]):
    """Where patterns begin with the same names: those that end here, and those that go on or fan out."""

    __slots__ = ("below", "exact", "wider")

    def __init__(self) -> None:
        self.below: dict[str, _TrieNode[K]] = {}
        self.exact: dict[K, None] = {}
        self.wider: dict[K, None] = {}

    @property
    def empty(self) -> bool:
        return not (self.below or self.exact or self.wider)

    def walk(self) -> Iterator[_TrieNode[K]]:
        """This place and all below it."""
        places = [self]
        while places:
            place = places.pop()
            yield place
            places.extend(place.below.values())


class OverlapIndex(Generic[K]):
    """Keys, each under one expression, found by expressions that may overlap theirs."""

    def __init__(self, simple_subtree: bool) -> None:
        self._simple_subtree = simple_subtree
        self._roots: dict[str, _TrieNode[K]] = {}

    def add(self, expression: TopicExpression, key: K) -> None:
        """Take up a key under an expression."""
        for pattern in expression.patterns:
            places, place = self._roots, None
            for name in (pattern.namespace, *_fixed(pattern)):
                place = places.get(name)
                if place is None:
                    place = places[name] = _TrieNode()
                places = place.below
            assert place is not None
            self._group(place, pattern, expression)[key] = None

    def discard(self, expression: TopicExpression, key: K) -> None:
        """Forget a key, and the places that were there for it alone."""
        for pattern in expression.patterns:
            names = (pattern.namespace, *_fixed(pattern))
            path = [self._roots.get(names[0])]
            for name in names[1:]:
                path.append(path[-1] and path[-1].below.get(name))
            if path[-1] is not None:
                self._group(path[-1], pattern, expression).pop(key, None)
            for depth in range(len(names) - 1, -1, -1):
                place, parent = path[depth], path[depth - 1] if depth else None
                if place is not None and place.empty:
                    (self._roots if parent is None else parent.below).pop(names[depth], None)

    def _group(
        self, place: _TrieNode[K], pattern: TopicPattern, expression: TopicExpression
    ) -> dict[K, None]:
        wide = pattern.topic is None or _subtree(pattern, expression, self._simple_subtree)
        return place.wider if wide else place.exact

    def candidates(self, expression: TopicExpression) -> Iterator[K]:
        """The keys whose expressions may overlap this one, and few others; one may come several times."""
        for pattern in expression.patterns:
            wide = pattern.topic is None or _subtree(pattern, expression, self._simple_subtree)
            place = self._roots.get(pattern.namespace)
            for name in _fixed(pattern):
                if place is None:
                    break
                yield from place.wider
                place = place.below.get(name)
            if place is not None:
                for each in place.walk() if wide else (place,):
                    yield from each.exact
                    yield from each.wider


def _fixed(pattern: TopicPattern) -> tuple[str, ...]:
    """The names before the first step that could be several."""
    return tuple(
        step.name for step in takewhile(lambda step: not step.deep and step.name != "*", pattern.steps)
    )
