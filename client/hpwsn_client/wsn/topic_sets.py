"""The topics in a TopicSet document, WS-Topics 1.3 section 6.

Owns the reading. An element with the attribute wstop:topic is a topic, any other is only the way to some.
What is no topic of ours to name (a root in no namespace, an element of wstop) is passed over.
"""

from collections.abc import Iterator

from lxml import etree

from .names import WSTOP
from .topic import Topic

_MARK = f"{{{WSTOP}}}topic"
_STANDARD = f"{{{WSTOP}}}"


def parse_topic_set(element: etree._Element) -> tuple[Topic, ...]:
    """The topics of a wstop:TopicSet, in the order of the document."""
    found = []
    for root in element.iterchildren("{*}*"):
        namespace, _, name = root.tag[1:].rpartition("}")
        if namespace and not root.tag.startswith(_STANDARD):
            found += [Topic(namespace, path) for path in _paths(root, (name,))]
    return tuple(found)


def _paths(element: etree._Element, path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    if element.get(_MARK, "").strip() in ("true", "1"):
        yield path
    for child in element.iterchildren("*"):
        if not child.tag.startswith(_STANDARD):
            yield from _paths(child, (*path, child.tag))
