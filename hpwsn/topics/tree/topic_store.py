"""The nodes of the topic tree: which topics exist, how long, and what the tree knows about each.

All trees are below one virtual root. A topic exists because a directory declares it, or, in an open tree,
because it is used: a subscription names it, it has a current message, the log has events of it for jobs, or
it has children. hpwsn.topics.tree.declared_topics declares topics, hpwsn.topics.tree.tree matches
publications with subscribers.
"""

from collections.abc import Iterator
from typing import Generic

from hpwsn.topics.tree.declarations import missing_topics
from hpwsn.topics.tree.subscriber_groups import S, Scope, SubscriberGroupIndex
from hpwsn.topics.tree.topic_node import Branch, Node, similar_topics
from hpwsn_client.wsn.soap.faults import TopicNotSupportedFault
from hpwsn_client.wsn.topics.topic_expressions import Topic

DEFAULT_LIMIT = 1_000_000


class TopicStore(Generic[S]):
    """The nodes by topic, and the current messages of topics outside a fixed tree."""

    __slots__ = (
        "_index",
        "_kept",
        "_nodes",
        "_outside",
        "_usage",
        "fixed",
        "has_internal",
        "has_routing",
        "limit",
        "root",
        "version",
    )

    def __init__(self, fixed: bool, limit: int) -> None:
        self.root: Branch[S] = Branch()
        self.fixed = fixed
        self.limit = limit
        self.has_internal = False
        """Whether a topic is, or once was, internal; callers need not look for internal topics before."""
        self.has_routing = False
        """Whether a topic has, or once had, a routing policy."""
        self.version = 0
        """Changes with the topics and their visibility."""
        self._usage = 0
        self._nodes: dict[Topic, Node[S]] = {}
        # The current messages of topics that are not, or no longer, in a fixed tree.
        self._outside: dict[Topic, int] = {}
        # Topics of which the log has events for jobs; these never become current messages.
        self._kept: set[Topic] = set()
        self._index: SubscriberGroupIndex[S] = SubscriberGroupIndex()

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

    def find(self, topic: Topic) -> Node[S] | None:
        """Return the topic's node; None if it is unknown."""
        return self._nodes.get(topic)

    def topics(self) -> Iterator[Topic]:
        """All topics, breadth-first."""
        return (node.topic for node in self.nodes())

    def nodes(self) -> Iterator[Node[S]]:
        """All nodes without the virtual root, breadth-first."""
        return self.root.below()

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
        elif topic not in self._outside:
            self._outside[topic] = offset
            self.version += 1
        else:
            self._outside[topic] = offset
        return node

    def keep(self, topic: Topic) -> None:
        """Note that the log has events of this topic for jobs; they keep an open topic until a restart."""
        if topic not in self._kept:
            self._kept.add(topic)
            if not self.fixed and topic not in self._nodes:
                self._create(topic)

    def routing(self, topic: Topic) -> str | None:
        """Return the routing policy of the topic or of its nearest ancestor with one; None if none is set."""
        branch: Branch[S] | None = self._nearest(topic) if self.has_routing else None
        while isinstance(branch, Node):
            if branch.routing is not None:
                return branch.routing
            branch = branch.parent
        return None

    def is_internal(self, topic: Topic) -> bool:
        """Whether only jobs read the topic; a topic outside the tree is as the nearest one above it."""
        if not self.has_internal:
            return False
        node = self._nearest(topic)
        return node is not None and node.internal

    def _nearest(self, topic: Topic) -> Node[S] | None:
        """Return the topic's node or the nearest one above it; None if there is none."""
        node = self._nodes.get(topic)
        if node is None:
            node = next((found for each in topic.ancestors() if (found := self._nodes.get(each))), None)
        return node

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

    def unsupported(self, topic: Topic) -> TopicNotSupportedFault:
        """Return the fault for a topic outside this fixed tree, with suggestions."""
        similar = ", ".join(str(found) for found in similar_topics(self.root, topic))
        hint = f"; did you mean {similar}?" if similar else ""
        return TopicNotSupportedFault(f"topic {topic} is not among the fixed topics of this broker{hint}")

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

    def _prune(self, node: Node[S]) -> None:
        """Drop an open topic that is not in use, and then its parents."""
        while not self.fixed and not self._is_in_use(node):
            self._drop(node)
            if not isinstance(node.parent, Node):
                break
            node = node.parent

    def _is_in_use(self, node: Node[S]) -> bool:
        in_use = node.declared or node.current is not None or bool(node.children)
        return in_use or self._index.names(node.topic) or node.topic in self._kept

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
