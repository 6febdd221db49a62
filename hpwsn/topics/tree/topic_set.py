"""The topic tree as the standard's documents: TopicSet and TopicNamespace (WS-Topics 1.3 sections 5 and 6).

Owns nothing but the writing. Looks at each branch of the tree once and copies its children in one step, so
that a thread may write a large tree while the event loop goes on changing it: every topic that is there all
the time is in the document.
"""

from collections.abc import Iterator

from hpwsn.topics.tree.subscriber_groups import S
from hpwsn.topics.tree.topic_node import Branch, Node
from hpwsn_client.wsn.soap.names import DIALECT_FULL, HPWSN, PREFIXES, WSTOP, wsnt
from hpwsn_client.wsn.soap.xml import escape, escape_attribute
from hpwsn_client.wsn.topics.topic_expressions import encode_topic, parse_topic_expression

# A topic named in one of these would be read as that standard's own element of the name.
_RESERVED = frozenset(PREFIXES) - {HPWSN}


def topic_set(root: Branch[S]) -> bytes:
    """All topics as a wstop:TopicSet: an element for each, marked where it is more than a way to others."""
    inside = "".join(piece for node in _children(root) for piece in _in_set(node))
    return f'<wstop:TopicSet xmlns:wstop="{WSTOP}">{inside}</wstop:TopicSet>'.encode()


def topic_expressions(root: Branch[S]) -> Iterator[bytes]:
    """A wsnt:TopicExpression for each tree, with all that is in it."""
    for node in _children(root):
        text, scope = f"t:{node.name}//.", {"t": node.topic.namespace}
        yield encode_topic(parse_topic_expression(text, DIALECT_FULL, scope), wsnt("TopicExpression"))


def topic_namespace(root: Branch[S], namespace: str) -> bytes | None:
    """The trees of one namespace as a wstop:TopicNamespace, None where there are none."""
    trees = [node for node in _children(root) if node.topic.namespace == namespace]
    if not trees:
        return None
    inside = "".join(piece for node in trees for piece in _in_namespace(node))
    return (
        f'<wstop:TopicNamespace xmlns:wstop="{WSTOP}" targetNamespace="{escape_attribute(namespace)}">'
        f"{inside}</wstop:TopicNamespace>"
    ).encode()


def _children(branch: Branch[S]) -> tuple[Node[S], ...]:
    return tuple(branch.children.values())


def _in_set(node: Node[S]) -> Iterator[str]:
    namespace, name = _element_name(node)
    if namespace in _RESERVED:
        return
    children = _children(node)
    mark = ' wstop:topic="true"' if not children or _is_topic(node) else ""
    tag, declaration = (f"t:{name}", f' xmlns:t="{escape_attribute(namespace)}"') if namespace else (name, "")
    yield f"<{tag}{declaration}{mark}>"
    for child in children:
        yield from _in_set(child)
    yield f"</{tag}>"


def _element_name(node: Node[S]) -> tuple[str, str]:
    """A root is an element of its topic's namespace, and one below it of none unless its step names one."""
    namespace, brace, name = node.name.rpartition("}")
    if brace:
        return namespace[1:], name
    return (node.topic.namespace if len(node.topic.path) == 1 else ""), name


def _is_topic(node: Node[S]) -> bool:
    """Whether somebody declared it, published on it or wants it; else it is there for what is below it."""
    return node.declared or node.current is not None or bool(node.groups)


def _in_namespace(node: Node[S]) -> Iterator[str]:
    if node.name.startswith("{"):
        return  # another namespace's addition to this tree
    yield f'<wstop:Topic name="{node.name}">'
    if node.description:
        yield f"<wstop:documentation>{escape(node.description)}</wstop:documentation>"
    for child in _children(node):
        yield from _in_namespace(child)
    yield "</wstop:Topic>"
