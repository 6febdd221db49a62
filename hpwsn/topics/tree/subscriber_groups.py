"""Who wants what: subscribers grouped by their topic expressions, found by the topics these could match.

An Interest stands for all subscribers with the same expressions, so the tree holds one entry for a thousand
equal subscriptions. The index answers one question fast: which interests match a topic that has just
appeared. It knows no tree and no nodes.
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
    """Where topics that match could be: below the anchors or in whole namespaces, or the anchors themselves.

    Where it is not exact, no anchor is below another one or in one of the namespaces.
    """

    anchors: tuple[Topic, ...]
    namespaces: frozenset[str]
    exact: bool

    @property
    def breadth(self) -> tuple[bool, int, int]:
        """A measure by which one scope costs less to walk than another."""
        return not self.exact, len(self.namespaces), -min((len(a.path) for a in self.anchors), default=0)


class Group(Generic[S]):
    """A set of subscribers in order of arrival, as small as its members although many may have left.

    `listed` is the members as publishing wants them, made anew by `everyone` after a change.
    """

    __slots__ = ("_most", "listed", "members")

    def __init__(self) -> None:
        self.members: dict[S, None] = {}
        self.listed: tuple[S, ...] | None = ()
        self._most = 0

    def everyone(self) -> tuple[S, ...]:
        """The members in order of arrival."""
        if self.listed is None:
            self.listed = tuple(self.members)
        return self.listed

    def add(self, subscriber: S) -> bool:
        """Take in a subscriber; False where it is a member already."""
        if subscriber in self.members:
            return False
        self.members[subscriber] = None
        self.listed = None
        self._most = max(self._most, len(self.members))
        return True

    def discard(self, subscriber: S) -> bool:
        """Let a subscriber go; False where it is no member."""
        if subscriber not in self.members:
            return False
        del self.members[subscriber]
        self.listed = None
        if len(self.members) * 4 < self._most:
            # A dictionary keeps the places of those that left, and every publish would run over them.
            self.members = dict.fromkeys(self.members)
            self._most = len(self.members)
        return True


class Interest(Generic[S]):
    """The subscribers of one set of expressions, all of which a topic must match.

    `named` are the matching topics that the expressions name without a wildcard; `count` is the number of
    nodes that carry this interest, kept by the nodes; `keys` is the tree's note of them, with its version.
    """

    __slots__ = ("_simple_subtree", "count", "expressions", "keys", "named", "scope", "subscribers")

    def __init__(self, expressions: Expressions, simple_subtree: bool) -> None:
        self.expressions = expressions
        self.subscribers: Group[S] = Group()
        self.count = 0
        self.keys: tuple[int, frozenset[str]] | None = None
        self._simple_subtree = simple_subtree
        # A topic must match every expression, so the narrowest scope of them holds all matches.
        self.scope = min(
            (_scope(each, simple_subtree) for each in expressions), key=lambda scope: scope.breadth
        )
        topics = (pattern.topic for each in expressions for pattern in each.patterns)
        self.named = tuple({topic: None for topic in topics if topic is not None and self.matches(topic)})

    def matches(self, topic: Topic) -> bool:
        """Whether every expression matches the topic."""
        return all(expression.matches(topic, self._simple_subtree) for expression in self.expressions)


class InterestIndex(Generic[S]):
    """All interests, by their expressions and by where they could match."""

    __slots__ = ("_anchored", "_by_expressions", "_named", "_wide")

    def __init__(self) -> None:
        self._by_expressions: dict[Expressions, Interest[S]] = {}
        self._named: dict[Topic, dict[Interest[S], None]] = {}
        self._anchored: dict[Topic, dict[Interest[S], None]] = {}
        self._wide: dict[str, dict[Interest[S], None]] = {}

    def __len__(self) -> int:
        return len(self._by_expressions)

    def __iter__(self) -> Iterator[Interest[S]]:
        return iter(self._by_expressions.values())

    def find(self, expressions: Expressions) -> Interest[S] | None:
        """The interest with exactly these expressions."""
        return self._by_expressions.get(expressions)

    def names(self, topic: Topic) -> bool:
        """Whether an interest names this very topic, and so keeps it alive in an open tree."""
        return topic in self._named

    def add(self, interest: Interest[S]) -> None:
        """Take up a new interest."""
        self._by_expressions[interest.expressions] = interest
        for topic in interest.named:
            self._named.setdefault(topic, {})[interest] = None
        for topic in interest.scope.anchors:
            self._anchored.setdefault(topic, {})[interest] = None
        for namespace in interest.scope.namespaces:
            self._wide.setdefault(namespace, {})[interest] = None

    def discard(self, interest: Interest[S]) -> None:
        """Forget an interest without a trace."""
        del self._by_expressions[interest.expressions]
        for topic in interest.named:
            _discard(self._named, topic, interest)
        for topic in interest.scope.anchors:
            _discard(self._anchored, topic, interest)
        for namespace in interest.scope.namespaces:
            _discard(self._wide, namespace, interest)

    def matching(self, topic: Topic, ancestors: Iterable[Topic]) -> Iterator[Interest[S]]:
        """The interests that match a topic with these ancestors, each once."""
        for interest in self._anchored.get(topic, ()):
            if interest.matches(topic):
                yield interest
        for ancestor in ancestors:
            for interest in self._anchored.get(ancestor, ()):
                if not interest.scope.exact and interest.matches(topic):
                    yield interest
        for interest in self._wide.get(topic.namespace, ()):
            if interest.matches(topic):
                yield interest


def _discard(index: dict[K, dict[Interest[S], None]], key: K, interest: Interest[S]) -> None:
    del index[key][interest]
    if not index[key]:
        del index[key]


def _scope(expression: TopicExpression, simple_subtree: bool) -> Scope:
    anchors: dict[Topic, None] = {}
    namespaces: set[str] = set()
    for pattern in expression.patterns:
        anchor = _fixed_part(pattern)
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


def _fixed_part(pattern: TopicPattern) -> Topic | None:
    """The topic that the steps before the first wildcard name; None where the first step is one."""
    fixed = tuple(
        step.name for step in takewhile(lambda step: not step.deep and step.name != "*", pattern.steps)
    )
    return Topic(pattern.namespace, fixed) if fixed else None
