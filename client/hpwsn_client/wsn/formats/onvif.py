"""The messages of ONVIF's event service (ONVIF Core Specification, section 9).

They are those of http://www.onvif.org/ver10/events/wsdl. The item filter is converted to XPath. Renew,
Unsubscribe, Subscribe and Notify are those of WS-BaseNotification. Invalid messages are rejected by the rules
of the schema; the node limits timeouts and message counts.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from lxml import etree

from hpwsn_client.wsn.formats.onvif_elements import (
    BLANKS,
    encode_tev,
    is_int,
    is_nil,
    leaf,
    parse_count,
    parse_initial_lifetime,
    parse_moment,
    parse_span,
    parts_of,
    texts_of,
    time_leaf,
)
from hpwsn_client.wsn.operations.filters import ContentFilter, Filter, encode_filter, parse_filter
from hpwsn_client.wsn.operations.messages import register_messages
from hpwsn_client.wsn.operations.notifications import (
    NotificationMessage,
    encode_notification_message,
    parse_notification_message,
)
from hpwsn_client.wsn.operations.policy import SubscriptionPolicy, encode_policy, parse_policy
from hpwsn_client.wsn.soap.addressing import EndpointReference, encode_epr, parse_epr
from hpwsn_client.wsn.soap.names import DIALECT_ITEM_FILTER, DIALECT_XPATH, TEV, TT, WSTOP, XSI, tev, wsnt
from hpwsn_client.wsn.soap.sequence import required
from hpwsn_client.wsn.soap.times import Duration, Termination, format_time
from hpwsn_client.wsn.soap.xml import encode_element, escape, escape_attribute

_TOPIC_SET = f"{{{WSTOP}}}TopicSet"
_EVERYTHING = Filter()
_DEFAULT_POLICY = SubscriptionPolicy()


@dataclass(frozen=True, slots=True)
class CreatePullPointSubscription:
    """A request for a pull point subscription; with a termination of None the node chooses the lifetime."""

    filter: Filter = _EVERYTHING
    termination: Termination = None
    policy: SubscriptionPolicy = _DEFAULT_POLICY


@dataclass(frozen=True, slots=True)
class CreatePullPointSubscriptionResponse:
    """The endpoint of the subscription, to pull from and to manage, and its termination time."""

    subscription: EndpointReference
    current_time: datetime
    termination_time: datetime | None


@dataclass(frozen=True, slots=True)
class PullMessages:
    """A request for at most `limit` messages; waits up to `timeout` for the first."""

    timeout: Duration
    limit: int


@dataclass(frozen=True, slots=True)
class PullMessagesResponse:
    """The messages, possibly none, and the new termination time of the subscription."""

    current_time: datetime
    termination_time: datetime
    messages: tuple[NotificationMessage, ...] = ()


@dataclass(frozen=True, slots=True)
class PullMessagesFaultResponse:
    """The maximum timeout and limit of PullMessages: the detail of the fault for larger requests."""

    max_timeout: Duration
    max_limit: int


@dataclass(frozen=True, slots=True)
class Seek:
    """A request to continue pulling at a time in the past."""

    time: datetime
    reverse: bool = False


@dataclass(frozen=True, slots=True)
class SetSynchronizationPoint:
    """A request to send the current state again."""


@dataclass(frozen=True, slots=True)
class SetSynchronizationPointResponse:
    """The current state will be sent."""


@dataclass(frozen=True, slots=True)
class GetEventProperties:
    """A request for the topics and the filters of this producer."""


@dataclass(frozen=True, slots=True)
class GetEventPropertiesResponse:
    """The topics, as a wstop:TopicSet, and the supported filter dialects."""

    namespace_locations: tuple[str, ...]
    fixed: bool
    topic_set: bytes
    topic_dialects: tuple[str, ...]
    content_dialects: tuple[str, ...]
    properties_dialects: tuple[str, ...] = ()
    schema_locations: tuple[str, ...] = (TT,)


@dataclass(frozen=True, slots=True)
class GetServiceCapabilities:
    """A request for the capabilities of the event service."""


@dataclass(frozen=True, slots=True)
class GetServiceCapabilitiesResponse:
    """The capabilities of the event service."""

    policies: bool
    pull_points: bool
    pausable: bool
    max_producers: int
    max_pull_points: int
    persistent: bool = False


OnvifMessage = (
    CreatePullPointSubscription
    | CreatePullPointSubscriptionResponse
    | PullMessages
    | PullMessagesResponse
    | PullMessagesFaultResponse
    | Seek
    | SetSynchronizationPoint
    | SetSynchronizationPointResponse
    | GetEventProperties
    | GetEventPropertiesResponse
    | GetServiceCapabilities
    | GetServiceCapabilitiesResponse
)


def parse_create_pull_point_subscription(element: etree._Element) -> CreatePullPointSubscription:
    """Parse a CreatePullPointSubscription; its item filters are converted to XPath."""
    parts = parts_of(element, "Filter", "InitialTerminationTime", "SubscriptionPolicy")
    wanted, lifetime, policy = parts
    return CreatePullPointSubscription(
        _EVERYTHING if wanted is None else as_xpath(parse_filter(wanted)),
        None if lifetime is None else parse_initial_lifetime(lifetime),
        _DEFAULT_POLICY if policy is None else parse_policy(policy),
    )


def encode_create_pull_point_subscription(message: CreatePullPointSubscription) -> bytes:
    """Encode a CreatePullPointSubscription without empty parts."""
    wanted, policy = _content(encode_filter(message.filter)), _content(encode_policy(message.policy))
    return encode_tev(
        "CreatePullPointSubscription",
        b"" if message.filter == _EVERYTHING else encode_tev("Filter", wanted),
        b"" if message.termination is None else time_leaf("InitialTerminationTime", message.termination),
        b"" if message.policy == _DEFAULT_POLICY else encode_tev("SubscriptionPolicy", policy),
    )


def parse_create_pull_point_subscription_response(
    element: etree._Element,
) -> CreatePullPointSubscriptionResponse:
    """Parse a CreatePullPointSubscriptionResponse."""
    reference = required(element, element.find(tev("SubscriptionReference")), "SubscriptionReference", TEV)
    now = required(element, element.find(wsnt("CurrentTime")), "CurrentTime")
    end = required(element, element.find(wsnt("TerminationTime")), "TerminationTime")
    return CreatePullPointSubscriptionResponse(
        parse_epr(reference), parse_moment(now), None if is_nil(end) else parse_moment(end)
    )


def encode_create_pull_point_subscription_response(message: CreatePullPointSubscriptionResponse) -> bytes:
    """Encode a CreatePullPointSubscriptionResponse."""
    end = f'<wsnt:TerminationTime xmlns:xsi="{XSI}" xsi:nil="true"/>'
    if message.termination_time is not None:
        end = f"<wsnt:TerminationTime>{format_time(message.termination_time)}</wsnt:TerminationTime>"
    now = f"<wsnt:CurrentTime>{format_time(message.current_time)}</wsnt:CurrentTime>"
    return encode_tev(
        "CreatePullPointSubscriptionResponse",
        encode_epr(message.subscription, tev("SubscriptionReference")),
        now.encode(),
        end.encode(),
    )


def parse_pull_messages(element: etree._Element) -> PullMessages:
    """Parse a PullMessages."""
    timeout, limit = parts_of(element, "Timeout", "MessageLimit")
    return PullMessages(
        parse_span(required(element, timeout, "Timeout", TEV)),
        parse_count(required(element, limit, "MessageLimit", TEV)),
    )


def encode_pull_messages(message: PullMessages) -> bytes:
    """Encode a PullMessages."""
    return encode_tev(
        "PullMessages", time_leaf("Timeout", message.timeout), leaf("MessageLimit", message.limit)
    )


def parse_pull_messages_response(element: etree._Element) -> PullMessagesResponse:
    """Parse a PullMessagesResponse."""
    now = required(element, element.find(tev("CurrentTime")), "CurrentTime", TEV)
    end = required(element, element.find(tev("TerminationTime")), "TerminationTime", TEV)
    messages = element.iterchildren(wsnt("NotificationMessage"))
    return PullMessagesResponse(
        parse_moment(now), parse_moment(end), tuple(map(parse_notification_message, messages))
    )


def encode_pull_messages_response(message: PullMessagesResponse) -> bytes:
    """Encode a PullMessagesResponse."""
    written = map(encode_notification_message, message.messages)
    return join_pull_messages_response(message.current_time, message.termination_time, written)


def join_pull_messages_response(now: datetime, end: datetime, messages: Iterable[bytes]) -> bytes:
    """Encode a PullMessagesResponse around encoded NotificationMessages."""
    times = time_leaf("CurrentTime", now), time_leaf("TerminationTime", end)
    return encode_tev("PullMessagesResponse", *times, *messages)


def parse_pull_messages_fault(element: etree._Element) -> PullMessagesFaultResponse:
    """Parse a PullMessagesFaultResponse."""
    timeout, limit = parts_of(element, "MaxTimeout", "MaxMessageLimit")
    return PullMessagesFaultResponse(
        parse_span(required(element, timeout, "MaxTimeout", TEV)),
        parse_count(required(element, limit, "MaxMessageLimit", TEV)),
    )


def encode_pull_messages_fault(message: PullMessagesFaultResponse) -> bytes:
    """Encode a PullMessagesFaultResponse."""
    limits = time_leaf("MaxTimeout", message.max_timeout), leaf("MaxMessageLimit", message.max_limit)
    return encode_tev("PullMessagesFaultResponse", *limits)


def parse_seek(element: etree._Element) -> Seek:
    """Parse a Seek."""
    time, reverse = parts_of(element, "UtcTime", "Reverse")
    return Seek(
        parse_moment(required(element, time, "UtcTime", TEV)),
        reverse is not None and (reverse.text or "").strip(BLANKS) in ("true", "1"),
    )


def encode_seek(message: Seek) -> bytes:
    """Encode a Seek."""
    reverse = leaf("Reverse", "true") if message.reverse else b""
    return encode_tev("Seek", time_leaf("UtcTime", message.time), reverse)


def parse_event_properties(element: etree._Element) -> GetEventPropertiesResponse:
    """Parse a GetEventPropertiesResponse."""
    topic_set = required(element, element.find(_TOPIC_SET), "TopicSet", WSTOP)
    fixed = required(element, element.find(wsnt("FixedTopicSet")), "FixedTopicSet")
    return GetEventPropertiesResponse(
        texts_of(element, tev("TopicNamespaceLocation")),
        (fixed.text or "").strip(BLANKS) in ("true", "1"),
        encode_element(topic_set),
        texts_of(element, wsnt("TopicExpressionDialect")),
        texts_of(element, tev("MessageContentFilterDialect")),
        texts_of(element, tev("ProducerPropertiesFilterDialect")),
        texts_of(element, tev("MessageContentSchemaLocation")),
    )


def encode_event_properties(message: GetEventPropertiesResponse) -> bytes:
    """Encode a GetEventPropertiesResponse."""
    fixed = f"<wsnt:FixedTopicSet>{str(message.fixed).lower()}</wsnt:FixedTopicSet>"
    dialects = (
        f"<wsnt:TopicExpressionDialect>{escape(each)}</wsnt:TopicExpressionDialect>"
        for each in message.topic_dialects
    )
    return encode_tev(
        "GetEventPropertiesResponse",
        *(leaf("TopicNamespaceLocation", each) for each in message.namespace_locations),
        fixed.encode(),
        message.topic_set,
        "".join(dialects).encode(),
        *(leaf("MessageContentFilterDialect", each) for each in message.content_dialects),
        *(leaf("ProducerPropertiesFilterDialect", each) for each in message.properties_dialects),
        *(leaf("MessageContentSchemaLocation", each) for each in message.schema_locations),
    )


_CAPABILITIES = {
    "WSSubscriptionPolicySupport": "policies",
    "WSPullPointSupport": "pull_points",
    "WSPausableSubscriptionManagerInterfaceSupport": "pausable",
    "MaxNotificationProducers": "max_producers",
    "MaxPullPoints": "max_pull_points",
    "PersistentNotificationStorage": "persistent",
}


def parse_service_capabilities(element: etree._Element) -> GetServiceCapabilitiesResponse:
    """Parse a GetServiceCapabilitiesResponse; missing capabilities are False or 0."""
    found = required(element, element.find(tev("Capabilities")), "Capabilities", TEV)
    values: dict[str, Any] = {}
    for name, field in _CAPABILITIES.items():
        text = found.get(name, "").strip(BLANKS)
        values[field] = (int(text) if is_int(text) else 0) if "max" in field else text in ("true", "1")
    return GetServiceCapabilitiesResponse(**values)


def encode_service_capabilities(message: GetServiceCapabilitiesResponse) -> bytes:
    """Encode a GetServiceCapabilitiesResponse."""
    return encode_tev("GetServiceCapabilitiesResponse", encode_capabilities(message))


def encode_capabilities(message: GetServiceCapabilitiesResponse) -> bytes:
    """Encode the Capabilities element, which the device service uses too."""
    written = "".join(
        f' {name}="{escape_attribute(str(getattr(message, field)).lower())}"'
        for name, field in _CAPABILITIES.items()
    )
    return f'<tev:Capabilities xmlns:tev="{TEV}"{written}/>'.encode()


def as_xpath(wanted: Filter) -> Filter:
    """The filter with its item filters converted to XPath."""
    return replace(wanted, content=tuple(map(_item_filter_as_xpath, wanted.content)))


def _item_filter_as_xpath(query: ContentFilter) -> ContentFilter:
    if query.dialect != DIALECT_ITEM_FILTER:
        return query
    # Clients use tt:SimpleItem without a binding of the prefix; ONVIF uses tt for no other namespace.
    bound = {"tt": TT, **dict(query.namespaces)} if "tt:" in query.expression else dict(query.namespaces)
    return replace(query, dialect=DIALECT_XPATH, namespaces=tuple(sorted(bound.items())))


def _content(element: bytes) -> bytes:
    """The content of an element of WS-BaseNotification, for ONVIF's element of the same type."""
    return element[element.index(b">") + 1 : element.rindex(b"<")]


_EMPTY = (
    SetSynchronizationPoint,
    SetSynchronizationPointResponse,
    GetEventProperties,
    GetServiceCapabilities,
)


def _empty(kind: Callable[[], OnvifMessage]) -> Callable[[etree._Element], OnvifMessage]:
    def parse(element: etree._Element) -> OnvifMessage:
        parts_of(element)
        return kind()

    return parse


ONVIF_PARSERS: dict[str, Callable[[etree._Element], OnvifMessage]] = {
    tev("CreatePullPointSubscription"): parse_create_pull_point_subscription,
    tev("CreatePullPointSubscriptionResponse"): parse_create_pull_point_subscription_response,
    tev("PullMessages"): parse_pull_messages,
    tev("PullMessagesResponse"): parse_pull_messages_response,
    tev("PullMessagesFaultResponse"): parse_pull_messages_fault,
    tev("Seek"): parse_seek,
    tev("GetEventPropertiesResponse"): parse_event_properties,
    tev("GetServiceCapabilitiesResponse"): parse_service_capabilities,
    **{tev(kind.__name__): _empty(kind) for kind in _EMPTY},
}
ONVIF_ENCODERS: dict[type[Any], Callable[[Any], bytes]] = {
    CreatePullPointSubscription: encode_create_pull_point_subscription,
    CreatePullPointSubscriptionResponse: encode_create_pull_point_subscription_response,
    PullMessages: encode_pull_messages,
    PullMessagesResponse: encode_pull_messages_response,
    PullMessagesFaultResponse: encode_pull_messages_fault,
    Seek: encode_seek,
    GetEventPropertiesResponse: encode_event_properties,
    GetServiceCapabilitiesResponse: encode_service_capabilities,
    **{kind: lambda message: encode_tev(type(message).__name__) for kind in _EMPTY},
}

register_messages(ONVIF_PARSERS, ONVIF_ENCODERS)
