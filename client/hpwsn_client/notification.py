"""A notification as a subscriber sees it: topic and payload, and whence it came.

Built from a NotificationMessage of WS-BaseNotification 1.3 section 3.2, or from the bare payload of a raw
delivery (UseRaw). The payload stays bytes until somebody asks for its element.
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
    """One received notification; `topic` is `A:B:C`, `{namespace}A:B:C`, or None where it has none."""

    topic: str | None
    payload: bytes
    subscription: EndpointReference | None = None
    producer: EndpointReference | None = None
    message_id: str | None = None

    @classmethod
    def of(cls, message: NotificationMessage, message_id: str | None = None) -> Notification:
        """The wire's message as users see it; the id is that of the delivery it came in."""
        topic = None if message.topic is None else topic_text(message.topic)
        return cls(topic, message.payload, message.subscription, message.producer, message_id)

    @cached_property
    def element(self) -> etree._Element:
        """The payload without its comments and processing instructions, parsed when first asked for."""
        return parse_xml(self.payload)

    @property
    def is_text(self) -> bool:
        """Whether plain text was published, not an XML element."""
        return self.element.tag == hp("text") and not len(self.element)

    @cached_property
    def text(self) -> str:
        """The payload as a publisher writes it: the plain text, or the XML element's source."""
        return (self.element.text or "") if self.is_text else self.payload.decode()


def topic_text(expression: TopicExpression) -> str:
    """The one topic that an expression names, else the expression as it was written."""
    return expression.text if expression.topic is None else str(expression.topic)
