"""Encodes the topic tree as TopicSet and TopicNamespace documents (WS-Topics 1.3 sections 5 and 6).

Each branch is visited once, and its children are copied in one step. So a thread can encode a large tree
while the event loop changes it: the document contains every topic that exists during the whole encoding.
"""

from collections.abc import Iterator

from hpwsn.topics.tree.subscriber_groups import S
from hpwsn.topics.tree.topic_node import Branch, Node
from hpwsn_client.wsn.soap.names import DIALECT_FULL, HPWSN, PREFIXES, WSTOP, wsnt
from hpwsn_client.wsn.soap.xml import escape, escape_attribute
from hpwsn_client.wsn.topics.topic_expressions import encode_topic, parse_topic_expression

# A topic in one of these namespaces would be read as an element of that standard.
_RESERVED = frozenset(PREFIXES) - {HPWSN}


def topic_set(root: Branch[S]) -> bytes:
    """Encode all topics as a wstop:TopicSet; elements that only lead to other topics are not marked."""
    inside = "".join(piece for node in _children(root) for piece in _in_set(node))
    return f'<wstop:TopicSet xmlns:wstop="{WSTOP}">{inside}</wstop:TopicSet>'.encode()


def topic_expressions(root: Branch[S]) -> Iterator[bytes]:
    """Yield a wsnt:TopicExpression for each root topic, which covers its whole tree."""
    for node in _children(root):
        text, scope = f"t:{node.name}//.", {"t": node.topic.namespace}
        yield encode_topic(parse_topic_expression(text, DIALECT_FULL, scope), wsnt("TopicExpression"))


def topic_namespace(root: Branch[S], namespace: str) -> bytes | None:
    """Encode the trees of one namespace as a wstop:TopicNamespace; None if there are none."""
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
    """Return namespace and name: a root has its topic's namespace, others only one that the step names."""
    namespace, brace, name = node.name.rpartition("}")
    if brace:
        return namespace[1:], name
    return (node.topic.namespace if len(node.topic.path) == 1 else ""), name


def _is_topic(node: Node[S]) -> bool:
    """Whether the topic is declared, has a current message or has subscribers."""
    return node.declared or node.current is not None or bool(node.groups)


def _in_namespace(node: Node[S]) -> Iterator[str]:
    if node.name.startswith("{"):
        return  # a step that another namespace adds to this tree
    yield f'<wstop:Topic name="{node.name}">'
    if node.description:
        yield f"<wstop:documentation>{escape(node.description)}</wstop:documentation>"
    for child in _children(node):
        yield from _in_namespace(child)
    yield "</wstop:Topic>"
