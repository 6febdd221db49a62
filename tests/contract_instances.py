"""Valid instances of every element that our contract has, and every way in which tests damage one."""

import re
from collections.abc import Iterator
from copy import deepcopy

from lxml import etree

NS = {
    "wsdl": "http://schemas.xmlsoap.org/wsdl/",
    "soap": "http://schemas.xmlsoap.org/wsdl/soap/",
    "soap12": "http://schemas.xmlsoap.org/wsdl/soap12/",
    "wsam": "http://www.w3.org/2007/05/addressing/metadata",
    "xs": "http://www.w3.org/2001/XMLSchema",
    "xsi": "http://www.w3.org/2001/XMLSchema-instance",
    "wsa": "http://www.w3.org/2005/08/addressing",
    "bf": "http://docs.oasis-open.org/wsrf/bf-2",
    "r": "http://docs.oasis-open.org/wsrf/r-2",
    "rp": "http://docs.oasis-open.org/wsrf/rp-2",
    "rl": "http://docs.oasis-open.org/wsrf/rl-2",
    "br": "http://docs.oasis-open.org/wsn/br-2",
    "wstop": "http://docs.oasis-open.org/wsn/t-1",
    "wsnt": "http://docs.oasis-open.org/wsn/b-2",
    "hp": "urn:hpwsn:1",
    "f": "urn:foreign",
}
XML = "http://www.w3.org/XML/1998/namespace"
SIMPLE = "http://docs.oasis-open.org/wsn/t-1/TopicExpression/Simple"
DECLARED = " ".join(f'xmlns:{prefix}="{uri}"' for prefix, uri in NS.items())


def name(prefixed: str) -> str:
    prefix, local = prefixed.split(":")
    return f"{{{NS[prefix]}}}{local}"


def element(text: str) -> etree._Element:
    """An element, the root of its own document, with every prefix of NS bound."""
    return etree.fromstring(re.sub(r"^<[\w:]+", lambda tag: f"{tag[0]} {DECLARED}", text))


EPR = (
    "<wsa:Address>http://consumer/</wsa:Address><wsa:ReferenceParameters><f:key f:a='1'>7</f:key>"
    "</wsa:ReferenceParameters><wsa:Metadata><f:about/></wsa:Metadata><f:extension/>"
)
TOPIC = f'<wsnt:Topic Dialect="{SIMPLE}">f:A</wsnt:Topic>'
BR_TOPIC = f'<br:Topic Dialect="{SIMPLE}">f:A</br:Topic>'
MESSAGE = (
    f"<wsnt:NotificationMessage><wsnt:SubscriptionReference>{EPR}</wsnt:SubscriptionReference>{TOPIC}"
    f"<wsnt:ProducerReference>{EPR}</wsnt:ProducerReference><wsnt:Message><f:payload>1</f:payload></wsnt:Message>"
    "</wsnt:NotificationMessage>"
)
TOPIC_EXPRESSION = f'<wsnt:TopicExpression Dialect="{SIMPLE}">f:A</wsnt:TopicExpression>'
FILTER = (
    f'<wsnt:Filter>{TOPIC_EXPRESSION}<wsnt:MessageContent Dialect="http://www.w3.org/TR/1999/REC-xpath-19991116">'
    "f:a &gt; 1</wsnt:MessageContent></wsnt:Filter>"
)
POLICY = "<wsnt:SubscriptionPolicy><wsnt:UseRaw/><f:policy/></wsnt:SubscriptionPolicy>"
TIME = "2030-01-01T00:00:00Z"
BASE_FAULT = (
    f"<f:before/><bf:Timestamp>{TIME}</bf:Timestamp><bf:Originator>{EPR}</bf:Originator>"
    '<bf:ErrorCode dialect="urn:d" f:a="1">42<f:code/></bf:ErrorCode><bf:Description xml:lang="en">why'
    "</bf:Description><bf:Description>and</bf:Description><bf:FaultCause><f:cause/></bf:FaultCause>"
)
BOUNDS = f"<wsnt:MinimumTime>{TIME}</wsnt:MinimumTime><wsnt:MaximumTime>{TIME}</wsnt:MaximumTime>"
OWN_FIELDS = {
    "InvalidFilterFault": "<wsnt:UnknownFilter>f:a</wsnt:UnknownFilter>" * 2,
    "UnrecognizedPolicyRequestFault": "<wsnt:UnrecognizedPolicy>f:a</wsnt:UnrecognizedPolicy>",
    "UnsupportedPolicyRequestFault": "<wsnt:UnsupportedPolicy>f:a</wsnt:UnsupportedPolicy>",
    "UnacceptableInitialTerminationTimeFault": BOUNDS,
    "UnacceptableTerminationTimeFault": BOUNDS,
}
CONTENT = {
    "Notify": MESSAGE * 2,
    "Subscribe": (
        f"<wsnt:ConsumerReference>{EPR}</wsnt:ConsumerReference>{FILTER}"
        f"<wsnt:InitialTerminationTime>PT1H</wsnt:InitialTerminationTime>{POLICY}"
    ),
    "SubscribeResponse": (
        f"<wsnt:SubscriptionReference>{EPR}</wsnt:SubscriptionReference><wsnt:CurrentTime>{TIME}"
        f"</wsnt:CurrentTime><wsnt:TerminationTime>{TIME}</wsnt:TerminationTime>"
    ),
    "GetCurrentMessage": TOPIC,
    "CreatePullPointResponse": f"<wsnt:PullPoint>{EPR}</wsnt:PullPoint>",
    "GetMessages": "<wsnt:MaximumNumber>5</wsnt:MaximumNumber>",
    "GetMessagesResponse": MESSAGE * 2,
    "RegisterPublisher": (
        f"<br:PublisherReference>{EPR}</br:PublisherReference>{BR_TOPIC * 2}<br:Demand>true</br:Demand>"
        f"<br:InitialTerminationTime>{TIME}</br:InitialTerminationTime>"
    ),
    "RegisterPublisherResponse": (
        f"<br:PublisherRegistrationReference>{EPR}</br:PublisherRegistrationReference>"
        f"<br:ConsumerReference>{EPR}</br:ConsumerReference>"
    ),
    "Renew": f"<wsnt:TerminationTime>{TIME}</wsnt:TerminationTime>",
    "RenewResponse": (
        f"<wsnt:TerminationTime>{TIME}</wsnt:TerminationTime><wsnt:CurrentTime>{TIME}</wsnt:CurrentTime>"
    ),
}


# Elements of headers, fault details and resource properties, which no message of the contract names.
BESIDE = {
    "wsa:RelatesTo": "urn:x",
    "wsa:RetryAfter": "5",
    "wsa:ProblemHeaderQName": "f:a",
    "wsa:ProblemHeader": "<f:a/>",
    "wsa:ProblemAction": "<wsa:Action>urn:x</wsa:Action><wsa:SoapAction>urn:x</wsa:SoapAction>",
    "wstop:TopicSet": "<wstop:documentation>All<f:a/></wstop:documentation><f:A wstop:topic='true'/><f:B/>",
    "rp:QueryExpressionDialect": "urn:x",
    "wsnt:NotificationProducerRP": (
        f"{TOPIC_EXPRESSION * 2}<wsnt:FixedTopicSet>true</wsnt:FixedTopicSet>"
        f"{'<wsnt:TopicExpressionDialect>urn:x</wsnt:TopicExpressionDialect>' * 2}<wstop:TopicSet/>"
    ),
    "br:NotificationBrokerRP": (
        f"{TOPIC_EXPRESSION}<wsnt:FixedTopicSet>true</wsnt:FixedTopicSet><wsnt:TopicExpressionDialect>urn:x"
        "</wsnt:TopicExpressionDialect><wstop:TopicSet/><br:RequiresRegistration>false</br:RequiresRegistration>"
    ),
    "br:PublisherRegistrationRP": (
        f"<br:PublisherReference>{EPR}</br:PublisherReference>{BR_TOPIC * 2}<br:Demand>true</br:Demand>"
        f"<br:CreationTime>{TIME}</br:CreationTime>"
    ),
    "br:ConsumerReference": EPR,
    "wsnt:SubscriptionManagerRP": (
        f"<wsnt:ConsumerReference>{EPR}</wsnt:ConsumerReference>{FILTER}{POLICY}"
        f"<wsnt:CreationTime>{TIME}</wsnt:CreationTime>"
    ),
}


# The elements of WS-ResourceProperties and WS-ResourceLifetime, which take no extensions.
RESOURCES = {
    "rp:GetResourceProperty": "f:a",
    "rp:GetResourcePropertyResponse": "<wsnt:FixedTopicSet>true</wsnt:FixedTopicSet><wstop:TopicSet/>",
    "rp:GetMultipleResourceProperties": "<rp:ResourceProperty>f:a</rp:ResourceProperty>" * 2,
    "rp:GetMultipleResourcePropertiesResponse": "<wsnt:FixedTopicSet>true</wsnt:FixedTopicSet>",
    "rp:QueryResourceProperties": '<rp:QueryExpression Dialect="urn:x">//f:a<f:b/></rp:QueryExpression>',
    "rp:QueryResourcePropertiesResponse": "text<f:a/><wsnt:FixedTopicSet>true</wsnt:FixedTopicSet>",
    "rl:Destroy": "",
    "rl:DestroyResponse": "",
    "rl:SetTerminationTime": "<rl:RequestedLifetimeDuration>PT1H</rl:RequestedLifetimeDuration>",
    "rl:SetTerminationTimeResponse": (
        f"<rl:NewTerminationTime xsi:nil='true'/><rl:CurrentTime>{TIME}</rl:CurrentTime>"
    ),
}


CLOSED = {"RegisterPublisherResponse"}
"""The one message whose schema takes no extensions."""


def valid_instance(prefixed: str) -> etree._Element:
    local = prefixed.split(":")[1]
    fault = BASE_FAULT + OWN_FIELDS.get(local, "")
    content = (
        fault if local.endswith("Fault") else CONTENT.get(local, "") + ("" if local in CLOSED else "<f:end/>")
    )
    content = RESOURCES.get(prefixed, content)
    return element(f"<{prefixed}>{BESIDE.get(prefixed, content)}</{prefixed}>")


CHILDREN = ("<f:x/>", "<x/>", "<wsnt:Unknown/>", "<wsnt:UseRaw/>", "<wsnt:CurrentTime>x</wsnt:CurrentTime>")
ATTRIBUTES = {
    "local": "1",
    name("f:a"): "1",
    name("wsa:IsReferenceParameter"): "maybe",
    name("wstop:topic"): "true",
    name("wstop:topicNamespaceLocation"): "urn:x",
    name("xsi:nil"): "true",
    name("xsi:type"): "wsnt:TopicExpressionType",
    f"{{{XML}}}lang": "en",
    f"{{{XML}}}space": "preserve",
    f"{{{XML}}}base": "urn:base",
}
TEXTS = ("", "nonsense", "-1", "PT1H", TIME, "f:a")


def damaged(root: etree._Element) -> Iterator[tuple[str, etree._Element]]:
    """The instance changed at one place, with words for the change."""
    for number, el in enumerate(root.iter()):
        for change in changes(el):
            copy = deepcopy(root)
            apply(list(copy.iter())[number], *change)
            yield f"{el.tag}: {change}", copy


def changes(el: etree._Element) -> Iterator[tuple[str, str, str]]:
    if el.getparent() is not None:
        yield from (("delete", "", ""), ("repeat", "", ""), ("to the front", "", ""))
        yield from (("rename", tag, "") for tag in (name("f:renamed"), name("wsnt:Renamed"), "renamed"))
    for child in CHILDREN:
        yield from (("add first", child, ""), ("add last", child, ""))
    yield from (("remove attribute", key, "") for key in el.attrib)
    yield from (("set attribute", key, value) for key, value in ATTRIBUTES.items())
    yield from (("set text", text, "") for text in TEXTS)
    yield from (("empty", "", ""), ("empty", name("xsi:nil"), "true"))
    yield from (("delete all", tag, "") for tag in {child.tag for child in el})


def apply(el: etree._Element, what: str, first: str, second: str) -> None:
    parent = el.getparent()
    match what:
        case "delete":
            parent.remove(el)
        case "repeat":
            parent.insert(parent.index(el), deepcopy(el))
        case "to the front":
            parent.insert(0, el)
        case "rename":
            el.tag = first
        case "add first":
            el.insert(0, element(first))
        case "add last":
            el.append(element(first))
        case "remove attribute":
            del el.attrib[first]
        case "set attribute":
            el.set(first, second)
        case "set text":
            el.text = first
        case "delete all":
            etree.strip_elements(el, first)
        case "empty":
            for child in [*el]:
                el.remove(child)
            el.text = None
            if first:
                el.set(first, second)
