"""Every message of the standard: as real clients send it, as the schema has it, and there and back."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from hpwsn_client import wsn
from hpwsn_client.wsn.operations import messages as m
from hpwsn_client.wsn.operations.filters import ContentFilter, Filter
from hpwsn_client.wsn.operations.policy import encode_policy, parse_policy
from hpwsn_client.wsn.soap.addressing import EndpointReference
from hpwsn_client.wsn.soap.envelope import parse_envelope
from hpwsn_client.wsn.soap.faults import (
    ActionNotSupported,
    InvalidFilterFault,
    InvalidMessage,
    SoapFault,
    UnacceptableInitialTerminationTimeFault,
    UnacceptableTerminationTimeFault,
    UnrecognizedPolicyRequestFault,
    UnsupportedPolicyRequestFault,
)
from hpwsn_client.wsn.soap.names import DIALECT_FULL, DIALECT_XPATH, HPWSN, WSA, WSNT, XSI, hp, wsnt
from hpwsn_client.wsn.soap.times import Duration
from hpwsn_client.wsn.soap.version import SoapVersion, encode_envelope
from hpwsn_client.wsn.soap.xml import Limits, parse_xml
from hpwsn_client.wsn.topics.topic_expressions import Topic, TopicExpression, parse_topic_expression
from tests.conftest import Oasis
from tests.unit.client.wsn import strategies

CONSUMER = "<w:ConsumerReference><a:Address>http://c/</a:Address></w:ConsumerReference>"
MANAGER = "<w:SubscriptionReference><a:Address>http://m/</a:Address></w:SubscriptionReference>"
NOON = datetime(2030, 1, 31, 12, tzinfo=UTC)


SCOPE = f'xmlns:w="{WSNT}" xmlns:a="{WSA}" xmlns:hp="{HPWSN}" xmlns:xsi="{XSI}" xmlns:x="urn:x"'


def element(name: str, inside: str = "", attributes: str = "") -> etree._Element:
    return parse_xml(f"<w:{name} {SCOPE} {attributes}>{inside}</w:{name}>".encode())


def read(name: str, inside: str = "", attributes: str = "") -> m.Message:
    return m.parse_message(element(name, inside, attributes))


def subscribe(inside: str) -> m.Subscribe:
    return m.parse_subscribe(element("Subscribe", CONSUMER + inside))


def canonical(data: bytes) -> str:
    return str(etree.canonicalize(data.decode(), rewrite_prefixes=True, strip_text=True))


# There and back


@given(strategies.every_message, st.sampled_from(SoapVersion))
def test_every_message_is_read_back_from_its_element_alone_and_in_an_envelope(
    message: m.Message, version: SoapVersion
) -> None:
    data = m.encode_message(message)
    assert m.parse_message(parse_xml(data)) == message
    body = parse_envelope(encode_envelope(version, data)).body
    assert body is not None
    assert m.parse_message(body) == message


@given(message=strategies.every_message)
def test_every_message_is_written_as_the_schema_has_it(oasis: Oasis, message: m.Message) -> None:
    element = parse_xml(m.encode_message(message))
    assert element.tag == wsnt(type(message).__name__)
    # Payloads in the standard's own namespaces are none of its elements, so an empty one takes their place.
    for holder in element.iter(wsnt("Message"), hp("message")):
        holder[:] = [etree.Element("payload")]
    # The schema allows the attribute, as it allows any, but no schema declares it.
    element.attrib.pop(wsnt("pullPointQueueName"), "")
    oasis.validate(element)


# By hand


SUBSCRIBE = b"""<?xml version="1.0" encoding="utf-8"?>
<soap12:Envelope xmlns:soap12="http://www.w3.org/2003/05/soap-envelope" xmlns:wsa5="http://www.w3.org/2005/08/addressing"
    xmlns:tns1="http://www.onvif.org/ver10/topics" xmlns:wsn="http://docs.oasis-open.org/wsn/b-2">
  <soap12:Header>
    <wsa5:To soap12:mustUnderstand="1">http://broker/wsn</wsa5:To>
  </soap12:Header>
  <soap12:Body>
    <Subscribe xmlns="http://docs.oasis-open.org/wsn/b-2">
      <wsn:ConsumerReference>
        <Address xmlns="http://www.w3.org/2005/08/addressing">http://consumer:9000/</Address>
        <wsa5:ReferenceParameters><k:key xmlns:k="urn:k">v</k:key></wsa5:ReferenceParameters>
      </wsn:ConsumerReference>
      <Filter>
        <TopicExpression Dialect="http://docs.oasis-open.org/wsn/t-1/TopicExpression/Full">tns1:Device//.</TopicExpression>
        <wsn:MessageContent Dialect="http://www.w3.org/TR/1999/REC-xpath-19991116" xmlns:d="urn:d"
          >//d:level &gt; 3</wsn:MessageContent>
      </Filter>
      <InitialTerminationTime>PT10M</InitialTerminationTime>
      <SubscriptionPolicy><wsn:UseRaw/></SubscriptionPolicy>
      <v:Vendor xmlns:v="urn:v"/>
    </Subscribe>
  </soap12:Body>
</soap12:Envelope>"""
SUBSCRIBED = m.Subscribe(
    EndpointReference("http://consumer:9000/", (b'<k:key xmlns:k="urn:k">v</k:key>',)),
    Filter(
        (
            parse_topic_expression(
                "tns1:Device//.", DIALECT_FULL, {"tns1": "http://www.onvif.org/ver10/topics"}
            ),
        ),
        (ContentFilter(DIALECT_XPATH, "//d:level > 3", (("d", "urn:d"),)),),
    ),
    Duration(0, 600),
    m.SubscriptionPolicy(use_raw=True),
    (b'<v:Vendor xmlns:v="urn:v"/>',),
)


def without_defaults(data: bytes) -> bytes:
    """A parsed body holds a default namespace that the payload bytes of the message carry too."""
    return data.replace(b' xmlns="http://docs.oasis-open.org/wsn/b-2"', b"")


def test_a_subscribe_with_mixed_prefixes_is_read_whole() -> None:
    body = parse_envelope(SUBSCRIBE).body
    assert body is not None
    found = m.parse_subscribe(body)
    assert found.filter == SUBSCRIBED.filter
    assert (found.termination, found.policy) == (SUBSCRIBED.termination, SUBSCRIBED.policy)
    assert found.consumer.address == SUBSCRIBED.consumer.address
    assert [*map(without_defaults, found.consumer.reference_parameters)] == [
        b'<k:key xmlns:k="urn:k">v</k:key>'
    ]
    assert [*map(without_defaults, found.extensions)] == [b'<v:Vendor xmlns:v="urn:v"/>']


def test_a_subscribe_is_written_as_it_would_be_by_hand() -> None:
    body = parse_envelope(SUBSCRIBE).body
    assert body is not None
    assert canonical(m.encode_subscribe(SUBSCRIBED)) == canonical(etree.tostring(body, with_tail=False))


BY_HAND = [
    (
        m.SubscribeResponse(EndpointReference("http://m/"), NOON, None),
        f"<w:SubscribeResponse>{MANAGER}<w:CurrentTime>2030-01-31T12:00:00Z</w:CurrentTime>"
        "<w:TerminationTime xsi:nil='true'/></w:SubscribeResponse>",
    ),
    (m.Renew(Duration(1, 0)), "<w:Renew><w:TerminationTime>P1M</w:TerminationTime></w:Renew>"),
    (m.Renew(None), "<w:Renew><w:TerminationTime xsi:nil='true'/></w:Renew>"),
    (
        m.RenewResponse(NOON, NOON),
        "<w:RenewResponse><w:TerminationTime>2030-01-31T12:00:00Z</w:TerminationTime>"
        "<w:CurrentTime>2030-01-31T12:00:00Z</w:CurrentTime></w:RenewResponse>",
    ),
    (m.Unsubscribe(), "<w:Unsubscribe/>"),
    (m.PauseSubscriptionResponse(), "<w:PauseSubscriptionResponse></w:PauseSubscriptionResponse>"),
    (m.CreatePullPoint("q & a"), "<w:CreatePullPoint w:pullPointQueueName='q &amp; a'/>"),
    (
        m.CreatePullPointResponse(EndpointReference("http://p/")),
        "<w:CreatePullPointResponse><w:PullPoint><a:Address>http://p/</a:Address></w:PullPoint>"
        "</w:CreatePullPointResponse>",
    ),
    (m.GetMessages(5), "<w:GetMessages><w:MaximumNumber>5</w:MaximumNumber></w:GetMessages>"),
    (m.GetMessagesResponse(), "<w:GetMessagesResponse/>"),
    (
        m.GetCurrentMessageResponse(b"<plain/>"),
        "<w:GetCurrentMessageResponse><hp:message><plain/></hp:message></w:GetCurrentMessageResponse>",
    ),
    (
        m.GetCurrentMessageResponse(b'<x:a xmlns:x="urn:x"/>'),
        "<w:GetCurrentMessageResponse><x:a/></w:GetCurrentMessageResponse>",
    ),
    (
        m.Subscribe(
            EndpointReference("http://c/"), policy=m.SubscriptionPolicy(delivery=m.DeliveryPolicy(batch=9))
        ),
        f"<w:Subscribe>{CONSUMER}<w:SubscriptionPolicy><hp:Delivery batch='9'/></w:SubscriptionPolicy>"
        "</w:Subscribe>",
    ),
]


@pytest.mark.parametrize(("message", "text"), BY_HAND)
def test_a_message_is_read_and_written_as_it_would_be_by_hand(message: m.Message, text: str) -> None:
    by_hand = parse_xml(f"<around {SCOPE}>{text}</around>".encode())[0]
    assert m.parse_message(by_hand) == message
    assert canonical(m.encode_message(message)) == canonical(etree.tostring(by_hand))


# Subscribe


def test_a_subscribe_may_ask_for_nothing_in_particular() -> None:
    assert subscribe("") == m.Subscribe(
        EndpointReference("http://c/"), Filter(), None, m.SubscriptionPolicy(), ()
    )


@pytest.mark.parametrize(
    ("written", "termination"),
    [
        ("<w:InitialTerminationTime xsi:nil='true'/>", None),
        ("<w:InitialTerminationTime xsi:nil=' 1 '></w:InitialTerminationTime>", None),
        ("<w:InitialTerminationTime xsi:nil='false'>PT1S</w:InitialTerminationTime>", Duration(0, 1)),
        ("<w:InitialTerminationTime> P1Y2M </w:InitialTerminationTime>", Duration(14, 0)),
        ("<w:InitialTerminationTime>2030-01-31T12:00:00</w:InitialTerminationTime>", NOON),
        ("<w:InitialTerminationTime>2030-01-31T14:00:00+02:00</w:InitialTerminationTime>", NOON),
    ],
)
def test_a_lifetime_is_a_time_a_duration_or_for_ever(written: str, termination: object) -> None:
    assert subscribe(written).termination == termination


@pytest.mark.parametrize("text", ["", "soon", "P", "2030-02-30T00:00:00Z", "60", "-P", "P1Y1"])
def test_a_malformed_lifetime_has_the_fault_of_its_message(text: str) -> None:
    with pytest.raises(UnacceptableInitialTerminationTimeFault):
        subscribe(f"<w:InitialTerminationTime>{text}</w:InitialTerminationTime>")
    with pytest.raises(UnacceptableTerminationTimeFault):
        read("Renew", f"<w:TerminationTime>{text}</w:TerminationTime>")


def test_unknown_filters_and_policies_have_their_faults_with_the_names() -> None:
    with pytest.raises(InvalidFilterFault) as filters:
        subscribe("<w:Filter><x:F/></w:Filter>")
    assert filters.value.unknown_filters == ("{urn:x}F",)
    with pytest.raises(UnrecognizedPolicyRequestFault) as policies:
        subscribe("<w:SubscriptionPolicy><x:P/><w:UseRaw/><Q/></w:SubscriptionPolicy>")
    assert policies.value.unrecognized == ("{urn:x}P", "Q")


def test_a_delivery_policy_is_read_whole() -> None:
    found = subscribe(
        "<w:SubscriptionPolicy><hp:Delivery maxQueue='10000' overflow='drop-oldest' batch=' 64 ' "
        "expires='PT1H' discipline='fifo'/><w:UseRaw/></w:SubscriptionPolicy>"
    )
    delivery = m.DeliveryPolicy(10000, "drop-oldest", 64, Duration(0, 3600), "fifo")
    assert found.policy == m.SubscriptionPolicy(True, delivery)


def test_the_bounds_of_a_discipline_are_read_and_written() -> None:
    found = subscribe(
        "<w:SubscriptionPolicy><hp:Delivery discipline='cet' alpha='3' beta='PT1M'/></w:SubscriptionPolicy>"
    )
    assert found.policy.delivery == m.DeliveryPolicy(discipline="cet", alpha=3, beta=Duration(0, 60))
    written = parse_policy(etree.fromstring(encode_policy(found.policy)))
    assert written == found.policy


@pytest.mark.parametrize(
    "attribute",
    [
        *(
            "maxQueue='0'",
            "maxQueue='-1'",
            "maxQueue=''",
            "maxQueue='1.5'",
            "maxQueue='1e3'",
            "maxQueue='1234567890'",
        ),
        *("batch='0'", "batch='x'", "batch='١'", "overflow='drop'", "overflow=''", "discipline='lifo'"),
        *("expires='1'", "expires='-PT1H'", "expires='PT0S'", "expires='2030-01-31T12:00:00Z'", "expires=''"),
        *("alpha='0'", "alpha='x'", "beta='60'", "beta='PT0S'", "beta='-PT1M'"),
        *("size='1'", "hp:batch='1'"),
    ],
)
def test_a_delivery_policy_that_means_nothing_is_unsupported(attribute: str) -> None:
    with pytest.raises(UnsupportedPolicyRequestFault) as caught:
        subscribe(f"<w:SubscriptionPolicy><hp:Delivery {attribute}/></w:SubscriptionPolicy>")
    assert caught.value.unsupported == (hp("Delivery"),)
    assert attribute.split("=")[0].removeprefix("hp:") in caught.value.reason


def test_a_policy_asked_for_twice_is_unsupported() -> None:
    with pytest.raises(UnsupportedPolicyRequestFault):
        subscribe(
            "<w:SubscriptionPolicy><hp:Delivery batch='1'/><hp:Delivery batch='2'/></w:SubscriptionPolicy>"
        )


# The others


def test_the_times_of_a_response_may_be_absent() -> None:
    assert read("SubscribeResponse", MANAGER) == m.SubscribeResponse(
        EndpointReference("http://m/"), None, None
    )


def test_the_topic_of_get_current_message_is_read_in_its_scope() -> None:
    found = read("GetCurrentMessage", "<w:Topic>x:A/B</w:Topic><x:extension/>")
    assert isinstance(found, m.GetCurrentMessage)
    assert found.topic.topic == Topic("urn:x", ("A", "B"))


@given(strategies.payloads)
def test_a_current_message_goes_into_a_wrapper_only_where_the_schema_has_no_place_for_it(
    payload: bytes,
) -> None:
    namespace = etree.QName(parse_xml(payload)).namespace
    child = parse_xml(m.encode_message(m.GetCurrentMessageResponse(payload)))[0]
    assert (child.tag == hp("message")) == (namespace in (None, WSNT))


def test_a_wrapper_that_was_itself_the_message_comes_back_whole() -> None:
    message = m.GetCurrentMessageResponse(b'<hp:message xmlns:hp="urn:hpwsn:1"><a/></hp:message>')
    assert m.parse_message(parse_xml(m.encode_message(message))) == message


@pytest.mark.parametrize(
    ("text", "maximum"), [(" 7 ", 7), ("+7", 7), ("-0", 0), ("007", 7), ("9" * 18, 10**18 - 1)]
)
def test_a_maximum_number_is_any_that_the_schema_allows(text: str, maximum: int) -> None:
    assert read("GetMessages", f"<w:MaximumNumber>{text}</w:MaximumNumber>") == m.GetMessages(maximum)


def test_a_pull_point_without_a_name_has_none() -> None:
    assert (
        read("CreatePullPoint")
        == read("CreatePullPoint", "", "w:pullPointQueueName=' '")
        == m.CreatePullPoint()
    )
    assert read("CreatePullPoint", "", "pullPointQueueName='other'") == m.CreatePullPoint()


def test_the_limit_of_messages_holds_for_pulled_ones_too() -> None:
    two = "<w:NotificationMessage><w:Message>a</w:Message></w:NotificationMessage>" * 2
    assert len(m.parse_get_messages_response(element("GetMessagesResponse", two)).messages) == 2
    for name in ("GetMessagesResponse", "Notify"):
        with pytest.raises(InvalidMessage, match="1 accepted"):
            m.parse_message(element(name, two), Limits(messages=1))


INVALID = [
    ("Subscribe", ""),
    ("Subscribe", "text"),
    ("Subscribe", CONSUMER + CONSUMER),
    ("Subscribe", CONSUMER + "text"),
    ("Subscribe", CONSUMER + "<w:SubscriberAddress>http://s/</w:SubscriberAddress>"),
    ("Subscribe", CONSUMER + "<plain/>"),
    ("Subscribe", CONSUMER + "<w:SubscriptionPolicy/><w:Filter/>"),
    ("Subscribe", CONSUMER + "<x:extension/><w:Filter/>"),
    ("Subscribe", "<w:Filter/>" + CONSUMER),
    ("Subscribe", "<w:ConsumerReference/>"),
    ("Subscribe", CONSUMER + "<w:InitialTerminationTime><x:a/></w:InitialTerminationTime>"),
    ("SubscribeResponse", ""),
    ("SubscribeResponse", MANAGER + "<w:CurrentTime>now</w:CurrentTime>"),
    ("SubscribeResponse", MANAGER + "<w:TerminationTime>PT1H</w:TerminationTime>"),
    ("Renew", ""),
    ("Renew", "<x:extension/>"),
    ("RenewResponse", "<w:CurrentTime>2030-01-31T12:00:00Z</w:CurrentTime>"),
    ("Unsubscribe", "<w:Subscribe/>"),
    ("Unsubscribe", "text"),
    ("ResumeSubscription", "<plain/>"),
    ("GetCurrentMessage", ""),
    ("GetCurrentMessageResponse", ""),
    ("GetCurrentMessageResponse", "<x:a/><x:b/>"),
    ("GetCurrentMessageResponse", "<plain/>"),
    ("GetCurrentMessageResponse", "<hp:message/>"),
    ("GetCurrentMessageResponse", "<hp:message><a/><b/></hp:message>"),
    ("CreatePullPointResponse", ""),
    ("GetMessages", "<w:MaximumNumber/>"),
    ("GetMessages", "<w:MaximumNumber>-1</w:MaximumNumber>"),
    ("GetMessages", "<w:MaximumNumber>1.0</w:MaximumNumber>"),
    ("GetMessages", "<w:MaximumNumber>٣</w:MaximumNumber>"),
    ("GetMessages", f"<w:MaximumNumber>{'9' * 5000}</w:MaximumNumber>"),
    ("GetMessages", "<w:MaximumNumber>1<x:a/></w:MaximumNumber>"),
    ("GetMessagesResponse", "<w:Message>a</w:Message>"),
    ("Notify", ""),
]


@pytest.mark.parametrize(("name", "inside"), INVALID)
def test_what_the_schema_does_not_allow_is_refused(name: str, inside: str) -> None:
    with pytest.raises(InvalidMessage):
        read(name, inside)


@pytest.mark.parametrize(
    "data", [b"<Subscribe/>", b"<a xmlns='urn:x'/>", f"<Nothing xmlns='{WSNT}'/>".encode()]
)
def test_an_unknown_operation_is_not_supported(data: bytes) -> None:
    with pytest.raises(ActionNotSupported):
        m.parse_message(parse_xml(data))


@given(strategies.every_message, st.data())
def test_a_message_with_a_part_taken_out_or_doubled_is_read_or_refused_with_a_fault(
    message: m.Message, data: st.DataObject
) -> None:
    root = parse_xml(m.encode_message(message))
    victim = data.draw(st.sampled_from(list(root.iter())))
    parent = victim.getparent()
    if parent is None:
        victim.text = data.draw(st.sampled_from(["x", " ", "<", "2030-01-31T12:00:00Z"]))
    elif data.draw(st.booleans()):
        parent.remove(victim)
    else:
        parent.append(parse_xml(etree.tostring(victim, encoding="utf-8", with_tail=False)))
    try:
        found = m.parse_message(root)
    except SoapFault as fault:
        assert fault.reason
    else:
        assert m.parse_message(parse_xml(m.encode_message(found))) == found


# The package


def test_the_package_offers_what_it_lists() -> None:
    assert len(set(wsn.__all__)) == len(wsn.__all__)
    assert all(hasattr(wsn, name) for name in wsn.__all__)
    assert {*m.__all__} <= {*wsn.__all__}
    assert wsn.TopicExpression is TopicExpression
