"""One topic in the tree: what is known about it and who wants it. The tree alone changes its links.

What somebody may have meant by a topic that does not exist.

It looks at a bounded number of names, because a stranger can make it run by asking for nonsense.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from difflib import get_close_matches
from itertools import islice
from types import MappingProxyType
from typing import Generic

from hpwsn.topics.tree.subscriber_groups import S, SubscriberGroup
from hpwsn_client.wsn.topics.topic_expressions import Topic

_MAX_CHECKED = 200
_MAX_SUGGESTIONS = 3


class Branch(Generic[S]):
    """Something that topics hang under: the virtual root, which is nothing else, or another topic."""

    __slots__ = ("_children",)

    def __init__(self) -> None:
        # Most topics are leaves and many are unwanted, so dictionaries wait for their first entry.
        self._children: dict[Topic, Node[S]] | None = None

    @property
    def children(self) -> Mapping[Topic, Node[S]]:
        """The nodes directly below, by topic, in order of their codes."""
        return self._children or MappingProxyType({})

    @property
    def code(self) -> str:
        """The position in the tree; the root's is empty."""
        return ""

    def below(self) -> Iterator[Node[S]]:
        """All nodes below this one, breadth-first."""
        level: list[Branch[S]] = [self]
        while level:
            nodes = [node for branch in level if branch._children for node in branch._children.values()]
            yield from nodes
            level = [*nodes]

    def add_child(self, child: Node[S]) -> None:
        """Hang a new node under this one."""
        if self._children is None:
            self._children = {}
        # The youngest child is the last one and has the highest ordinal, so no counter is needed.
        child.ordinal = next(reversed(self._children.values())).ordinal + 1 if self._children else 1
        self._children[child.topic] = child

    def remove_child(self, child: Node[S]) -> None:
        """Cut off a node under this one, which had nobody below it any more."""
        if self._children is not None:
            del self._children[child.topic]
            self._children = self._children or None


class Node(Branch[S]):
    """A topic's place in the tree.

    `current` is the offset of its current message or None, `declared` whether a directory names it,
    `path` its place in that directory (a DN in LDAP).
    """

    __slots__ = (
        "_groups",
        "current",
        "declared",
        "description",
        "ordinal",
        "parent",
        "path",
        "routing",
        "topic",
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
        self.current: int | None = None
        self._groups: dict[SubscriberGroup[S], None] | None = None
        parent.add_child(self)

    @property
    def name(self) -> str:
        """The last step of the topic's path."""
        return self.topic.name

    @property
    def code(self) -> str:
        """The position in the tree, such as "1.3.2"; it stays the same as long as the node lives."""
        above = self.parent.code
        return f"{above}.{self.ordinal}" if above else str(self.ordinal)

    @property
    def subscribers(self) -> tuple[S, ...]:
        """All that subscribed to this topic, each once."""
        return tuple({who: None for group in self.groups for who in group.subscribers.members})

    @property
    def groups(self) -> Collection[SubscriberGroup[S]]:
        """The groups that match this topic."""
        return self._groups or ()

    @property
    def ancestors(self) -> Iterator[Topic]:
        """The topics above this one, the nearest first."""
        branch = self.parent
        while isinstance(branch, Node):
            yield branch.topic
            branch = branch.parent

    def walk(self) -> Iterator[Node[S]]:
        """This node and all below it, breadth-first."""
        yield self
        yield from self.below()

    def attach(self, group: SubscriberGroup[S]) -> None:
        """Let an group that matches this topic be found here."""
        if self._groups is None:
            self._groups = {}
        if group not in self._groups:
            self._groups[group] = None
            group.count += 1

    def detach(self, group: SubscriberGroup[S]) -> None:
        """Undo attach; nothing happens where the group was not here."""
        if self._groups is None or group not in self._groups:
            return
        del self._groups[group]
        group.count -= 1
        if not self._groups:
            self._groups = None

    def unlink(self) -> None:
        """Cut the node out of the tree; whoever still holds it finds no subscribers in it."""
        for group in tuple(self.groups):
            self.detach(group)
        self.parent.remove_child(self)


def similar_topics(root: Branch[S], topic: Topic) -> list[Topic]:
    """Up to three topics like this one: beside its first unknown step, or of the same name elsewhere."""
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
    """Down from the corrected step along the rest of the topic's path, as far as it exists."""
    for step in topic.path[len(node.topic.path) :]:
        child = next((child for child in _some(node) if child.name == step), None)
        if child is None:
            break
        node = child
    return node
