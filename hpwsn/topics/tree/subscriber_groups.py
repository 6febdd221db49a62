"""Subscribers grouped by their topic expressions, and an index of the groups by topic.

All subscribers with the same expressions form one SubscriberGroup, so the tree holds one entry for a thousand
equal subscriptions. The index finds the groups that match a new topic. The module knows neither tree nor
nodes.
"""

from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass
from itertools import takewhile
from typing import Generic, TypeVar

from hpwsn_client.wsn.topics.topic_expressions import Topic, TopicExpression, TopicPattern

K = TypeVar("K", bound=Hashable)
S = TypeVar("S", bound=Hashable)
Expressions = tuple[TopicExpression, ...]


@dataclass(frozen=True, slots=True)
class Scope:
    """Where matching topics can be: below the anchors or in whole namespaces, or only the anchors if `exact`.

    Unless it is exact, no anchor is below another one or in one of the namespaces.
    """

    anchors: tuple[Topic, ...]
    namespaces: frozenset[str]
    exact: bool

    @property
    def breadth(self) -> tuple[bool, int, int]:
        """A measure of the cost of visiting the scope, for comparison."""
        return not self.exact, len(self.namespaces), -min((len(a.path) for a in self.anchors), default=0)


class SubscriberSet(Generic[S]):
    """A set of subscribers in order of arrival, whose memory shrinks when members leave.

    `cached` is the tuple of members for publishing; None after a change, until `as_tuple` rebuilds it.
    """

    __slots__ = ("_peak", "cached", "members")

    def __init__(self) -> None:
        self.members: dict[S, None] = {}
        self.cached: tuple[S, ...] | None = ()
        self._peak = 0

    def as_tuple(self) -> tuple[S, ...]:
        """Return the members in order of arrival."""
        if self.cached is None:
            self.cached = tuple(self.members)
        return self.cached

    def add(self, subscriber: S) -> bool:
        """Add a subscriber; False if it is already a member."""
        if subscriber in self.members:
            return False
        self.members[subscriber] = None
        self.cached = None
        self._peak = max(self._peak, len(self.members))
        return True

    def discard(self, subscriber: S) -> bool:
        """Remove a subscriber; False if it is not a member."""
        if subscriber not in self.members:
            return False
        del self.members[subscriber]
        self.cached = None
        if len(self.members) * 4 < self._peak:
            # A dictionary keeps the slots of removed keys, and every iteration would visit them.
            self.members = dict.fromkeys(self.members)
            self._peak = len(self.members)
        return True


class SubscriberGroup(Generic[S]):
    """The subscribers of one set of expressions, all of which a topic must match.

    `named` are the matching topics that the expressions name without a wildcard. `count` is the number of
    nodes the group is attached to, and the nodes update it. `keys` is the tree's cache of their texts, with
    its version.
    """

    __slots__ = ("_simple_subtree", "count", "expressions", "keys", "named", "scope", "subscribers")

    def __init__(self, expressions: Expressions, simple_subtree: bool) -> None:
        self.expressions = expressions
        self.subscribers: SubscriberSet[S] = SubscriberSet()
        self.count = 0
        self.keys: tuple[int, frozenset[str]] | None = None
        self._simple_subtree = simple_subtree
        # A topic must match every expression, so the narrowest scope contains all matches.
        self.scope = min(
            (scope_of(each, simple_subtree) for each in expressions), key=lambda scope: scope.breadth
        )
        topics = (pattern.topic for each in expressions for pattern in each.patterns)
        self.named = tuple({topic: None for topic in topics if topic is not None and self.matches(topic)})

    def matches(self, topic: Topic) -> bool:
        """Whether every expression matches the topic."""
        return all(expression.matches(topic, self._simple_subtree) for expression in self.expressions)


class SubscriberGroupIndex(Generic[S]):
    """All groups, by their expressions and by their scopes."""

    __slots__ = ("_anchored", "_by_expressions", "_named", "_wide")

    def __init__(self) -> None:
        self._by_expressions: dict[Expressions, SubscriberGroup[S]] = {}
        self._named: dict[Topic, dict[SubscriberGroup[S], None]] = {}
        self._anchored: dict[Topic, dict[SubscriberGroup[S], None]] = {}
        self._wide: dict[str, dict[SubscriberGroup[S], None]] = {}

    def __len__(self) -> int:
        return len(self._by_expressions)

    def __iter__(self) -> Iterator[SubscriberGroup[S]]:
        return iter(self._by_expressions.values())

    def find(self, expressions: Expressions) -> SubscriberGroup[S] | None:
        """Return the group with exactly these expressions."""
        return self._by_expressions.get(expressions)

    def names(self, topic: Topic) -> bool:
        """Whether a group names this topic, which keeps it alive in an open tree."""
        return topic in self._named

    def add(self, group: SubscriberGroup[S]) -> None:
        """Add a new group."""
        self._by_expressions[group.expressions] = group
        for topic in group.named:
            self._named.setdefault(topic, {})[group] = None
        for topic in group.scope.anchors:
            self._anchored.setdefault(topic, {})[group] = None
        for namespace in group.scope.namespaces:
            self._wide.setdefault(namespace, {})[group] = None

    def discard(self, group: SubscriberGroup[S]) -> None:
        """Remove a group."""
        del self._by_expressions[group.expressions]
        for topic in group.named:
            _discard(self._named, topic, group)
        for topic in group.scope.anchors:
            _discard(self._anchored, topic, group)
        for namespace in group.scope.namespaces:
            _discard(self._wide, namespace, group)

    def matching(self, topic: Topic, ancestors: Iterable[Topic]) -> Iterator[SubscriberGroup[S]]:
        """Yield the groups that match a topic with these ancestors, each once."""
        for group in self._anchored.get(topic, ()):
            if group.matches(topic):
                yield group
        for ancestor in ancestors:
            for group in self._anchored.get(ancestor, ()):
                if not group.scope.exact and group.matches(topic):
                    yield group
        for group in self._wide.get(topic.namespace, ()):
            if group.matches(topic):
                yield group


def _discard(index: dict[K, dict[SubscriberGroup[S], None]], key: K, group: SubscriberGroup[S]) -> None:
    del index[key][group]
    if not index[key]:
        del index[key]


def scope_of(expression: TopicExpression, simple_subtree: bool) -> Scope:
    """Return where the topics of an expression can be."""
    anchors: dict[Topic, None] = {}
    namespaces: set[str] = set()
    for pattern in expression.patterns:
        anchor = fixed_part(pattern)
        if anchor is None:
            namespaces.add(pattern.namespace)
        else:
            anchors[anchor] = None
    if all(pattern.topic for pattern in expression.patterns) and not (simple_subtree and expression.subtree):
        return Scope(tuple(anchors), frozenset(), exact=True)
    outer = (
        a for a in anchors if a.namespace not in namespaces and not any(b in anchors for b in a.ancestors())
    )
    return Scope(tuple(outer), frozenset(namespaces), exact=False)


def fixed_part(pattern: TopicPattern) -> Topic | None:
    """Return the topic that the steps before the first wildcard name; None if there are none."""
    fixed = tuple(
        step.name for step in takewhile(lambda step: not step.deep and step.name != "*", pattern.steps)
    )
    return Topic(pattern.namespace, fixed) if fixed else None
