"""Declares topics in the tree, and takes declarations back.

- A fixed tree contains what a directory declares. A removed topic keeps its current message outside the tree
  until it returns.
- An open tree also contains undeclared topics. A topic that is no longer declared stays while it is used,
  without description, routing policy and visibility.

Only a declaration marks a topic internal. All topics below it are internal too, declared or not.
"""

from collections.abc import Iterable

from hpwsn.topics.tree.declarations import Declaration, EditError, rebase, with_parents
from hpwsn.topics.tree.subscriber_groups import S
from hpwsn.topics.tree.topic_node import Branch, Node
from hpwsn.topics.tree.topic_store import TopicStore
from hpwsn_client.wsn.topics.topic_expressions import Topic


class DeclaredTopics(TopicStore[S]):
    """The store with declarations."""

    __slots__ = ()

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
        self.has_routing = self.has_routing or routing is not None
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

    def open_up(self) -> None:
        """Turn a fixed tree into an open one, with all topics that are used."""
        self.fixed = False
        self.version += 1
        named = (topic for group in self._index for topic in group.named)
        for topic in {**dict.fromkeys(named), **dict.fromkeys(self._outside), **dict.fromkeys(self._kept)}:
            if topic not in self._nodes:
                self._create(topic)

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
