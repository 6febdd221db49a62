"""Interest in the topics of publishers on demand: which targets overlap at least one interest.

An interest is a set of topic expressions, all of which a topic must match; an empty set matches everything.
Equal interests are counted and compared once. A target is a topic expression of a publisher, or None for a
publisher without topics. A callback reports each target that becomes wanted or unwanted. Content filters are
ignored: a subscription with one counts as interest.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from typing import Generic, TypeVar

from hpwsn.topics.tree.overlap import OverlapIndex, overlap
from hpwsn_client.wsn.topics.topic_expressions import TopicExpression

Expressions = tuple[TopicExpression, ...]
T = TypeVar("T", bound=Hashable)

_EVERYTHING: Expressions = ()


class _Interest:
    """A counted set of expressions; compared by identity, which is cheaper than by expressions."""

    __slots__ = ("count", "expressions")

    def __init__(self, expressions: Expressions) -> None:
        self.expressions = expressions
        self.count = 0


class Interests(Generic[T]):
    """Matches interests to targets; `changed` is called when a target becomes wanted or unwanted."""

    def __init__(self, changed: Callable[[T], None], simple_subtree: bool) -> None:
        self._changed = changed
        self._simple_subtree = simple_subtree
        self._held: dict[Expressions, _Interest] = {}
        self._index: OverlapIndex[_Interest] = OverlapIndex(simple_subtree)
        self._targets: dict[T, TopicExpression] = {}
        self._target_index: OverlapIndex[T] = OverlapIndex(simple_subtree)
        self._unbound: dict[T, None] = {}
        self._overlapped: set[T] = set()
        """The targets that an interest with expressions overlaps."""

    def wanted(self, target: T) -> bool:
        """Whether an interest overlaps the target."""
        if target in self._unbound:
            return bool(self._held)
        return _EVERYTHING in self._held or target in self._overlapped

    def add(self, target: T, expression: TopicExpression | None) -> None:
        """Add a target, without calling `changed`."""
        if expression is None:
            self._unbound[target] = None
            return
        self._targets[target] = expression
        self._target_index.add(expression, target)
        if self._is_overlapped(expression):
            self._overlapped.add(target)

    def discard(self, target: T) -> None:
        """Remove a target."""
        self._unbound.pop(target, None)
        self._overlapped.discard(target)
        expression = self._targets.pop(target, None)
        if expression is not None:
            self._target_index.discard(expression, target)

    def want(self, expressions: Expressions) -> None:
        """Add one to the count of an interest."""
        interest = self._held.get(expressions)
        if interest is None:
            interest = self._held[expressions] = _Interest(expressions)
            self._appeared(interest)
        interest.count += 1

    def release(self, expressions: Expressions) -> None:
        """Subtract one from the count of an interest."""
        interest = self._held[expressions]
        interest.count -= 1
        if not interest.count:
            del self._held[expressions]
            self._vanished(interest)

    def _appeared(self, interest: _Interest) -> None:
        if len(self._held) == 1:
            self._tell(list(self._unbound))
        if not interest.expressions:
            self._tell([target for target in self._targets if target not in self._overlapped])
            return
        self._index.add(interest.expressions[0], interest)
        gained = set(self._near(interest)) - self._overlapped
        gained = {target for target in gained if self._overlap(interest, self._targets[target])}
        self._overlapped |= gained
        if _EVERYTHING not in self._held:
            self._tell(list(gained))

    def _vanished(self, interest: _Interest) -> None:
        if not self._held:
            self._tell(list(self._unbound))
        if not interest.expressions:
            self._tell([target for target in self._targets if target not in self._overlapped])
            return
        self._index.discard(interest.expressions[0], interest)
        near = {target for target in self._near(interest) if target in self._overlapped}
        lost = {target for target in near if not self._is_overlapped(self._targets[target])}
        self._overlapped -= lost
        if _EVERYTHING not in self._held:
            self._tell(list(lost))

    def _tell(self, targets: list[T]) -> None:
        for target in targets:
            self._changed(target)

    def _near(self, interest: _Interest) -> Iterator[T]:
        return self._target_index.candidates(interest.expressions[0])

    def _is_overlapped(self, target: TopicExpression) -> bool:
        # The search ends at the first match, so many subscribers to a topic cost no more than one.
        return any(self._overlap(interest, target) for interest in self._index.candidates(target))

    def _overlap(self, interest: _Interest, target: TopicExpression) -> bool:
        return all(overlap(each, target, self._simple_subtree) for each in interest.expressions)
