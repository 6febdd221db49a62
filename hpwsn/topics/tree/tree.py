"""The topic tree: work moves from publish to subscribe.

A subscription visits the topics that its expressions can match, and attaches its subscriber group to each
match. A publication needs one lookup.

- An open tree creates topics when a publication or a subscription names them, beside the topics that a
  directory declares. It drops an undeclared topic that no subscription names and that has no stored message
  and no children.
- A fixed tree contains only what a directory declares, and refuses other topics with TopicNotSupportedFault.
  When the directory changes, subscriptions stay, and match topics that return. A removed topic keeps its
  current message until then, and messages accepted before the removal still reach its subscribers.
- An internal topic has no subscribers for a publication, and no keys, unless the caller asks for those of
  internal topics too. Only a directory marks topics internal.

The semantics of topic expressions are in hpwsn_client.wsn.topics.topic_expressions; the broker owns current
messages, lifetimes and delivery.
"""

from collections.abc import Collection, Iterable, Iterator

from hpwsn.topics.tree.declarations import Declaration
from hpwsn.topics.tree.declared_topics import DeclaredTopics
from hpwsn.topics.tree.internal_topics import refuse_internal
from hpwsn.topics.tree.subscriber_groups import Expressions, S, SubscriberGroup, SubscriberSet
from hpwsn.topics.tree.topic_node import Node
from hpwsn.topics.tree.topic_store import DEFAULT_LIMIT
from hpwsn_client.wsn.soap.faults import TopicNotSupportedFault
from hpwsn_client.wsn.topics.topic_expressions import Topic, TopicExpression

__all__ = ["DEFAULT_LIMIT", "Node", "TopicTree"]


class TopicTree(DeclaredTopics[S]):
    """Topics and their subscribers; S is any hashable type of subscriber."""

    __slots__ = ("_multiple", "_simple_subtree", "_subscription_counts", "_unfiltered", "interest_version")

    def __init__(
        self,
        declarations: Iterable[Declaration] = (),
        *,
        fixed: bool = False,
        simple_subtree: bool = True,
        limit: int = DEFAULT_LIMIT,
    ) -> None:
        super().__init__(fixed, limit)
        self._simple_subtree = simple_subtree
        self.interest_version = 0
        """Changes with the subscribers."""
        self._unfiltered: SubscriberSet[S] = SubscriberSet()
        # The number of subscriptions of each subscriber, and of subscribers with several: only then can
        # a match find a subscriber twice.
        self._subscription_counts: dict[S, int] = {}
        self._multiple = 0
        self.replace_all(declarations)

    # Publishing

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

    def losing(self, gone: Iterable[Topic], made: Iterable[Topic]) -> list[S]:
        """Return the subscribers that match topics in `gone` and no other topic, nor one in `made`."""
        lost: dict[SubscriberGroup[S], int] = {}
        for topic in gone:
            node = self._nodes.get(topic)
            for group in () if node is None or node.internal else node.groups:
                lost[group] = lost.get(group, 0) + 1
        left = {group for group, number in lost.items() if group.count == number}
        for topic in made if left else ():
            left.difference_update(self._index.matching(topic, topic.ancestors()))
        return [who for group in lost if group in left for who in group.subscribers.members]

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

    # Internals

    def _groups_for(self, topic: Topic, accepted: bool) -> Iterable[SubscriberGroup[S]]:
        node = self._nodes.get(topic)
        if node is not None:
            return node.groups
        if self.fixed and not accepted:
            return ()
        return self._index.matching(topic, topic.ancestors())

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
