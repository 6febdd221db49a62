"""All namespace, dialect and action URIs of the protocol, and functions for Clark names.

They are those of OASIS WS-Notification 1.3, WS-ResourceFramework 1.2 and WS-Security 1.0, W3C SOAP and
WS-Addressing 1.0, ONVIF, the original HPwsn, and HPwsn's extensions under ``urn:hpwsn:1``. No other module
contains a namespace URI.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Final

SOAP11: Final = "http://schemas.xmlsoap.org/soap/envelope/"
SOAP12: Final = "http://www.w3.org/2003/05/soap-envelope"
WSA: Final = "http://www.w3.org/2005/08/addressing"
WSNT: Final = "http://docs.oasis-open.org/wsn/b-2"
WSN_BW: Final = "http://docs.oasis-open.org/wsn/bw-2"
WSN_BR: Final = "http://docs.oasis-open.org/wsn/br-2"
WSN_BRW: Final = "http://docs.oasis-open.org/wsn/brw-2"
WSTOP: Final = "http://docs.oasis-open.org/wsn/t-1"
WSRF_BF: Final = "http://docs.oasis-open.org/wsrf/bf-2"
WSRF_R: Final = "http://docs.oasis-open.org/wsrf/r-2"
WSRF_RW: Final = "http://docs.oasis-open.org/wsrf/rw-2"
WSRF_RP: Final = "http://docs.oasis-open.org/wsrf/rp-2"
WSRF_RL: Final = "http://docs.oasis-open.org/wsrf/rl-2"
WSRF_RPW: Final = "http://docs.oasis-open.org/wsrf/rpw-2"
WSRF_RLW: Final = "http://docs.oasis-open.org/wsrf/rlw-2"
XSI: Final = "http://www.w3.org/2001/XMLSchema-instance"
XML_NS: Final = "http://www.w3.org/XML/1998/namespace"
HPWSN: Final = "urn:hpwsn:1"
SERVICEMIX: Final = "http://org.apache.servicemix.application"
HPWSN_TOPICS: Final = "urn:hpwsn:topics"
TEV: Final = "http://www.onvif.org/ver10/events/wsdl"
TDS: Final = "http://www.onvif.org/ver10/device/wsdl"
TT: Final = "http://www.onvif.org/ver10/schema"
TER: Final = "http://www.onvif.org/ver10/error"
WSSE: Final = "http://docs.oasis-open.org/wss/2004/01/oasis-200401-wss-wssecurity-secext-1.0.xsd"
WSU: Final = "http://docs.oasis-open.org/wss/2004/01/oasis-200401-wss-wssecurity-utility-1.0.xsd"

PREFIXES: Final = {
    WSA: "wsa",
    WSNT: "wsnt",
    WSN_BR: "wsn-br",
    WSTOP: "wstop",
    WSRF_BF: "wsrf-bf",
    WSRF_R: "wsrf-r",
    WSRF_RP: "wsrf-rp",
    WSRF_RL: "wsrf-rl",
    XSI: "xsi",
    XML_NS: "xml",
    HPWSN: "hp",
    TEV: "tev",
    TER: "ter",
}
"""The prefixes that HPwsn uses in the messages it encodes."""

DIALECT_SIMPLE: Final = WSTOP + "/TopicExpression/Simple"
DIALECT_CONCRETE: Final = WSTOP + "/TopicExpression/Concrete"
DIALECT_FULL: Final = WSTOP + "/TopicExpression/Full"
DIALECT_XPATH: Final = "http://www.w3.org/TR/1999/REC-xpath-19991116"
DIALECT_PREDICATES: Final = "urn:hpwsn:predicates"
DIALECT_CONCRETE_SET: Final = "http://www.onvif.org/ver10/tev/topicExpression/ConcreteSet"
DIALECT_ITEM_FILTER: Final = "http://www.onvif.org/ver10/tev/messageContentFilter/ItemFilter"

WSA_ANONYMOUS: Final = WSA + "/anonymous"
WSA_NONE: Final = WSA + "/none"
WSA_REPLY: Final = WSA + "/reply"

ACTION_NOTIFY: Final = WSN_BW + "/NotificationConsumer/Notify"
ACTION_FAULT: Final = WSA + "/fault"
ACTION_SOAP_FAULT: Final = WSA + "/soap/fault"
ACTION_BASE_FAULT: Final = "http://docs.oasis-open.org/wsrf/fault"


def _clark_names(namespace: str) -> Callable[[str], str]:
    """A function from local names to Clark names; names are constants, and asked for again and again."""

    @lru_cache(1024)
    def clark_name(local: str) -> str:
        return f"{{{namespace}}}{local}"

    return clark_name


wsnt = _clark_names(WSNT)
"""The Clark name of an element of WS-BaseNotification."""
wsa = _clark_names(WSA)
"""The Clark name of an element of WS-Addressing."""
hp = _clark_names(HPWSN)
"""The Clark name of an element of HPwsn's extensions."""
rp = _clark_names(WSRF_RP)
"""The Clark name of an element of WS-ResourceProperties."""
rl = _clark_names(WSRF_RL)
"""The Clark name of an element of WS-ResourceLifetime."""
tev = _clark_names(TEV)
"""The Clark name of an element of ONVIF's event service."""
br = _clark_names(WSN_BR)
"""The Clark name of an element of WS-BrokeredNotification."""


def action(port_type: str, operation: str, response: bool = False) -> str:
    """The wsa:Action of an operation of bw-2, by the default pattern of WS-Addressing."""
    return f"{WSN_BW}/{port_type}/{operation}{'Response' if response else 'Request'}"


PORT_TYPES: Final = {
    "Subscribe": "NotificationProducer",
    "GetCurrentMessage": "NotificationProducer",
    "CreatePullPoint": "CreatePullPoint",
    "GetMessages": "PullPoint",
    "DestroyPullPoint": "PullPoint",
    "Renew": "SubscriptionManager",
    "Unsubscribe": "SubscriptionManager",
    "PauseSubscription": "PausableSubscriptionManager",
    "ResumeSubscription": "PausableSubscriptionManager",
}
"""The port type that defines each request of bw-2."""

WSRF_PORT_TYPES: Final = {
    "GetResourceProperty": WSRF_RPW + "/GetResourceProperty",
    "GetMultipleResourceProperties": WSRF_RPW + "/GetMultipleResourceProperties",
    "QueryResourceProperties": WSRF_RPW + "/QueryResourceProperties",
    "Destroy": WSRF_RLW + "/ImmediateResourceTermination",
    "SetTerminationTime": WSRF_RLW + "/ScheduledResourceTermination",
}
"""The port type, with its namespace, of each request of rpw-2 and rlw-2."""

ONVIF_PORT_TYPES: Final = {
    "CreatePullPointSubscription": TEV + "/EventPortType",
    "GetEventProperties": TEV + "/EventPortType",
    "GetServiceCapabilities": TEV + "/EventPortType",
    "PullMessages": TEV + "/PullPointSubscription",
    "Seek": TEV + "/PullPointSubscription",
    "SetSynchronizationPoint": TEV + "/PullPointSubscription",
}
"""The port type, with its namespace, of each request of ONVIF's event service."""

BROKERED_PORT_TYPES: Final = {
    "RegisterPublisher": WSN_BRW + "/RegisterPublisher",
    "DestroyRegistration": WSN_BRW + "/PublisherRegistrationManager",
}
"""The port type, with its namespace, of each request of brw-2."""

_OTHER_PORT_TYPES: Final = WSRF_PORT_TYPES | ONVIF_PORT_TYPES | BROKERED_PORT_TYPES


def request_action(operation: str) -> str:
    """The wsa:Action of a request; `operation` is its local name."""
    if operation in _OTHER_PORT_TYPES:
        return f"{_OTHER_PORT_TYPES[operation]}/{operation}Request"
    return action(PORT_TYPES[operation], operation)


def response_action(operation: str) -> str:
    """The wsa:Action of a response; `operation` is the local name of the request."""
    if operation in _OTHER_PORT_TYPES:
        return f"{_OTHER_PORT_TYPES[operation]}/{operation}Response"
    return action(PORT_TYPES[operation], operation, response=True)
