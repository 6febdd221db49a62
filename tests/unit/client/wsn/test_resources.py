"""The messages of resource properties and lifetimes: there and back, as the schema has them, and refused."""

from contextlib import suppress
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from hpwsn_client.wsn.operations import lifetime as life
from hpwsn_client.wsn.operations import properties as props
from hpwsn_client.wsn.operations.filters import ContentFilter
from hpwsn_client.wsn.operations.messages import Message, encode_message, parse_message
from hpwsn_client.wsn.soap.envelope import parse_envelope
from hpwsn_client.wsn.soap.faults import (
    InvalidMessage,
    InvalidQueryExpressionFault,
    SoapFault,
    UnableToSetTerminationTimeFault,
)
from hpwsn_client.wsn.soap.names import DIALECT_XPATH, WSNT, WSRF_RL, WSRF_RP, XSI, rl, rp
from hpwsn_client.wsn.soap.times import Duration
from hpwsn_client.wsn.soap.version import SoapVersion, encode_envelope
from hpwsn_client.wsn.soap.xml import parse_xml, replace_illegal
from tests.conftest import Oasis
from tests.contract_schema import contract_schema
from tests.unit.client.wsn import strategies

SCOPE = f'xmlns:p="{WSRF_RP}" xmlns:l="{WSRF_RL}" xmlns:w="{WSNT}" xmlns:xsi="{XSI}"'
NOON = datetime(2030, 1, 31, 12, tzinfo=UTC)

clark = st.one_of(strategies.names, st.builds("{{{}}}{}".format, strategies.namespaces, strategies.names))
values = st.lists(strategies.payloads, max_size=3).map(tuple)
queries = st.sampled_from(
    [
        ContentFilter(DIALECT_XPATH, "//e:a[. > '<&:']", (("e", "urn:e"),)),
        ContentFilter(DIALECT_XPATH, "rp:a | wsrf-rp:b", (("rp", "urn:other"), ("wsrf-rp", WSRF_RP))),
        ContentFilter("urn:some&other", "anything at all"),
    ]
)
requests = st.one_of(
    st.builds(props.GetResourceProperty, clark),
    st.builds(props.GetMultipleResourceProperties, st.lists(clark, min_size=1, max_size=4).map(tuple)),
    st.builds(props.QueryResourceProperties, queries),
)
responses = st.one_of(
    st.builds(props.GetResourcePropertyResponse, values),
    st.builds(props.GetMultipleResourcePropertiesResponse, values),
    st.builds(props.QueryResourcePropertiesResponse, values, st.sampled_from(["", "7", "a < b & c"])),
)
lifetimes = st.one_of(
    st.sampled_from([life.Destroy(), life.DestroyResponse()]),
    st.builds(life.SetTerminationTime, strategies.terminations),
    st.builds(life.SetTerminationTimeResponse, st.none() | strategies.moments, strategies.moments),
)


def read(text: str) -> Message:
    return parse_message(parse_xml(f"<scope {SCOPE}>{text}</scope>".encode())[0])


@given(st.one_of(requests, responses, lifetimes), st.sampled_from(SoapVersion))
def test_every_message_is_read_back_from_its_element_alone_and_in_an_envelope(
    message: Message, version: SoapVersion
) -> None:
    data = encode_message(message)
    assert parse_message(parse_xml(data)) == message
    body = parse_envelope(encode_envelope(version, data)).body
    assert body is not None
    assert parse_message(body) == message


@given(message=requests)
def test_every_request_for_properties_is_as_the_schema_has_it(oasis: Oasis, message: Message) -> None:
    oasis.validate(encode_message(message))


@pytest.fixture(scope="module")
def contract(tmp_path_factory: pytest.TempPathFactory) -> etree.XMLSchema:
    return contract_schema(tmp_path_factory.mktemp("contract"))


@given(message=lifetimes)
def test_every_message_of_lifetimes_is_as_the_contract_has_it(
    contract: etree.XMLSchema, message: Message
) -> None:
    contract.assertValid(parse_xml(encode_message(message)))


@pytest.mark.parametrize("name", [rp("GetResourceProperty"), rl("Destroy"), rl("SetTerminationTime")])
@given(text=st.text(max_size=20))
def test_garbage_is_a_fault_and_nothing_else(name: str, text: str) -> None:
    element = etree.Element(name)
    element.text = replace_illegal(text)
    with suppress(SoapFault):
        parse_message(element)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("<p:GetResourceProperty> w:Filter\n</p:GetResourceProperty>", f"{{{WSNT}}}Filter"),
        ("<p:GetResourceProperty>Filter</p:GetResourceProperty>", "Filter"),
    ],
)
def test_the_name_of_a_property_is_a_qname_in_its_scope(text: str, message: str) -> None:
    assert read(text) == props.GetResourceProperty(message)


@pytest.mark.parametrize(
    ("inside", "termination"),
    [
        ("<l:RequestedLifetimeDuration>PT1H</l:RequestedLifetimeDuration>", Duration(0, 3600)),
        ("<l:RequestedTerminationTime>2030-01-31T13:00:00+01:00</l:RequestedTerminationTime>", NOON),
        ("<l:RequestedTerminationTime> 2030-01-31T12:00:00 </l:RequestedTerminationTime>", NOON),
        ('<l:RequestedTerminationTime xsi:nil="true"/>', None),
    ],
)
def test_a_termination_time_is_read_in_every_form(inside: str, termination: object) -> None:
    assert read(f"<l:SetTerminationTime>{inside}</l:SetTerminationTime>") == life.SetTerminationTime(
        termination  # type: ignore[arg-type]
    )


@pytest.mark.parametrize(
    "inside",
    [
        "<l:RequestedTerminationTime>PT1H</l:RequestedTerminationTime>",
        "<l:RequestedTerminationTime>soon</l:RequestedTerminationTime>",
        "<l:RequestedTerminationTime/>",
        "<l:RequestedLifetimeDuration>2030-01-31T12:00:00Z</l:RequestedLifetimeDuration>",
        '<l:RequestedLifetimeDuration xsi:nil="true"/>',
    ],
)
def test_what_is_no_time_cannot_be_set(inside: str) -> None:
    with pytest.raises(UnableToSetTerminationTimeFault):
        read(f"<l:SetTerminationTime>{inside}</l:SetTerminationTime>")


@pytest.mark.parametrize(
    "text",
    [
        "<p:GetResourceProperty></p:GetResourceProperty>",
        "<p:GetResourceProperty>none:Filter</p:GetResourceProperty>",
        "<p:GetResourceProperty>w:Filter<x/></p:GetResourceProperty>",
        "<p:GetMultipleResourceProperties></p:GetMultipleResourceProperties>",
        "<p:GetMultipleResourceProperties><p:Other>w:a</p:Other></p:GetMultipleResourceProperties>",
        "<p:QueryResourceProperties></p:QueryResourceProperties>",
        "<p:QueryResourceProperties><p:QueryExpression/><p:QueryExpression/></p:QueryResourceProperties>",
        "<l:Destroy><x/></l:Destroy>",
        "<l:SetTerminationTime></l:SetTerminationTime>",
        "<l:SetTerminationTime><l:Other/></l:SetTerminationTime>",
        "<l:SetTerminationTimeResponse></l:SetTerminationTimeResponse>",
    ],
)
def test_what_the_schema_does_not_have_is_refused(text: str) -> None:
    with pytest.raises(InvalidMessage):
        read(text)


def test_a_query_with_an_element_in_it_is_no_query() -> None:
    with pytest.raises(InvalidQueryExpressionFault):
        read(
            "<p:QueryResourceProperties><p:QueryExpression><x/></p:QueryExpression></p:QueryResourceProperties>"
        )


def test_the_end_of_a_resource_is_told_with_its_time_and_reason() -> None:
    told = parse_xml(life.encode_termination_notification(datetime(2026, 1, 31, 12, tzinfo=UTC), "a < b & c"))
    assert told.tag == rl("TerminationNotification")
    assert [(child.tag, child.text) for child in told] == [
        (rl("TerminationTime"), "2026-01-31T12:00:00Z"),
        (rl("TerminationReason"), "a < b & c"),
    ]
