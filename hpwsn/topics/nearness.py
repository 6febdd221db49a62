"""What somebody may have meant by a topic that does not exist.

It looks at a bounded number of names, because a stranger can make it run by asking for nonsense.
"""

from collections.abc import Iterator
from difflib import get_close_matches
from itertools import islice

from hpwsn.topics.interests import S
from hpwsn.topics.node import Branch, Node
from hpwsn_client.wsn.topics import Topic

_LOOKED_AT = 200
_OFFERED = 3


def near_misses(root: Branch[S], topic: Topic) -> list[Topic]:
    """Up to three topics like this one: beside its first unknown step, or of the same name elsewhere."""
    branch, unknown = _deepest_known(root, topic)
    beside = {child.name.lower(): child for child in _some(branch)}
    close = get_close_matches(unknown.name.lower(), beside, n=_OFFERED)
    found = [_follow(beside[name], topic).topic for name in close]
    elsewhere = (node.topic for node in islice(root.below(), _LOOKED_AT) if node.name == topic.name)
    return list(dict.fromkeys([*found, *elsewhere]))[:_OFFERED]


def _some(branch: Branch[S]) -> Iterator[Node[S]]:
    return islice(branch.children.values(), _LOOKED_AT)


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
