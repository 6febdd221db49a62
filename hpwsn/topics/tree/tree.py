"""The topic tree (spec/hpwsn.md, part 7): work moves from publish to subscribe.

Subscribing walks the topics that its expressions could match and leaves an interest at each one that they do
match; publishing is one look-up. All trees hang under one virtual root. An open tree takes in topics as they
are used, by a publish or by a subscription that names one, and lets go of a topic that no subscription
names, that has no current message and nothing below it. A fixed tree holds what a directory declares and
refuses the rest with TopicNotSupportedFault; when it is edited, subscriptions stay, and get the topics that
come back. A topic that was removed keeps its current message for then, and what was accepted on it before
still finds its subscribers. What a topic expression means is hpwsn_client.wsn.topics.topic_expressions'
business; current messages, lifetimes and delivery are the broker's.
"""

from collections.abc import Collection, Iterable, Iterator
from typing import Generic

from hpwsn.topics.tree.declarations import Declaration, EditError, close, missing, rebase
from hpwsn.topics.tree.subscriber_groups import Expressions, Group, Interest, InterestIndex, S, Scope
from hpwsn.topics.tree.topic_node import Branch, Node, near_misses
from hpwsn_client.wsn.soap.faults import TopicNotSupportedFault
from hpwsn_client.wsn.topics.topic_expressions import Topic, TopicExpression

__all__ = ["DEFAULT_LIMIT", "Node", "TopicTree"]

DEFAULT_LIMIT = 1_000_000


class TopicTree(Generic[S]):
    """Topics and their subscribers; S is whatever the broker subscribes, as long as it can be hashed."""

    __slots__ = (
        "_everything",
        "_held",
        "_index",
        "_marks",
        "_nodes",
        "_outside",
        "_overlaps",
        "_simple_subtree",
        "_version",
        "fixed",
        "limit",
        "root",
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
        self._version = 0
        self._marks = 0
        self._nodes: dict[Topic, Node[S]] = {}
        # Topics that a fixed tree does not hold, or no more, and the current message of each.
        self._outside: dict[Topic, int] = {}
        self._index: InterestIndex[S] = InterestIndex()
        self._everything: Group[S] = Group()
        # How many subscriptions each subscriber has, and how many have several: only then can a match
        # find one of them twice.
        self._held: dict[S, int] = {}
        self._overlaps = 0
        self.replace_all(declarations)

    def __len__(self) -> int:
        return len(self._nodes)

    def __contains__(self, topic: object) -> bool:
        return topic in self._nodes

    @property
    def open(self) -> bool:
        """Whether topics appear as they are used."""
        return not self.fixed

    @property
    def revision(self) -> tuple[int, int]:
        """What differs once the documents about this tree may: topics, and which of them are in use."""
        return self._version, self._marks

    # Publishing

    def find(self, topic: Topic) -> Node[S] | None:
        """The topic's node, by one look-up."""
        return self._nodes.get(topic)

    def publish(self, topic: Topic) -> Node[S]:
        """The topic's node for a publisher; an open tree makes it, a fixed one refuses it with a fault."""
        node = self._nodes.get(topic)
        if node is not None:
            return node
        self.check_publish(topic)
        return self._grow(topic)

    def check_publish(self, topic: Topic) -> None:
        """Raise the fault that publish would raise, and change nothing."""
        self.own(topic)

    def own(self, topic: Topic) -> Topic:
        """The topic as this tree has it, which is found sooner in all that is kept by topic; or the fault."""
        node = self._nodes.get(topic)
        if node is not None:
            return node.topic
        if self.fixed:
            raise self.unsupported(topic)
        self._check_room(topic)
        return topic

    def match(self, topic: Topic | None, accepted: bool = False) -> Collection[S]:
        """Who gets a message on this topic (or on none), each once.

        On a removed topic nobody does, unless the message was accepted while the topic was there.
        """
        if topic is None:
            return self._everything.everyone()
        found = [*self._everything.everyone()]
        for interest in self._interests_in(topic, accepted):
            group = interest.subscribers
            # Looked at here, since most groups are small and a call costs more than they do.
            found += group.everyone() if group.listed is None else group.listed
        return tuple(dict.fromkeys(found)) if self._overlaps else found

    def retain(self, topic: Topic, offset: int) -> None:
        """Note the topic's current message, which keeps an open topic alive; a removed one stays away."""
        node = self._nodes.get(topic)
        if node is None and not self.fixed:
            node = self._grow(topic)
        if node is not None:
            self._marks += node.current is None
            node.current = offset
        elif topic not in self._outside:
            self._outside[topic] = offset
            self._version += 1
        else:
            self._outside[topic] = offset

    def routing(self, topic: Topic) -> str | None:
        """The routing policy of a topic, its own or the nearest above it; None where none is set."""
        branch: Branch[S] | None = self._nodes.get(topic)
        while isinstance(branch, Node):
            if branch.routing is not None:
                return branch.routing
            branch = branch.parent
        return None

    def release(self, topic: Topic) -> None:
        """Forget the topic's current message, and an open topic with it if nothing else holds it."""
        node = self._nodes.get(topic)
        if node is not None:
            node.current = None
            self._marks += 1
            self._prune(node)
        elif self._outside.pop(topic, None) is not None:
            self._version += 1

    def current(self, topic: Topic) -> int | None:
        """The offset of the topic's current message, also of a topic that was removed."""
        node = self._nodes.get(topic)
        return self._outside.get(topic) if node is None else node.current

    # Subscribing

    def subscribe(self, expressions: Expressions, subscriber: S, *, restore: bool = False) -> None:
        """Register for the topics that match all the expressions, or for every message without any.

        In a fixed tree TopicNotSupportedFault where none matches; `restore` takes a subscription from before
        a restart as it is. The same subscriber with the same expressions again changes nothing.
        """
        if not expressions:
            self._enter(self._everything, subscriber)
            return
        interest = self._index.find(expressions)
        if interest is None:
            interest = self._attach(Interest(expressions, self._simple_subtree), restore)
        elif self.fixed and not interest.count and not restore:
            raise self._unmatched(expressions)
        self._enter(interest.subscribers, subscriber)

    def unsubscribe(self, expressions: Expressions, subscriber: S) -> bool:
        """Free all that the same call to subscribe took; False where there was no such subscription."""
        if not expressions:
            return self._leave(self._everything, subscriber)
        interest = self._index.find(expressions)
        if interest is None or not self._leave(interest.subscribers, subscriber):
            return False
        if not interest.subscribers.members:
            self._detach(interest)
        return True

    # Looking

    def topics(self) -> Iterator[Topic]:
        """All topics, breadth-first."""
        return (node.topic for node in self.nodes())

    def nodes(self) -> Iterator[Node[S]]:
        """All nodes but the virtual root, breadth-first."""
        return self.root.below()

    def concrete(self, expression: TopicExpression) -> tuple[Topic, ...]:
        """The topics that an expression names at the moment, a Simple one only itself and not its subtree."""
        return tuple(self._matches(Interest((expression,), simple_subtree=False)))

    def unmatched(self) -> list[S]:
        """The subscribers of expressions that match no topic at the moment."""
        found = (interest.subscribers.members for interest in self._index if not interest.count)
        return list(dict.fromkeys(who for members in found for who in members))

    def matches_any(self, expressions: Expressions) -> bool:
        """Whether a subscription that is there matches any topic at the moment."""
        interest = self._index.find(expressions)
        return not expressions or (interest is not None and interest.count > 0)

    def keys(self, expressions: Expressions) -> frozenset[str] | None:
        """The topics, as text, whose messages a subscription gets; None for one without expressions.

        With those that were removed and of which the log may hold messages from before.
        """
        if not expressions:
            return None
        interest = self._index.find(expressions) or Interest(expressions, self._simple_subtree)
        if interest.keys is None or interest.keys[0] != self._version:
            outside = (topic for topic in self._outside if interest.matches(topic))
            interest.keys = self._version, frozenset(map(str, (*self._matches(interest), *outside)))
        return interest.keys[1]

    def matching(self, expressions: Expressions) -> Iterator[Node[S]]:
        """The nodes that a subscription covers at the moment, every one for it without expressions."""
        if not expressions:
            return self.nodes()
        interest = self._index.find(expressions) or Interest(expressions, self._simple_subtree)
        found = map(self.find, self._matches(interest))
        return (node for node in found if node is not None)

    def unsupported(self, topic: Topic) -> TopicNotSupportedFault:
        """The fault for a topic outside this fixed tree, with near misses."""
        near = ", ".join(str(found) for found in near_misses(self.root, topic))
        hint = f"; did you mean {near}?" if near else ""
        return TopicNotSupportedFault(f"topic {topic} is not among the fixed topics of this broker{hint}")

    # Editing

    def add(
        self, topic: Topic, *, description: str = "", routing: str | None = None, path: str | None = None
    ) -> Node[S]:
        """Declare a topic, with its parents where they are missing, or declare it anew with these values."""
        node = self._nodes.get(topic) or self._grow(topic)
        self._marks += 1
        branch: Branch[S] = node
        while isinstance(branch, Node) and not branch.declared:
            branch.declared = True
            branch = branch.parent
        node.description, node.routing, node.path = description, routing, path
        return node

    def remove(self, topic: Topic) -> bool:
        """Withdraw a topic and its subtree (an open tree keeps those in use); False if it is unknown."""
        node = self._nodes.get(topic)
        if node is None:
            return False
        for each in reversed(list(node.walk())):
            self._withdraw(each)
        return True

    def move(self, topic: Topic, new: Topic) -> Node[S]:
        """Declare a topic's subtree elsewhere; subscriptions and current messages stay behind."""
        node, target = self._nodes.get(topic), self._nodes.get(new)
        if node is None or not node.declared:
            raise EditError(f"topic {topic} cannot move to {new}: there is no such topic")
        if topic.covers(new) or (target is not None and target.declared):
            raise EditError(f"topic {topic} cannot move to {new}, which exists or is below it")
        declared = (each for each in node.walk() if each.declared)
        moved = [(rebase(each.topic, topic, new), each.description, each.routing) for each in declared]
        self.remove(topic)
        for place, description, routing in moved:
            self.add(place, description=description, routing=routing)
        return self._nodes[new]

    def replace_all(self, declarations: Iterable[Declaration]) -> None:
        """Declare exactly these topics and their parents; those that stay keep code and current message."""
        wanted = close(declarations)
        names = {declaration.topic for declaration in wanted}
        for node in reversed(list(self.nodes())):
            if node.declared and node.topic not in names:
                self._withdraw(node)
        for item in wanted:
            self.add(item.topic, description=item.description, routing=item.routing, path=item.path)

    # The mechanics

    def _interests_in(self, topic: Topic, accepted: bool) -> Iterable[Interest[S]]:
        node = self._nodes.get(topic)
        if node is not None:
            return node.interests
        if self.fixed and not accepted:
            return ()
        return self._index.matching(topic, topic.ancestors())

    def _matches(self, interest: Interest[S]) -> Iterator[Topic]:
        return (node.topic for node in self._reach(interest.scope) if interest.matches(node.topic))

    def _attach(self, interest: Interest[S], restore: bool) -> Interest[S]:
        if not self.fixed:
            self._appear(interest.named, restore)
        nodes = [node for node in self._reach(interest.scope) if interest.matches(node.topic)]
        if self.fixed and not nodes and not restore:
            raise self._unmatched(interest.expressions)
        self._index.add(interest)
        self._marks += 1
        for node in nodes:
            node.attach(interest)
        return interest

    def _appear(self, topics: Iterable[Topic], restore: bool) -> None:
        new = [topic for topic in topics if topic not in self._nodes]
        if new and not restore:
            self._check_room(*new)
        for topic in new:
            self._grow(topic)

    def _detach(self, interest: Interest[S]) -> None:
        for node in self._reach(interest.scope):
            node.detach(interest)
        self._index.discard(interest)
        self._marks += 1
        for topic in interest.named:
            if topic in self._nodes:
                self._prune(self._nodes[topic])

    def _reach(self, scope: Scope) -> Iterator[Node[S]]:
        """The nodes in a scope."""
        for anchor in scope.anchors:
            node = self._nodes.get(anchor)
            if node is not None:
                yield from (node,) if scope.exact else node.walk()
        if scope.namespaces:
            for tree in self.root.children.values():
                if tree.topic.namespace in scope.namespaces:
                    yield from tree.walk()

    def _grow(self, topic: Topic) -> Node[S]:
        parent = topic.parent
        branch: Branch[S] | None = self.root if parent is None else self._nodes.get(parent)
        if branch is None:
            assert parent is not None
            branch = self._grow(parent)
        node = Node(topic, branch)
        self._version += 1
        self._nodes[topic] = node
        if self._outside:
            node.current = self._outside.pop(topic, None)
        if len(self._index):
            for interest in self._index.matching(topic, node.ancestors):
                node.attach(interest)
        return node

    def _withdraw(self, node: Node[S]) -> None:
        if node.topic not in self._nodes:
            return  # it went with the last topic below it
        node.declared = False
        self._marks += 1
        if self.fixed:
            if node.current is not None:
                self._outside[node.topic] = node.current
            self._drop(node)
        else:
            node.description, node.routing, node.path = "", None, None
            self._prune(node)

    def _prune(self, node: Node[S]) -> None:
        """Drop an open topic that nothing holds, then its parents likewise."""
        while not self.fixed and not self._is_held(node):
            self._drop(node)
            if not isinstance(node.parent, Node):
                break
            node = node.parent

    def _is_held(self, node: Node[S]) -> bool:
        held = node.declared or node.current is not None or bool(node.children)
        return held or self._index.names(node.topic)

    def _drop(self, node: Node[S]) -> None:
        self._version += 1
        del self._nodes[node.topic]
        node.leave()

    def _check_room(self, *topics: Topic) -> None:
        new = {place for topic in topics for place in missing(topic, self._nodes)}
        if len(self._nodes) + len(new) > self.limit:
            raise TopicNotSupportedFault(
                f"topic {topics[0]} is new and this broker holds no more than {self.limit} topics: "
                "use one that exists, or raise its setting topics.open_limit"
            )

    def _unmatched(self, expressions: Expressions) -> TopicNotSupportedFault:
        for expression in expressions:
            if expression.topic is not None and expression.topic not in self._nodes:
                return self.unsupported(expression.topic)
        texts = " and ".join(expression.text for expression in expressions)
        return TopicNotSupportedFault(f"none of the fixed topics of this broker matches {texts}")

    def _enter(self, group: Group[S], subscriber: S) -> None:
        if group.add(subscriber):
            held = self._held.get(subscriber, 0)
            self._held[subscriber] = held + 1
            self._overlaps += held == 1

    def _leave(self, group: Group[S], subscriber: S) -> bool:
        if not group.discard(subscriber):
            return False
        held = self._held.pop(subscriber) - 1
        if held:
            self._held[subscriber] = held
        self._overlaps -= held == 1
        return True
