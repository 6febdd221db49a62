"""What a user may pass to the client, turned into the wire's values: endpoints, topics, payloads,
lifetimes, filters.

Nothing is guessed. A text that begins with '<' is XML and must be well-formed; any other text is plain
text. Mistakes of the caller are ValueError or TypeError with the value and the remedy; a topic that is no
topic is the standard's InvalidTopicExpressionFault, as the broker would have said.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from functools import lru_cache
from math import isfinite
from typing import Protocol

from lxml import etree

from hpwsn_client.environment import check_url
from hpwsn_client.wsn.operations.filters import ContentFilter
from hpwsn_client.wsn.operations.notifications import NotificationMessage, text_payload
from hpwsn_client.wsn.soap.addressing import EndpointReference
from hpwsn_client.wsn.soap.faults import InvalidTopicExpressionFault, SoapFault
from hpwsn_client.wsn.soap.names import DIALECT_PREDICATES, DIALECT_SIMPLE, DIALECT_XPATH, PREFIXES
from hpwsn_client.wsn.soap.times import Duration, Termination
from hpwsn_client.wsn.soap.xml import encode_element, parse_xml
from hpwsn_client.wsn.topics.topic import Topic
from hpwsn_client.wsn.topics.topic_expressions import TopicExpression, parse_topic_expression


class HasEndpoint(Protocol):
    """Anything with an endpoint reference: a Receiver, a PullPoint, a Subscription, in either form."""

    @property
    def epr(self) -> EndpointReference: ...


Endpoint = str | EndpointReference | HasEndpoint
TopicLike = str | Topic | TopicExpression
Payload = str | bytes | etree._Element
Expires = timedelta | datetime | float | int | None
Namespaces = Mapping[str, str]

_STANDARD_PREFIXES = {prefix: uri for uri, prefix in PREFIXES.items()}


def endpoint(value: Endpoint) -> EndpointReference:
    """The endpoint reference that a URL, a reference, or an object with one stands for."""
    if isinstance(value, str):
        return EndpointReference(check_url(value))
    return value if isinstance(value, EndpointReference) else value.epr


def topic_expression(
    topic: TopicLike, dialect: str | None = None, namespaces: Namespaces | None = None
) -> TopicExpression:
    """The expression to subscribe to; a topic without a dialect covers its subtree (Simple)."""
    if isinstance(topic, TopicExpression):
        return topic
    if isinstance(topic, str) and "{" not in topic:
        bound: dict[str | None, str] = dict((namespaces or {}).items())
        return parse_topic_expression(topic, dialect, bound)
    named = Topic.parse(topic) if isinstance(topic, str) else topic
    return TopicExpression.of(named, dialect or DIALECT_SIMPLE)


def concrete_topic(topic: TopicLike, namespaces: Namespaces | None = None) -> TopicExpression:
    """The expression for the one topic to publish on or to ask for; Simple where it has a single name."""
    if isinstance(topic, str) and ("{" in topic or not namespaces):
        return _plain_topic(topic)
    named = topic if isinstance(topic, Topic) else topic_expression(topic, None, namespaces).topic
    if named is None:
        raise InvalidTopicExpressionFault(f"{topic!r} may name several topics; name one, such as A:B:C")
    return TopicExpression.of_message(named)


@lru_cache(1024)
def _plain_topic(text: str) -> TopicExpression:
    """A publisher repeats its topics, so each is parsed once."""
    return TopicExpression.of_message(Topic.parse(text))


def payload_bytes(payload: Payload) -> bytes:
    """The payload as one self-contained XML element."""
    if isinstance(payload, str):
        return _parsed(payload.strip().encode(), "utf-8") if _is_xml(payload) else text_payload(payload)
    if isinstance(payload, bytes):
        return _parsed(payload, None)
    if isinstance(payload, etree._Element) and isinstance(payload.tag, str):
        return encode_element(payload)
    raise TypeError(
        f"a payload is text, XML as str or bytes, or an lxml element, not {type(payload).__name__}"
    )


def _is_xml(text: str) -> bool:
    return text.lstrip().startswith("<")


def _parsed(data: bytes, charset: str | None) -> bytes:
    try:
        return encode_element(parse_xml(data, charset=charset, comments=True))
    except SoapFault as fault:
        shown = data[:60].decode("utf-8", "replace")
        raise ValueError(f"the payload {shown!r} cannot be sent as XML: {fault.reason}") from None


def notification_message(
    topic: TopicLike | None,
    payload: Payload,
    *,
    producer: Endpoint | None = None,
    namespaces: Namespaces | None = None,
) -> NotificationMessage:
    """The message to publish; without a topic it reaches subscribers without a topic filter."""
    expression = None if topic is None else concrete_topic(topic, namespaces)
    source = None if producer is None else endpoint(producer)
    return NotificationMessage(expression, payload_bytes(payload), source)


def termination(expires: Expires) -> Termination:
    """A lifetime as the standard has it: None is for ever; seconds and timedelta are a duration."""
    if expires is None:
        return None
    if isinstance(expires, datetime):
        if expires.tzinfo is None:
            raise ValueError(f"{expires.isoformat()} has no time zone; give it one, such as datetime.UTC")
        return expires
    seconds = expires.total_seconds() if isinstance(expires, timedelta) else float(expires)
    if not isfinite(seconds):
        raise ValueError(f"a lifetime of {seconds:g} seconds cannot be asked for; None means for ever")
    return Duration(0, seconds)


def property_name(name: str, namespaces: Namespaces | None = None) -> str:
    """The Clark name of a property that is written as one, or with a prefix: of the caller's, or of ours."""
    prefix, colon, local = name.partition(":")
    if name.startswith("{"):
        return name
    uri = {**_STANDARD_PREFIXES, **(namespaces or {})}.get(prefix) if colon else None
    if uri is None:
        raise ValueError(
            f"{name!r} names no namespace; write wsnt:FixedTopicSet, {{namespace}}name, or give namespaces="
        )
    return f"{{{uri}}}{local}"


def content_filters(
    content: str | ContentFilter | None, predicate: str | None, namespaces: Namespaces | None = None
) -> tuple[ContentFilter, ...]:
    """What selects by content, in XPath and in predicates; all of it must hold."""
    xpath = () if content is None else (content_filter(content, namespaces),)
    return xpath if predicate is None else (*xpath, ContentFilter(DIALECT_PREDICATES, predicate))


def content_filter(content: str | ContentFilter, namespaces: Namespaces | None = None) -> ContentFilter:
    """An XPath expression with its prefixes, or a filter as it is."""
    if isinstance(content, ContentFilter):
        return content
    return ContentFilter(DIALECT_XPATH, content, tuple(sorted((namespaces or {}).items())))
