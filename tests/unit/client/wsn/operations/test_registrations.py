"""The messages of publisher registrations: there and back, as the schema has them, and refused."""

from contextlib import suppress
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpwsn_client.wsn.operations.messages import Message, encode_message, parse_message
from hpwsn_client.wsn.operations.registrations import (
    DestroyRegistration,
    DestroyRegistrationResponse,
    RegisterPublisher,
    RegisterPublisherResponse,
)
from hpwsn_client.wsn.soap.addressing import EndpointReference
from hpwsn_client.wsn.soap.envelope import parse_envelope
from hpwsn_client.wsn.soap.faults import (
    InvalidMessage,
    InvalidTopicExpressionFault,
    SoapFault,
    UnacceptableInitialTerminationTimeFault,
)
from hpwsn_client.wsn.soap.names import WSA, WSN_BR, WSNT, XSI, request_action, response_action
from hpwsn_client.wsn.soap.times import Duration
from hpwsn_client.wsn.soap.version import SoapVersion, encode_envelope
from hpwsn_client.wsn.soap.xml import parse_xml
from hpwsn_client.wsn.topics.topic_expressions import parse_topic_expression
from tests.conftest import Oasis
from tests.unit.client.wsn import strategies

SCOPE = f'xmlns:b="{WSN_BR}" xmlns:w="{WSNT}" xmlns:a="{WSA}" xmlns:xsi="{XSI}"'
PUBLISHER = "<b:PublisherReference><a:Address>http://p/</a:Address></b:PublisherReference>"
NOON = datetime(2030, 1, 31, 12, tzinfo=UTC)

# What follows `##other` may be of any namespace but that of registrations.
extensions = st.lists(st.sampled_from([b'<q:id xmlns:q="urn:q">7</q:id>']), max_size=2).map(tuple)
messages = st.one_of(
    st.builds(
        RegisterPublisher,
        strategies.maybe_eprs,
        st.lists(strategies.expressions(), max_size=3).map(tuple),
        st.booleans(),
        st.none() | strategies.moments,
        extensions,
    ),
    st.builds(RegisterPublisherResponse, strategies.eprs, strategies.maybe_eprs),
    st.sampled_from([DestroyRegistration(), DestroyRegistrationResponse()]),
)


def read(text: str) -> Message:
    return parse_message(parse_xml(f"<scope {SCOPE}>{text}</scope>".encode())[0])


def register(inside: str) -> Message:
    return read(f"<b:RegisterPublisher>{inside}</b:RegisterPublisher>")


@given(messages, st.sampled_from(SoapVersion))
def test_every_message_is_read_back_from_its_element_alone_and_in_an_envelope(
    message: Message, version: SoapVersion
) -> None:
    data = encode_message(message)
    assert parse_message(parse_xml(data)) == message
    body = parse_envelope(encode_envelope(version, data)).body
    assert body is not None
    assert parse_message(body) == message


@given(message=messages)
def test_every_message_is_written_as_the_schema_has_it(oasis: Oasis, message: Message) -> None:
    oasis.validate(encode_message(message))


def test_a_registration_is_read_with_all_its_parts() -> None:
    topic = '<b:Topic xmlns:t="urn:t">t:A/B</b:Topic>'
    more = f"{topic}<b:Topic>C:D</b:Topic><b:Demand> 1 </b:Demand>"
    time = "<b:InitialTerminationTime>2030-01-31T13:00:00+01:00</b:InitialTerminationTime>"
    assert register(PUBLISHER + more + time + "<w:Extension/>") == RegisterPublisher(
        EndpointReference("http://p/"),
        (
            parse_topic_expression("t:A/B", None, {"t": "urn:t"}),
            parse_topic_expression("C:D", None, {}),
        ),
        True,
        NOON,
        (f'<w:Extension xmlns:w="{WSNT}"/>'.encode(),),
    )


def test_a_registration_may_say_nothing_at_all() -> None:
    assert register("") == RegisterPublisher()
    assert register("<b:Demand/>") == RegisterPublisher()


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("<b:InitialTerminationTime>PT1H</b:InitialTerminationTime>", Duration(0, 3600)),
        ('<b:InitialTerminationTime xsi:nil="true"/>', None),
    ],
)
def test_the_forms_of_time_that_subscribe_has_are_read_too(text: str, meant: Duration | None) -> None:
    assert register(text) == RegisterPublisher(termination=meant)


@pytest.mark.parametrize(
    ("inside", "kind", "words"),
    [
        ("<b:Demand>perhaps</b:Demand>", InvalidMessage, "'perhaps'; give true or false"),
        ("<b:Demand><b/></b:Demand>", InvalidMessage, "only text"),
        ("<b:Demand>true</b:Demand>" + PUBLISHER, InvalidMessage, "in this order"),
        (PUBLISHER * 2, InvalidMessage, "in this order"),
        ("<b:Demand>true</b:Demand>" * 2, InvalidMessage, "in this order"),
        ("<b:Unknown/>", InvalidMessage, "in this order"),
        ("<plain/>", InvalidMessage, "in this order"),
        ("<w:E/><b:Demand>true</b:Demand>", InvalidMessage, "in this order"),
        ("text", InvalidMessage, "text"),
        ("<b:PublisherReference/>", InvalidMessage, "wsa:Address"),
        ("<b:Topic>//</b:Topic>", InvalidTopicExpressionFault, "'//'"),
        ("<b:Topic Dialect='urn:x'>A</b:Topic>", InvalidTopicExpressionFault, "urn:x"),
        (
            "<b:InitialTerminationTime>soon</b:InitialTerminationTime>",
            UnacceptableInitialTerminationTimeFault,
            "soon",
        ),
    ],
)
def test_what_is_against_the_schema_is_refused_in_words(
    inside: str, kind: type[SoapFault], words: str
) -> None:
    with pytest.raises(kind, match=words.replace("(", r"\(")):
        register(inside)


def test_a_response_without_its_reference_is_refused() -> None:
    with pytest.raises(InvalidMessage, match="PublisherRegistrationReference"):
        read("<b:RegisterPublisherResponse/>")


@given(st.text("<>b:Demand/TopicA='\" \n", max_size=40))
def test_garbage_is_a_fault_and_nothing_else(inside: str) -> None:
    with suppress(SoapFault):
        register(inside)


def test_actions_are_those_of_the_standards_port_types() -> None:
    brw = "http://docs.oasis-open.org/wsn/brw-2"
    assert request_action("RegisterPublisher") == f"{brw}/RegisterPublisher/RegisterPublisherRequest"
    manager = f"{brw}/PublisherRegistrationManager/DestroyRegistration"
    assert request_action("DestroyRegistration") == f"{manager}Request"
    assert response_action("DestroyRegistration") == f"{manager}Response"
    assert request_action("Subscribe").endswith("/bw-2/NotificationProducer/SubscribeRequest")
