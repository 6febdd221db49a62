"""parse_message and encode_message, for all messages of WS-Notification 1.3 and WS-Resource.

The module has the tables of parsers and encoders. It also exports the messages of notifications,
subscriptions and pull_points. Those of registrations and resources are in registrations, properties and
lifetime; formats.onvif registers its own. An unknown element raises ActionNotSupported.
parse_message(encode_message(m)) equals m.
"""

from collections.abc import Callable, Mapping
from typing import Any

from lxml import etree

from hpwsn_client.wsn.operations.lifetime import LIFETIME_ENCODERS, LIFETIME_PARSERS, LifetimeMessage
from hpwsn_client.wsn.operations.notifications import (
    NOTIFICATION_CLOSE,
    NOTIFICATION_OPEN,
    NOTIFY_CLOSE,
    NOTIFY_OPEN,
    NotificationMessage,
    Notify,
    encode_content,
    encode_notification_message,
    encode_notify,
    parse_notification_message,
    parse_notify,
    text_payload,
)
from hpwsn_client.wsn.operations.policy import DeliveryPolicy, SubscriptionPolicy, encode_policy, parse_policy
from hpwsn_client.wsn.operations.properties import PROPERTIES_ENCODERS, PROPERTIES_PARSERS, PropertiesMessage
from hpwsn_client.wsn.operations.pull_points import (
    CreatePullPoint,
    CreatePullPointResponse,
    DestroyPullPoint,
    DestroyPullPointResponse,
    GetMessages,
    GetMessagesResponse,
    encode_create_pull_point,
    encode_create_pull_point_response,
    encode_get_messages,
    encode_get_messages_response,
    parse_create_pull_point,
    parse_create_pull_point_response,
    parse_get_messages,
    parse_get_messages_response,
)
from hpwsn_client.wsn.operations.registrations import (
    REGISTRATION_ENCODERS,
    REGISTRATION_PARSERS,
    RegistrationMessage,
)
from hpwsn_client.wsn.operations.subscriptions import (
    GetCurrentMessage,
    GetCurrentMessageResponse,
    PauseSubscription,
    PauseSubscriptionResponse,
    Renew,
    RenewResponse,
    ResumeSubscription,
    ResumeSubscriptionResponse,
    Subscribe,
    SubscribeResponse,
    Unsubscribe,
    UnsubscribeResponse,
    encode_get_current_message,
    encode_get_current_message_response,
    encode_renew,
    encode_renew_response,
    encode_subscribe,
    encode_subscribe_response,
    parse_get_current_message,
    parse_get_current_message_response,
    parse_renew,
    parse_renew_response,
    parse_subscribe,
    parse_subscribe_response,
)
from hpwsn_client.wsn.soap.names import wsnt
from hpwsn_client.wsn.soap.sequence import encode_sequence, parse_sequence
from hpwsn_client.wsn.soap.soap_faults import ActionNotSupported
from hpwsn_client.wsn.soap.xml import DEFAULT_LIMITS, Limits

__all__ = [
    "NOTIFICATION_CLOSE",
    "NOTIFICATION_OPEN",
    "NOTIFY_CLOSE",
    "NOTIFY_OPEN",
    "CreatePullPoint",
    "CreatePullPointResponse",
    "DeliveryPolicy",
    "DestroyPullPoint",
    "DestroyPullPointResponse",
    "GetCurrentMessage",
    "GetCurrentMessageResponse",
    "GetMessages",
    "GetMessagesResponse",
    "Message",
    "NotificationMessage",
    "Notify",
    "PauseSubscription",
    "PauseSubscriptionResponse",
    "Renew",
    "RenewResponse",
    "ResumeSubscription",
    "ResumeSubscriptionResponse",
    "Subscribe",
    "SubscribeResponse",
    "SubscriptionPolicy",
    "Unsubscribe",
    "UnsubscribeResponse",
    "encode_content",
    "encode_create_pull_point",
    "encode_create_pull_point_response",
    "encode_get_current_message",
    "encode_get_current_message_response",
    "encode_get_messages",
    "encode_get_messages_response",
    "encode_message",
    "encode_notification_message",
    "encode_notify",
    "encode_policy",
    "encode_renew",
    "encode_renew_response",
    "encode_subscribe",
    "encode_subscribe_response",
    "parse_create_pull_point",
    "parse_create_pull_point_response",
    "parse_get_current_message",
    "parse_get_current_message_response",
    "parse_get_messages",
    "parse_get_messages_response",
    "parse_message",
    "parse_notification_message",
    "parse_notify",
    "parse_policy",
    "parse_renew",
    "parse_renew_response",
    "parse_subscribe",
    "parse_subscribe_response",
    "text_payload",
]

Message = (
    Notify
    | Subscribe
    | SubscribeResponse
    | Renew
    | RenewResponse
    | Unsubscribe
    | UnsubscribeResponse
    | PauseSubscription
    | PauseSubscriptionResponse
    | ResumeSubscription
    | ResumeSubscriptionResponse
    | GetCurrentMessage
    | GetCurrentMessageResponse
    | CreatePullPoint
    | CreatePullPointResponse
    | GetMessages
    | GetMessagesResponse
    | DestroyPullPoint
    | DestroyPullPointResponse
    | RegistrationMessage
    | PropertiesMessage
    | LifetimeMessage
)

_NOTIFY, _GET_MESSAGES_RESPONSE = wsnt("Notify"), wsnt("GetMessagesResponse")
_EMPTY: dict[str, type[Any]] = {
    wsnt(kind.__name__): kind
    for kind in (
        Unsubscribe,
        UnsubscribeResponse,
        PauseSubscription,
        PauseSubscriptionResponse,
        ResumeSubscription,
        ResumeSubscriptionResponse,
        DestroyPullPoint,
        DestroyPullPointResponse,
    )
}
_PARSERS: dict[str, Callable[[etree._Element], Any]] = {
    wsnt("Subscribe"): parse_subscribe,
    wsnt("SubscribeResponse"): parse_subscribe_response,
    wsnt("Renew"): parse_renew,
    wsnt("RenewResponse"): parse_renew_response,
    wsnt("GetCurrentMessage"): parse_get_current_message,
    wsnt("GetCurrentMessageResponse"): parse_get_current_message_response,
    wsnt("CreatePullPoint"): parse_create_pull_point,
    wsnt("CreatePullPointResponse"): parse_create_pull_point_response,
    wsnt("GetMessages"): parse_get_messages,
    **REGISTRATION_PARSERS,
    **PROPERTIES_PARSERS,
    **LIFETIME_PARSERS,
}
_ENCODERS: dict[type[Any], Callable[[Any], bytes]] = {
    Subscribe: encode_subscribe,
    SubscribeResponse: encode_subscribe_response,
    Renew: encode_renew,
    RenewResponse: encode_renew_response,
    GetCurrentMessage: encode_get_current_message,
    GetCurrentMessageResponse: encode_get_current_message_response,
    CreatePullPoint: encode_create_pull_point,
    CreatePullPointResponse: encode_create_pull_point_response,
    GetMessages: encode_get_messages,
    GetMessagesResponse: encode_get_messages_response,
    **REGISTRATION_ENCODERS,
    **PROPERTIES_ENCODERS,
    **LIFETIME_ENCODERS,
}


def register_messages(
    parsers: Mapping[str, Callable[[etree._Element], Any]],
    encoders: Mapping[type[Any], Callable[[Any], bytes]],
) -> None:
    """Add the messages of another specification to parse_message and encode_message."""
    _PARSERS.update(parsers)
    _ENCODERS.update(encoders)


def parse_message(element: etree._Element, limits: Limits = DEFAULT_LIMITS) -> Message:
    """Parse any message of the standard."""
    tag = element.tag
    if tag == _NOTIFY:
        return Notify(parse_notify(element, limits))
    if tag == _GET_MESSAGES_RESPONSE:
        return parse_get_messages_response(element, limits)
    if tag in _PARSERS:
        message: Message = _PARSERS[tag](element)
        return message
    if tag in _EMPTY:
        return parse_empty(element)
    raise ActionNotSupported(f"{tag} is not a message of WS-Notification; send one, such as wsnt:Subscribe")


def parse_empty(element: etree._Element) -> Message:
    """Parse a message without content."""
    parse_sequence(element)
    message: Message = _EMPTY[element.tag]()
    return message


def encode_message(message: Message) -> bytes:
    """Encode any message of the standard."""
    if isinstance(message, Notify):
        return encode_notify(message.messages)
    encode = _ENCODERS.get(type(message))
    return encode(message) if encode else encode_sequence(type(message).__name__)
