"""Conversion of the client's arguments into protocol values: endpoints, topics, payloads, lifetimes, filters.

A string that begins with '<' is XML and must be well-formed; any other string is plain text. A wrong argument
raises ValueError or TypeError with the value and the remedy. An invalid topic raises the standard's
InvalidTopicExpressionFault, as the broker would.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from datetime import datetime, timedelta
from functools import lru_cache
from math import isfinite
from typing import Any, Protocol

from lxml import etree

from hpwsn_client.environment import check_url
from hpwsn_client.wsn.operations.filters import ContentFilter
from hpwsn_client.wsn.operations.notifications import NotificationMessage, text_payload
from hpwsn_client.wsn.soap.addressing import EndpointReference
from hpwsn_client.wsn.soap.faults import InvalidTopicExpressionFault, SoapFault
from hpwsn_client.wsn.soap.names import DIALECT_PREDICATES, DIALECT_SIMPLE, DIALECT_XPATH, PREFIXES
from hpwsn_client.wsn.soap.times import Duration, Termination
from hpwsn_client.wsn.soap.trace_context import parse_traceparent
from hpwsn_client.wsn.soap.xml import DEFAULT_LIMITS, Limits, encode_element, parse_xml
from hpwsn_client.wsn.topics.topic import Topic
from hpwsn_client.wsn.topics.topic_expressions import TopicExpression, parse_topic_expression


class HasEndpoint(Protocol):
    """An object with an endpoint reference, such as a Receiver, a PullPoint or a SyncSubscription."""

    @property
    def epr(self) -> EndpointReference: ...


Endpoint = str | EndpointReference | HasEndpoint
TopicLike = str | Topic | TopicExpression
Payload = str | bytes | etree._Element
Expires = timedelta | datetime | float | int | None
Namespaces = Mapping[str, str]

_STANDARD_PREFIXES = {prefix: uri for uri, prefix in PREFIXES.items()}


def endpoint(value: Endpoint) -> EndpointReference:
    """The endpoint reference for a URL, an endpoint reference, or an object that has one."""
    if isinstance(value, str):
        return EndpointReference(check_url(value))
    return value if isinstance(value, EndpointReference) else value.epr


def topic_expression(
    topic: TopicLike, dialect: str | None = None, namespaces: Namespaces | None = None
) -> TopicExpression:
    """The expression to subscribe with; without a dialect, a topic includes its subtree (Simple)."""
    if isinstance(topic, TopicExpression):
        return topic
    if isinstance(topic, str) and "{" not in topic:
        bound: dict[str | None, str] = dict((namespaces or {}).items())
        return parse_topic_expression(topic, dialect, bound)
    named = Topic.parse(topic) if isinstance(topic, str) else topic
    return TopicExpression.of(named, dialect or DIALECT_SIMPLE)


def concrete_topic(topic: TopicLike, namespaces: Namespaces | None = None) -> TopicExpression:
    """The expression for exactly one topic; its dialect is Simple if the topic has a single name."""
    if isinstance(topic, str) and ("{" in topic or not namespaces):
        return _parse_concrete_topic(topic)
    named = topic if isinstance(topic, Topic) else topic_expression(topic, None, namespaces).topic
    if named is None:
        raise InvalidTopicExpressionFault(
            f"{topic!r} may match several topics; name one topic, such as A:B:C"
        )
    return TopicExpression.of_message(named)


@lru_cache(1024)
def _parse_concrete_topic(text: str) -> TopicExpression:
    """Cached, because a publisher repeats its topics."""
    return TopicExpression.of_message(Topic.parse(text))


def payload_bytes(payload: Payload, limits: Limits = DEFAULT_LIMITS) -> bytes:
    """The payload as one self-contained XML element; ValueError if it exceeds the limits."""
    encoded = _encode(payload, limits)
    if len(encoded) > limits.body:
        raise ValueError(
            f"the payload has {len(encoded)} bytes as XML, and the limit of this client is {limits.body};"
            " send less, or give the client limits=Limits(body=...)"
        )
    return encoded


def _encode(payload: Payload, limits: Limits) -> bytes:
    if isinstance(payload, str):
        if not _is_xml(payload):
            return text_payload(payload)
        return _normalized_xml(payload.strip().encode(), "utf-8", limits)
    if isinstance(payload, bytes):
        return _normalized_xml(payload, None, limits)
    if isinstance(payload, etree._Element) and isinstance(payload.tag, str):
        return encode_element(payload)
    raise TypeError(
        f"the payload is a {type(payload).__name__}; give text, XML as str or bytes, or an lxml element"
    )


def _is_xml(text: str) -> bool:
    return text.lstrip().startswith("<")


def _normalized_xml(data: bytes, charset: str | None, limits: Limits) -> bytes:
    try:
        return encode_element(parse_xml(data, limits, charset, comments=True))
    except SoapFault as fault:
        excerpt = data[:60].decode("utf-8", "replace")
        raise ValueError(f"the payload {excerpt!r} cannot be sent as XML: {fault.reason}") from None


def notification_message(
    topic: TopicLike | None,
    payload: Payload,
    *,
    producer: Endpoint | None = None,
    namespaces: Namespaces | None = None,
    limits: Limits = DEFAULT_LIMITS,
) -> NotificationMessage:
    """The message to publish; one without a topic reaches only subscriptions without a topic filter."""
    expression = None if topic is None else concrete_topic(topic, namespaces)
    source = None if producer is None else endpoint(producer)
    return NotificationMessage(expression, payload_bytes(payload, limits), source)


def termination(expires: Expires) -> Termination:
    """The requested termination time; None means no expiry, seconds and timedelta give a duration."""
    if expires is None:
        return None
    if isinstance(expires, datetime):
        if expires.tzinfo is None:
            raise ValueError(f"{expires.isoformat()} has no time zone; add one, such as datetime.UTC")
        return expires
    seconds = expires.total_seconds() if isinstance(expires, timedelta) else float(expires)
    if not isfinite(seconds):
        raise ValueError(f"a lifetime of {seconds:g} seconds is not finite; give None for no expiry")
    return Duration(0, seconds)


def duration(lifetime: timedelta | float | None) -> Duration | None:
    """The duration of a timedelta or of a number of seconds; None stays None."""
    requested = termination(lifetime)
    if requested is not None and (not isinstance(requested, Duration) or requested.seconds <= 0):
        raise ValueError(f"{lifetime!r} is not a lifetime; give seconds or a timedelta, longer than zero")
    return requested


def property_name(name: str, namespaces: Namespaces | None = None) -> str:
    """The Clark name of a property; a prefix is looked up in `namespaces`, then in the standard prefixes."""
    prefix, colon, local = name.partition(":")
    if name.startswith("{"):
        return name
    uri = {**_STANDARD_PREFIXES, **(namespaces or {})}.get(prefix) if colon else None
    if uri is None:
        raise ValueError(
            f"{name!r} has no known namespace; write wsnt:FixedTopicSet or {{namespace}}name,"
            " or give namespaces="
        )
    return f"{{{uri}}}{local}"


def content_filters(
    content: str | ContentFilter | None, predicate: str | None, namespaces: Namespaces | None = None
) -> tuple[ContentFilter, ...]:
    """The content filters for an XPath expression and a predicate; a notification must match both."""
    xpath = () if content is None else (content_filter(content, namespaces),)
    return xpath if predicate is None else (*xpath, ContentFilter(DIALECT_PREDICATES, predicate))


def content_filter(content: str | ContentFilter, namespaces: Namespaces | None = None) -> ContentFilter:
    """The filter for an XPath expression and its prefixes; a ContentFilter is returned unchanged."""
    if isinstance(content, ContentFilter):
        return content
    return ContentFilter(DIALECT_XPATH, content, tuple(sorted((namespaces or {}).items())))


def trace_of_caller(traceparent: str | None = None) -> str | None:
    """The traceparent given, or that of the current span if the application has loaded OpenTelemetry.

    ValueError for a malformed one; None without a span. This never imports OpenTelemetry.
    """
    if traceparent is not None:
        found = parse_traceparent(traceparent)
        if found is None:
            raise ValueError(
                f"traceparent is {traceparent!r}; write 00-TRACE-PARENT-FLAGS with 32, 16 and 2 hex digits"
            )
        return found
    api: Any = sys.modules.get("opentelemetry.trace")
    if api is None:
        return None
    context = api.get_current_span().get_span_context()
    if not context.is_valid:
        return None
    return f"00-{context.trace_id:032x}-{context.span_id:016x}-{int(context.trace_flags):02x}"
