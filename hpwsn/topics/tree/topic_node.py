"""One topic of the tree with its subscriber groups, and suggestions for unknown topics.

Only the tree changes the links between nodes. The search for similar topics checks a bounded number of names,
because any client can trigger it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from difflib import get_close_matches
from itertools import islice
from types import MappingProxyType
from typing import Generic

from hpwsn.topics.tree.declarations import INTERNAL
from hpwsn.topics.tree.subscriber_groups import S, SubscriberGroup
from hpwsn_client.wsn.topics.topic_expressions import Topic

_MAX_CHECKED = 200
_MAX_SUGGESTIONS = 3


class Branch(Generic[S]):
    """A parent of topics: the virtual root, or a topic."""

    __slots__ = ("_children",)

    def __init__(self) -> None:
        # Most topics are leaves without subscribers, so dictionaries are created on first use.
        self._children: dict[Topic, Node[S]] | None = None

    @property
    def children(self) -> Mapping[Topic, Node[S]]:
        """The child nodes by topic, in order of their codes."""
        return self._children or MappingProxyType({})

    @property
    def code(self) -> str:
        """The position in the tree; empty for the root."""
        return ""

    def below(self) -> Iterator[Node[S]]:
        """All nodes below this one, breadth-first."""
        level: list[Branch[S]] = [self]
        while level:
            nodes = [node for branch in level if branch._children for node in branch._children.values()]
            yield from nodes
            level = [*nodes]

    def add_child(self, child: Node[S]) -> None:
        """Add a new child node."""
        if self._children is None:
            self._children = {}
        # The last child has the highest ordinal, so no counter is needed.
        child.ordinal = next(reversed(self._children.values())).ordinal + 1 if self._children else 1
        self._children[child.topic] = child

    def remove_child(self, child: Node[S]) -> None:
        """Remove a child node that has no children itself."""
        if self._children is not None:
            del self._children[child.topic]
            self._children = self._children or None


class Node(Branch[S]):
    """A topic in the tree.

    `current` is the offset of its current message or None, `declared` whether a directory names it, and
    `path` its DN if that directory is in LDAP. `internal` is whether only jobs read it: it is marked so, or a
    topic above it is.
    """

    __slots__ = (
        "_groups",
        "current",
        "declared",
        "description",
        "internal",
        "ordinal",
        "parent",
        "path",
        "routing",
        "topic",
        "visibility",
    )

    def __init__(self, topic: Topic, parent: Branch[S]) -> None:
        super().__init__()
        self.topic = topic
        self.parent = parent
        self.ordinal = 0
        self.declared = False
        self.description = ""
        self.routing: str | None = None
        self.path: str | None = None
        self.visibility: str | None = None
        self.internal: bool = isinstance(parent, Node) and parent.internal
        self.current: int | None = None
        self._groups: dict[SubscriberGroup[S], None] | None = None
        parent.add_child(self)

    @property
    def name(self) -> str:
        """The last step of the topic's path."""
        return self.topic.name

    @property
    def code(self) -> str:
        """The position in the tree, such as "1.3.2"; it never changes during the lifetime of the node."""
        above = self.parent.code
        return f"{above}.{self.ordinal}" if above else str(self.ordinal)

    @property
    def subscribers(self) -> tuple[S, ...]:
        """All subscribers to this topic, each once."""
        return tuple({who: None for group in self.groups for who in group.subscribers.members})

    @property
    def groups(self) -> Collection[SubscriberGroup[S]]:
        """The subscriber groups that match this topic."""
        return self._groups or ()

    @property
    def ancestors(self) -> Iterator[Topic]:
        """The topics above this one, the nearest first."""
        branch = self.parent
        while isinstance(branch, Node):
            yield branch.topic
            branch = branch.parent

    def walk(self) -> Iterator[Node[S]]:
        """This node and all nodes below it, breadth-first."""
        yield self
        yield from self.below()

    def set_visibility(self, visibility: str | None) -> bool:
        """Set the visibility for this topic and all below it; whether any of them changed sides."""
        self.visibility = visibility
        before = self.internal
        above = isinstance(self.parent, Node) and self.parent.internal
        self.internal = above or visibility == INTERNAL
        if self.internal == before:
            return False
        for node in self.below():  # parents first
            assert isinstance(node.parent, Node)
            node.internal = node.parent.internal or node.visibility == INTERNAL
        return True

    def attach(self, group: SubscriberGroup[S]) -> None:
        """Add a subscriber group that matches this topic."""
        if self._groups is None:
            self._groups = {}
        if group not in self._groups:
            self._groups[group] = None
            group.count += 1

    def detach(self, group: SubscriberGroup[S]) -> None:
        """Remove a subscriber group, if it is attached."""
        if self._groups is None or group not in self._groups:
            return
        del self._groups[group]
        group.count -= 1
        if not self._groups:
            self._groups = None

    def unlink(self) -> None:
        """Remove the node from the tree, and all its subscriber groups."""
        for group in tuple(self.groups):
            self.detach(group)
        self.parent.remove_child(self)


def similar_topics(root: Branch[S], topic: Topic) -> list[Topic]:
    """Return up to three similar topics: siblings of the first unknown step, or the same name elsewhere."""
    branch, unknown = _deepest_known(root, topic)
    beside = {child.name.lower(): child for child in _some(branch)}
    close = get_close_matches(unknown.name.lower(), beside, n=_MAX_SUGGESTIONS)
    found = [_follow(beside[name], topic).topic for name in close]
    elsewhere = (node.topic for node in islice(root.below(), _MAX_CHECKED) if node.name == topic.name)
    return list(dict.fromkeys([*found, *elsewhere]))[:_MAX_SUGGESTIONS]


def _some(branch: Branch[S]) -> Iterator[Node[S]]:
    return islice(branch.children.values(), _MAX_CHECKED)


def _deepest_known(root: Branch[S], topic: Topic) -> tuple[Branch[S], Topic]:
    branch = root
    for place in (*reversed(tuple(topic.ancestors())), topic):
        child = branch.children.get(place)
        if child is None:
            return branch, place
        branch = child
    return branch, topic


def _follow(node: Node[S], topic: Topic) -> Node[S]:
    """Descend from the corrected step along the rest of the topic's path, as far as it exists."""
    for step in topic.path[len(node.topic.path) :]:
        child = next((child for child in _some(node) if child.name == step), None)
        if child is None:
            break
        node = child
    return node
