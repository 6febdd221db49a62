"""A received notification: topic, payload, and the producer and subscription it came from.

It is made from a NotificationMessage (WS-BaseNotification 1.3 section 3.2), or from the bare payload of a raw
delivery (UseRaw). The payload is parsed only when its element is first used.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from lxml import etree

from hpwsn_client.wsn.operations.notifications import NotificationMessage
from hpwsn_client.wsn.soap.addressing import EndpointReference
from hpwsn_client.wsn.soap.names import hp
from hpwsn_client.wsn.soap.xml import parse_xml
from hpwsn_client.wsn.topics.topic_expressions import TopicExpression


@dataclass(frozen=True)
class Notification:
    """One received notification; `topic` is `A:B:C` or `{namespace}A:B:C`, and None if it has no topic."""

    topic: str | None
    payload: bytes
    subscription: EndpointReference | None = None
    producer: EndpointReference | None = None
    message_id: str | None = None
    traceparent: str | None = None
    """The W3C trace context that it was published with, or that of the broker's span; None without one."""

    @classmethod
    def of(
        cls, message: NotificationMessage, message_id: str | None = None, traceparent: str | None = None
    ) -> Notification:
        """The notification in a NotificationMessage; `message_id` is the id of its delivery."""
        topic = None if message.topic is None else topic_text(message.topic)
        return cls(topic, message.payload, message.subscription, message.producer, message_id, traceparent)

    @cached_property
    def element(self) -> etree._Element:
        """The parsed payload, without comments and processing instructions."""
        return parse_xml(self.payload)

    @property
    def is_text(self) -> bool:
        """Whether the payload was published as plain text, not as XML."""
        return self.element.tag == hp("text") and not len(self.element)

    @cached_property
    def text(self) -> str:
        """The payload as the publisher wrote it: the plain text, or the XML source."""
        return (self.element.text or "") if self.is_text else self.payload.decode()


def topic_text(expression: TopicExpression) -> str:
    """The topic that the expression names, or the expression itself if it may match several topics."""
    return expression.text if expression.topic is None else str(expression.topic)
