"""Refuses subscribers of internal topics, which only jobs read.

An expression that can match a public topic is accepted, even if it also matches internal ones: its subscriber
gets the notifications of the public ones. The tree decides which topics are internal.
"""

from collections.abc import Callable

from hpwsn.topics.tree.subscriber_groups import Expressions, scope_of
from hpwsn_client.wsn.soap.faults import TopicNotSupportedFault
from hpwsn_client.wsn.topics.topic_expressions import Topic


def refuse_internal(
    expressions: Expressions, is_internal: Callable[[Topic], bool], simple_subtree: bool
) -> None:
    """Raise TopicNotSupportedFault if an expression names internal topics only, whatever topics come."""
    for expression in expressions:
        scope = scope_of(expression, simple_subtree)
        if scope.anchors and not scope.namespaces and all(map(is_internal, scope.anchors)):
            raise internal_fault(expression.text)


class InternalTopic(TopicNotSupportedFault, namespace=None):
    """A client wants notifications of internal topics."""


def internal_fault(topics: str) -> InternalTopic:
    """Return the fault for a client that wants notifications of internal topics."""
    return InternalTopic(f"topic {topics} is internal: only jobs read it, with the token of DATA/job.token")
