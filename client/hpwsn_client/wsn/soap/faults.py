"""Encoding and parsing of SOAP faults, and the module from which to import all fault classes.

encode_fault encodes the envelope of a fault; parse_fault returns the exception for a Fault element. The
standard's details extend BaseFaultType (WS-BaseFaults 1.2 section 2). Parsing never fails, because an invalid
fault still reports an error. Follows SOAP 1.1 section 4.4, SOAP 1.2 part 1 section 5.4 and WS-Addressing SOAP
Binding section 6.

    SoapFault
    ├── MalformedXml (400)  TooLarge (413)  NotSoap  InvalidMessage
    ├── ActionNotSupported  MustUnderstandFault
    ├── Busy (503)
    └── WsnFault                                 code Sender unless marked (R) for Receiver
        ├── ResourceUnknownFault                 wsrf-r
        ├── InvalidResourcePropertyQNameFault    wsrf-rp
        ├── UnknownQueryExpressionDialectFault   ├── InvalidQueryExpressionFault, both wsrf-rp
        ├── QueryEvaluationErrorFault            wsrf-rp
        ├── UnableToSetTerminationTimeFault      ├── TerminationTimeChangeRejectedFault, both wsrf-rl
        ├── LifetimeResourceNotDestroyedFault (R)    wsrf-rl's ResourceNotDestroyedFault
        ├── InvalidFilterFault                   unknown_filters
        ├── TopicExpressionDialectUnknownFault   ├── InvalidTopicExpressionFault
        ├── TopicNotSupportedFault               ├── MultipleTopicsSpecifiedFault
        ├── NoCurrentMessageOnTopicFault         ├── NotifyMessageNotSupportedFault
        ├── InvalidProducerPropertiesExpressionFault
        ├── InvalidMessageContentExpressionFault
        ├── UnrecognizedPolicyRequestFault       unrecognized
        ├── UnsupportedPolicyRequestFault        unsupported
        ├── UnacceptableTerminationTimeFault     minimum_time, maximum_time
        ├── UnacceptableInitialTerminationTimeFault  the same
        ├── SubscribeCreationFailedFault (R)     ├── UnableToDestroySubscriptionFault (R)
        ├── UnableToCreatePullPointFault (R)     ├── UnableToDestroyPullPointFault (R)
        ├── UnableToGetMessagesFault (R)         ├── PauseFailedFault (R)
        ├── ResumeFailedFault (R)                ├── ResourceNotDestroyedFault (R), wsn-br
        ├── PublisherRegistrationRejectedFault   wsn-br
        └── PublisherRegistrationFailedFault (R) wsn-br
"""

from collections.abc import Iterator
from datetime import datetime

from lxml import etree

from hpwsn_client.wsn.soap.addressing import Addressing, encode_addressing, encode_epr
from hpwsn_client.wsn.soap.names import (
    ACTION_BASE_FAULT,
    ACTION_FAULT,
    ACTION_SOAP_FAULT,
    WSA,
    WSRF_BF,
    XML_NS,
)
from hpwsn_client.wsn.soap.soap_faults import (
    ActionNotSupported,
    Busy,
    FaultCode,
    InvalidMessage,
    MalformedXml,
    MustUnderstandFault,
    NotSoap,
    SoapFault,
    TooLarge,
)
from hpwsn_client.wsn.soap.times import format_time
from hpwsn_client.wsn.soap.version import SoapVersion, encode_envelope
from hpwsn_client.wsn.soap.wsn_faults import (
    InvalidFilterFault,
    InvalidMessageContentExpressionFault,
    InvalidProducerPropertiesExpressionFault,
    InvalidQueryExpressionFault,
    InvalidResourcePropertyQNameFault,
    InvalidTopicExpressionFault,
    LifetimeResourceNotDestroyedFault,
    MultipleTopicsSpecifiedFault,
    NoCurrentMessageOnTopicFault,
    NotifyMessageNotSupportedFault,
    PauseFailedFault,
    PublisherRegistrationFailedFault,
    PublisherRegistrationRejectedFault,
    QueryEvaluationErrorFault,
    ResourceNotDestroyedFault,
    ResourceUnknownFault,
    ResumeFailedFault,
    SubscribeCreationFailedFault,
    TerminationTimeChangeRejectedFault,
    TopicExpressionDialectUnknownFault,
    TopicNotSupportedFault,
    UnableToCreatePullPointFault,
    UnableToDestroyPullPointFault,
    UnableToDestroySubscriptionFault,
    UnableToGetMessagesFault,
    UnableToSetTerminationTimeFault,
    UnacceptableInitialTerminationTimeFault,
    UnacceptableTerminationTimeFault,
    UnknownQueryExpressionDialectFault,
    UnrecognizedPolicyRequestFault,
    UnsupportedPolicyRequestFault,
    WsnFault,
)
from hpwsn_client.wsn.soap.xml import encode_element, escape, prefixed, qname_text, replace_illegal

__all__ = [
    "ActionNotSupported",
    "Busy",
    "FaultCode",
    "InvalidFilterFault",
    "InvalidMessage",
    "InvalidMessageContentExpressionFault",
    "InvalidProducerPropertiesExpressionFault",
    "InvalidQueryExpressionFault",
    "InvalidResourcePropertyQNameFault",
    "InvalidTopicExpressionFault",
    "LifetimeResourceNotDestroyedFault",
    "MalformedXml",
    "MultipleTopicsSpecifiedFault",
    "MustUnderstandFault",
    "NoCurrentMessageOnTopicFault",
    "NotSoap",
    "NotifyMessageNotSupportedFault",
    "PauseFailedFault",
    "PublisherRegistrationFailedFault",
    "PublisherRegistrationRejectedFault",
    "QueryEvaluationErrorFault",
    "ResourceNotDestroyedFault",
    "ResourceUnknownFault",
    "ResumeFailedFault",
    "SoapFault",
    "SubscribeCreationFailedFault",
    "TerminationTimeChangeRejectedFault",
    "TooLarge",
    "TopicExpressionDialectUnknownFault",
    "TopicNotSupportedFault",
    "UnableToCreatePullPointFault",
    "UnableToDestroyPullPointFault",
    "UnableToDestroySubscriptionFault",
    "UnableToGetMessagesFault",
    "UnableToSetTerminationTimeFault",
    "UnacceptableInitialTerminationTimeFault",
    "UnacceptableTerminationTimeFault",
    "UnknownQueryExpressionDialectFault",
    "UnrecognizedPolicyRequestFault",
    "UnsupportedPolicyRequestFault",
    "WsnFault",
    "encode_fault",
    "parse_fault",
]

_CODES_11 = {FaultCode.SENDER: "Client", FaultCode.RECEIVER: "Server"}
_CODES = {
    **{code.value: code for code in FaultCode},
    "Client": FaultCode.SENDER,
    "Server": FaultCode.RECEIVER,
    "DataEncodingUnknown": FaultCode.SENDER,
}
_RECEIVER_SUBCODES = {f"{{{WSA}}}EndpointUnavailable", f"{{{WSA}}}DestinationUnreachable"}


def encode_fault(
    fault: SoapFault, version: SoapVersion, now: datetime, relates_to: str | None = None
) -> bytes:
    """The envelope of a fault; `relates_to` is the wsa:MessageID of the request, if it has one."""
    detail = b"".join((*_base_detail(fault, now), *fault.detail))
    write = _encode_11 if version is SoapVersion.SOAP11 else _encode_12
    return encode_envelope(version, write(fault, detail), _headers(fault, version, relates_to))


def _encode_11(fault: SoapFault, detail: bytes) -> bytes:
    code, declaration = f"soap:{_CODES_11.get(fault.code, fault.code.value)}", ""
    # WS-Addressing uses its subcodes as SOAP 1.1 fault codes; SOAP 1.1 cannot express other subcodes.
    if fault.subcode and fault.subcode.startswith(f"{{{WSA}}}"):
        code, declaration = prefixed(fault.subcode)
    head = (
        f"<soap:Fault><faultcode{declaration}>{code}</faultcode>"
        f"<faultstring>{_safe_text(fault.reason)}</faultstring>"
    )
    tail = b"<detail>" + detail + b"</detail></soap:Fault>" if detail else b"</soap:Fault>"
    return head.encode() + tail


def _encode_12(fault: SoapFault, detail: bytes) -> bytes:
    subcode = ""
    if fault.subcode:
        name, declaration = prefixed(fault.subcode)
        subcode = f"<soap:Subcode><soap:Value{declaration}>{name}</soap:Value></soap:Subcode>"
    head = (
        f"<soap:Fault><soap:Code><soap:Value>soap:{fault.code.value}</soap:Value>{subcode}</soap:Code>"
        f'<soap:Reason><soap:Text xml:lang="en">{_safe_text(fault.reason)}</soap:Text></soap:Reason>'
    )
    tail = b"<soap:Detail>" + detail + b"</soap:Detail></soap:Fault>" if detail else b"</soap:Fault>"
    return head.encode() + tail


def _safe_text(text: str) -> str:
    return escape(replace_illegal(text))


def _base_detail(fault: SoapFault, now: datetime) -> Iterator[bytes]:
    if not isinstance(fault, WsnFault):
        return
    name, declaration = prefixed(fault.element)
    time = format_time(fault.timestamp or now)
    yield f'<{name}{declaration} xmlns:wsrf-bf="{WSRF_BF}">'.encode()
    yield f"<wsrf-bf:Timestamp>{time}</wsrf-bf:Timestamp>".encode()
    if fault.originator:
        yield encode_epr(fault.originator, f"{{{WSRF_BF}}}Originator")
    yield f'<wsrf-bf:Description xml:lang="en">{_safe_text(fault.description)}</wsrf-bf:Description>'.encode()
    yield from (part.encode() for part in fault.encode_own(now))
    yield f"</{name}>".encode()


def _headers(fault: SoapFault, version: SoapVersion, relates_to: str | None) -> Iterator[bytes]:
    if relates_to:
        yield from encode_addressing(Addressing(action=_action(fault), relates_to=relates_to))
    if isinstance(fault, MustUnderstandFault) and version is SoapVersion.SOAP12:
        for clark in fault.headers:
            name, declaration = prefixed(clark)
            yield f'<soap:NotUnderstood qname="{name}"{declaration}/>'.encode()


def _action(fault: SoapFault) -> str:
    if isinstance(fault, WsnFault):
        return ACTION_BASE_FAULT
    return ACTION_FAULT if fault.subcode and fault.subcode.startswith(f"{{{WSA}}}") else ACTION_SOAP_FAULT


def parse_fault(element: etree._Element, version: SoapVersion) -> SoapFault:
    """The exception for a Fault element, for the caller to raise."""
    read = _parse_11 if version is SoapVersion.SOAP11 else _parse_12
    code, subcode, reason, detail = read(element)
    fault = _by_detail(detail, reason, code) or _by_code(code, subcode, reason, detail)
    fault.version = version
    return fault


_Parts = tuple[FaultCode, str | None, str, list[etree._Element]]


def _parse_11(fault: etree._Element) -> _Parts:
    code, subcode = FaultCode.SENDER, None
    name = _qname(fault.find("faultcode"))
    namespace, _, local = name.removeprefix("{").rpartition("}")
    if namespace in (SoapVersion.SOAP11.namespace, ""):
        # SOAP 1.1 allows detailed codes with a dot, such as Client.Authentication.
        code = _code(local.split(".")[0])
    else:
        code, subcode = _code_of_subcode(name), name
    reason = fault.findtext("faultstring") or ""
    return code, subcode, reason, _children(fault.find("detail"))


def _parse_12(fault: etree._Element) -> _Parts:
    soap = f"{{{SoapVersion.SOAP12.namespace}}}"
    code = _code(_qname(fault.find(f"{soap}Code/{soap}Value")).rpartition("}")[2])
    subcode = _qname(fault.find(f"{soap}Code/{soap}Subcode/{soap}Value")) or None
    texts = fault.findall(f"{soap}Reason/{soap}Text")
    texts.sort(key=lambda text: not text.get(f"{{{XML_NS}}}lang", "").startswith("en"))
    return code, subcode, (texts[0].text or "") if texts else "", _children(fault.find(f"{soap}Detail"))


def _code(local: str) -> FaultCode:
    return _CODES.get(local, FaultCode.RECEIVER)


def _code_of_subcode(subcode: str) -> FaultCode:
    return FaultCode.RECEIVER if subcode in _RECEIVER_SUBCODES else FaultCode.SENDER


def _qname(element: etree._Element | None) -> str:
    if element is None:
        return ""
    try:
        return qname_text(element, element.text)
    except InvalidMessage:
        # With an unbound prefix, the local name is enough to identify the code.
        return (element.text or "").strip().rpartition(":")[2]


def _children(element: etree._Element | None) -> list[etree._Element]:
    return [] if element is None else list(element)


def _by_detail(detail: list[etree._Element], reason: str, code: FaultCode) -> SoapFault | None:
    for child in detail:
        fault = WsnFault.by_element.get(child.tag)
        if fault:
            rest = tuple(encode_element(other) for other in detail if other is not child)
            return fault.parse(child, reason, rest, code)
    return None


def _by_code(code: FaultCode, subcode: str | None, reason: str, detail: list[etree._Element]) -> SoapFault:
    encoded = tuple(map(encode_element, detail))
    if subcode == ActionNotSupported.default_subcode:
        return ActionNotSupported(reason, detail=encoded)
    if code is FaultCode.MUST_UNDERSTAND:
        return MustUnderstandFault(reason)
    return SoapFault(reason, code=code, subcode=subcode, detail=encoded)
