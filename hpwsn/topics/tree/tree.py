"""The topic tree: work moves from publish to subscribe.

A subscription visits the topics that its expressions can match, and attaches its subscriber group to each
match. A publication needs one lookup. All trees are below one virtual root.

- An open tree creates topics when a publication or a subscription names them. It drops a topic that no
  subscription names and that has no current message and no children.
- A fixed tree contains what a directory declares, and refuses other topics with TopicNotSupportedFault. When
  the directory changes, subscriptions stay, and match topics that return. A removed topic keeps its current
  message until then, and messages accepted before the removal still reach its subscribers.
- An internal topic has no subscribers for a publication, and no keys, unless the caller asks for those of
  internal topics too. Only a directory marks topics internal, so an open tree has none.

The semantics of topic expressions are in hpwsn_client.wsn.topics.topic_expressions; the broker owns current
messages, lifetimes and delivery.
"""

from collections.abc import Collection, Iterable, Iterator
from typing import Generic

from hpwsn.topics.tree.declarations import Declaration, EditError, missing_topics, rebase, with_parents
from hpwsn.topics.tree.internal_topics import refuse_internal
from hpwsn.topics.tree.subscriber_groups import (
    Expressions,
    S,
    Scope,
    SubscriberGroup,
    SubscriberGroupIndex,
    SubscriberSet,
)
from hpwsn.topics.tree.topic_node import Branch, Node, similar_topics
from hpwsn_client.wsn.soap.faults import TopicNotSupportedFault
from hpwsn_client.wsn.topics.topic_expressions import Topic, TopicExpression

__all__ = ["DEFAULT_LIMIT", "Node", "TopicTree"]

DEFAULT_LIMIT = 1_000_000


class TopicTree(Generic[S]):
    """Topics and their subscribers; S is any hashable type of subscriber."""

    __slots__ = (
        "_index",
        "_multiple",
        "_nodes",
        "_outside",
        "_simple_subtree",
        "_subscription_counts",
        "_unfiltered",
        "_usage",
        "fixed",
        "has_internal",
        "interest_version",
        "limit",
        "root",
        "version",
    )

    def __init__(
        self,
        declarations: Iterable[Declaration] = (),
        *,
        fixed: bool = False,
        simple_subtree: bool = True,
        limit: int = DEFAULT_LIMIT,
    ) -> None:
        self.root: Branch[S] = Branch()
        self.fixed = fixed
        self.limit = limit
        self._simple_subtree = simple_subtree
        self.has_internal = False
        """Whether a topic is, or once was, internal; callers need not look for internal topics before."""
        self.version = 0
        """Changes with the topics and their visibility."""
        self.interest_version = 0
        """Changes with the subscribers."""
        self._usage = 0
        self._nodes: dict[Topic, Node[S]] = {}
        # The current messages of topics that are not, or no longer, in a fixed tree.
        self._outside: dict[Topic, int] = {}
        self._index: SubscriberGroupIndex[S] = SubscriberGroupIndex()
        self._unfiltered: SubscriberSet[S] = SubscriberSet()
        # The number of subscriptions of each subscriber, and of subscribers with several: only then can
        # a match find a subscriber twice.
        self._subscription_counts: dict[S, int] = {}
        self._multiple = 0
        self.replace_all(declarations)

    def __len__(self) -> int:
        return len(self._nodes)

    def __contains__(self, topic: object) -> bool:
        return topic in self._nodes

    @property
    def open(self) -> bool:
        """Whether topics are created when they are used."""
        return not self.fixed

    @property
    def revision(self) -> tuple[int, int]:
        """Changes whenever the documents about this tree can change: with topics, and with their use."""
        return self.version, self._usage

    # Publishing

    def find(self, topic: Topic) -> Node[S] | None:
        """Return the topic's node; None if it is unknown."""
        return self._nodes.get(topic)

    def publish(self, topic: Topic) -> Node[S]:
        """Return the topic's node for a publisher; an open tree creates it, a fixed tree raises a fault."""
        node = self._nodes.get(topic)
        if node is not None:
            return node
        self.check_publish(topic)
        return self._create(topic)

    def check_publish(self, topic: Topic) -> None:
        """Raise the fault that publish would raise, without changing anything."""
        self.canonical(topic)

    def canonical(self, topic: Topic) -> Topic:
        """Return the tree's own instance of the topic, which speeds up later lookups; or raise the fault."""
        node = self._nodes.get(topic)
        if node is not None:
            return node.topic
        if self.fixed:
            raise self.unsupported(topic)
        self._check_room(topic)
        return topic

    def match(self, topic: Topic | None, accepted: bool = False) -> Collection[S]:
        """Return the subscribers that get a message on this topic (or on none), each once.

        A removed topic has none, unless the message was accepted while the topic existed.
        """
        if topic is None:
            return self._unfiltered.as_tuple()
        if self.has_internal and self.is_internal(topic):
            return ()
        found = [*self._unfiltered.as_tuple()]
        for group in self._groups_for(topic, accepted):
            members = group.subscribers
            # Inlined: most groups are small, and a call costs more than copying them.
            found += members.as_tuple() if members.cached is None else members.cached
        return tuple(dict.fromkeys(found)) if self._multiple else found

    def retain(self, topic: Topic, offset: int) -> Node[S] | None:
        """Set the topic's current message, which keeps an open topic alive; return the topic's node.

        A removed topic stays removed, and has none.
        """
        node = self._nodes.get(topic)
        if node is None and not self.fixed:
            node = self._create(topic)
        if node is not None:
            self._usage += node.current is None
            node.current = offset
        else:
            self.version += topic not in self._outside
            self._outside[topic] = offset
        return node

    def routing(self, topic: Topic) -> str | None:
        """Return the routing policy of the topic or of its nearest ancestor with one; None if none is set."""
        branch: Branch[S] | None = self._nodes.get(topic)
        while isinstance(branch, Node):
            if branch.routing is not None:
                return branch.routing
            branch = branch.parent
        return None

    def is_internal(self, topic: Topic) -> bool:
        """Whether only jobs read the topic; a topic outside the tree is as the nearest one above it."""
        if not self.has_internal:
            return False
        node = self._nodes.get(topic)
        if node is None:
            node = next((found for each in topic.ancestors() if (found := self._nodes.get(each))), None)
        return node is not None and node.internal

    def release(self, topic: Topic) -> None:
        """Clear the topic's current message; an open topic that is no longer used is dropped."""
        node = self._nodes.get(topic)
        if node is not None:
            node.current = None
            self._usage += 1
            self._prune(node)
        elif self._outside.pop(topic, None) is not None:
            self.version += 1

    def current(self, topic: Topic) -> int | None:
        """Return the offset of the topic's current message, also for a removed topic."""
        node = self._nodes.get(topic)
        return self._outside.get(topic) if node is None else node.current

    # Subscribing

    def subscribe(self, expressions: Expressions, subscriber: S, *, restore: bool = False) -> None:
        """Subscribe to the topics that match all the expressions, or without expressions to every message.

        A fixed tree raises TopicNotSupportedFault if none matches, or if an expression can match only
        internal topics; `restore` accepts a subscription from before a restart unchecked. Subscribing again
        with the same expressions changes nothing.
        """
        if not expressions:
            self._add_member(self._unfiltered, subscriber)
            return
        if self.has_internal and not restore:
            refuse_internal(expressions, self.is_internal, self._simple_subtree)
        group = self._index.find(expressions)
        if group is None:
            group = self._attach(SubscriberGroup(expressions, self._simple_subtree), restore)
        elif self.fixed and not group.count and not restore:
            raise self._unmatched(expressions)
        self._add_member(group.subscribers, subscriber)

    def unsubscribe(self, expressions: Expressions, subscriber: S) -> bool:
        """Undo the same call of subscribe; False if there was no such subscription."""
        if not expressions:
            return self._remove_member(self._unfiltered, subscriber)
        group = self._index.find(expressions)
        if group is None or not self._remove_member(group.subscribers, subscriber):
            return False
        if not group.subscribers.members:
            self._detach(group)
        return True

    # Queries

    def topics(self) -> Iterator[Topic]:
        """All topics, breadth-first."""
        return (node.topic for node in self.nodes())

    def nodes(self) -> Iterator[Node[S]]:
        """All nodes without the virtual root, breadth-first."""
        return self.root.below()

    def groups(self) -> Iterator[SubscriberGroup[S]]:
        """All subscriber groups, also those that match no existing topic."""
        return iter(self._index)

    def concrete(self, expression: TopicExpression) -> tuple[Topic, ...]:
        """Return the existing topics that an expression names; a Simple one without its subtree."""
        return tuple(self._matches(SubscriberGroup((expression,), simple_subtree=False)))

    def unmatched(self) -> list[S]:
        """Return the subscribers of expressions that match no existing topic."""
        found = (group.subscribers.members for group in self._index if not group.count)
        return list(dict.fromkeys(who for members in found for who in members))

    def matches_any(self, expressions: Expressions) -> bool:
        """Whether an existing subscription matches any topic now."""
        group = self._index.find(expressions)
        return not expressions or (group is not None and group.count > 0)

    def keys(self, expressions: Expressions, internal: bool = False) -> frozenset[str] | None:
        """Return the topics, as text, whose messages a subscription gets; None without expressions.

        Includes removed topics of which the log can still hold messages, and internal ones only if asked.
        """
        if not expressions:
            return None
        group = self._index.find(expressions) or SubscriberGroup(expressions, self._simple_subtree)
        if internal and self.has_internal:
            return frozenset(map(str, self._with_messages(group)))
        if group.keys is None or group.keys[0] != self.version:
            topics = self._with_messages(group)
            if self.has_internal:
                topics = (topic for topic in topics if not self.is_internal(topic))
            group.keys = self.version, frozenset(map(str, topics))
        return group.keys[1]

    def _with_messages(self, group: SubscriberGroup[S]) -> Iterator[Topic]:
        """Yield the topics of a group, and removed ones of which the log can still hold messages."""
        yield from self._matches(group)
        yield from (topic for topic in self._outside if group.matches(topic))

    def matching(self, expressions: Expressions) -> Iterator[Node[S]]:
        """Yield the nodes that a subscription covers now, without internal ones; without expressions, all."""
        if not expressions:
            return (node for node in self.nodes() if not node.internal)
        group = self._index.find(expressions) or SubscriberGroup(expressions, self._simple_subtree)
        found = map(self.find, self._matches(group))
        return (node for node in found if node is not None and not node.internal)

    def unsupported(self, topic: Topic) -> TopicNotSupportedFault:
        """Return the fault for a topic outside this fixed tree, with suggestions."""
        similar = ", ".join(str(found) for found in similar_topics(self.root, topic))
        hint = f"; did you mean {similar}?" if similar else ""
        return TopicNotSupportedFault(f"topic {topic} is not among the fixed topics of this broker{hint}")

    # Editing

    def add(
        self,
        topic: Topic,
        *,
        description: str = "",
        routing: str | None = None,
        path: str | None = None,
        visibility: str | None = None,
    ) -> Node[S]:
        """Declare a topic and its missing parents, or replace the values of a declared topic."""
        node = self._nodes.get(topic) or self._create(topic)
        self._usage += 1
        branch: Branch[S] = node
        while isinstance(branch, Node) and not branch.declared:
            branch.declared = True
            branch = branch.parent
        node.description, node.routing, node.path = description, routing, path
        self._set_visibility(node, visibility)
        return node

    def _set_visibility(self, node: Node[S], visibility: str | None) -> None:
        if node.set_visibility(visibility):
            self.version += 1
        self.has_internal = self.has_internal or node.internal

    def remove(self, topic: Topic) -> bool:
        """Undeclare a topic and its subtree; an open tree keeps topics in use. False if it is unknown."""
        node = self._nodes.get(topic)
        if node is None:
            return False
        for each in reversed(list(node.walk())):
            self._undeclare(each)
        return True

    def move(self, topic: Topic, new: Topic) -> Node[S]:
        """Move a topic's declared subtree; subscriptions and current messages stay at the old place."""
        node, target = self._nodes.get(topic), self._nodes.get(new)
        if node is None or not node.declared:
            raise EditError(f"topic {topic} cannot move to {new}: {topic} is not declared")
        if topic.covers(new) or (target is not None and target.declared):
            raise EditError(
                f"topic {topic} cannot move to {new}, which exists or is below it; choose another place"
            )
        declared = (each for each in node.walk() if each.declared)
        moved = [
            Declaration(
                rebase(each.topic, topic, new), each.description, each.routing, visibility=each.visibility
            )
            for each in declared
        ]
        self.remove(topic)
        for item in moved:
            self.declare(item)
        return self._nodes[new]

    def declare(self, item: Declaration) -> None:
        """Declare a topic with all its values."""
        self.add(
            item.topic,
            description=item.description,
            routing=item.routing,
            path=item.path,
            visibility=item.visibility,
        )

    def replace_all(self, declarations: Iterable[Declaration]) -> None:
        """Declare exactly these topics and their parents; kept topics keep code and current message."""
        wanted = with_parents(declarations)
        names = {declaration.topic for declaration in wanted}
        for node in reversed(list(self.nodes())):
            if node.declared and node.topic not in names:
                self._undeclare(node)
        for item in wanted:
            self.declare(item)

    # Internals

    def _groups_for(self, topic: Topic, accepted: bool) -> Iterable[SubscriberGroup[S]]:
        node = self._nodes.get(topic)
        if node is not None:
            return node.groups
        return () if self.fixed and not accepted else self._index.matching(topic, topic.ancestors())

    def _matches(self, group: SubscriberGroup[S]) -> Iterator[Topic]:
        return (node.topic for node in self._nodes_in(group.scope) if group.matches(node.topic))

    def _attach(self, group: SubscriberGroup[S], restore: bool) -> SubscriberGroup[S]:
        if not self.fixed:
            self._create_named(group.named, restore)
        nodes = [node for node in self._nodes_in(group.scope) if group.matches(node.topic)]
        if self.fixed and not nodes and not restore:
            raise self._unmatched(group.expressions)
        self._index.add(group)
        self._usage += 1
        for node in nodes:
            node.attach(group)
        return group

    def _create_named(self, topics: Iterable[Topic], restore: bool) -> None:
        new = [topic for topic in topics if topic not in self._nodes]
        if new and not restore:
            self._check_room(*new)
        for topic in new:
            self._create(topic)

    def _detach(self, group: SubscriberGroup[S]) -> None:
        for node in self._nodes_in(group.scope):
            node.detach(group)
        self._index.discard(group)
        self._usage += 1
        for topic in group.named:
            if topic in self._nodes:
                self._prune(self._nodes[topic])

    def _nodes_in(self, scope: Scope) -> Iterator[Node[S]]:
        """Yield the nodes in a scope."""
        for anchor in scope.anchors:
            node = self._nodes.get(anchor)
            if node is not None:
                yield from (node,) if scope.exact else node.walk()
        if scope.namespaces:
            for tree in self.root.children.values():
                if tree.topic.namespace in scope.namespaces:
                    yield from tree.walk()

    def _create(self, topic: Topic) -> Node[S]:
        parent = topic.parent
        branch: Branch[S] | None = self.root if parent is None else self._nodes.get(parent)
        if branch is None:
            assert parent is not None
            branch = self._create(parent)
        node = Node(topic, branch)
        self.version += 1
        self._nodes[topic] = node
        if self._outside:
            node.current = self._outside.pop(topic, None)
        if len(self._index):
            for group in self._index.matching(topic, node.ancestors):
                node.attach(group)
        return node

    def _undeclare(self, node: Node[S]) -> None:
        if node.topic not in self._nodes:
            return  # already dropped with its last child
        node.declared = False
        self._usage += 1
        if self.fixed:
            if node.current is not None:
                self._outside[node.topic] = node.current
            self._drop(node)
        else:
            node.description, node.routing, node.path = "", None, None
            self._set_visibility(node, None)
            self._prune(node)

    def _prune(self, node: Node[S]) -> None:
        """Drop an open topic that is not in use, and then its parents."""
        while not self.fixed and not self._is_in_use(node):
            self._drop(node)
            if not isinstance(node.parent, Node):
                break
            node = node.parent

    def _is_in_use(self, node: Node[S]) -> bool:
        in_use = node.declared or node.current is not None or bool(node.children)
        return in_use or self._index.names(node.topic)

    def _drop(self, node: Node[S]) -> None:
        self.version += 1
        del self._nodes[node.topic]
        node.unlink()

    def _check_room(self, *topics: Topic) -> None:
        new = {place for topic in topics for place in missing_topics(topic, self._nodes)}
        if len(self._nodes) + len(new) > self.limit:
            raise TopicNotSupportedFault(
                f"topic {topics[0]} is new, and this broker holds no more than {self.limit} topics; "
                "use an existing topic, or raise the setting topics.open_limit"
            )

    def _unmatched(self, expressions: Expressions) -> TopicNotSupportedFault:
        for expression in expressions:
            if expression.topic is not None and expression.topic not in self._nodes:
                return self.unsupported(expression.topic)
        texts = " and ".join(expression.text for expression in expressions)
        return TopicNotSupportedFault(f"none of the fixed topics of this broker matches {texts}")

    def _add_member(self, members: SubscriberSet[S], subscriber: S) -> None:
        self.interest_version += 1
        if members.add(subscriber):
            count = self._subscription_counts.get(subscriber, 0)
            self._subscription_counts[subscriber] = count + 1
            self._multiple += count == 1

    def _remove_member(self, members: SubscriberSet[S], subscriber: S) -> bool:
        self.interest_version += 1
        if not members.discard(subscriber):
            return False
        count = self._subscription_counts.pop(subscriber) - 1
        if count:
            self._subscription_counts[subscriber] = count
        self._multiple -= count == 1
        return True
