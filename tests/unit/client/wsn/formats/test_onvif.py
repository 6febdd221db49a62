"""ONVIF's messages: every one comes back as it was written, and what the schema refuses is refused."""

import contextlib
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpwsn_client.wsn.formats import onvif
from hpwsn_client.wsn.operations import messages
from hpwsn_client.wsn.operations.filters import ContentFilter, Filter, compile_content
from hpwsn_client.wsn.soap.faults import (
    InvalidFilterFault,
    InvalidMessage,
    SoapFault,
    UnacceptableInitialTerminationTimeFault,
    UnrecognizedPolicyRequestFault,
)
from hpwsn_client.wsn.soap.names import (
    DIALECT_ITEM_FILTER,
    DIALECT_XPATH,
    TEV,
    TT,
    WSNT,
    WSTOP,
    XSI,
    response_action,
)
from hpwsn_client.wsn.soap.times import Duration
from hpwsn_client.wsn.soap.xml import parse_xml
from tests.unit.client.wsn import strategies

MOTION = 'boolean(//tt:SimpleItem[@Name="IsMotion" and @Value="true"])'
MESSAGE = (
    f'<tt:Message xmlns:tt="{TT}" UtcTime="2030-01-01T00:00:00Z" PropertyOperation="Changed">'
    '<tt:Data><tt:SimpleItem Name="IsMotion" Value="{}"/></tt:Data></tt:Message>'
)
waits = st.builds(
    lambda months, micros: Duration(months, micros / 1_000_000), st.integers(0, 1200), st.integers(0, 10**12)
)
counts = st.integers(1, 2**31 - 1)
uris = st.lists(st.sampled_from(["urn:a", "http://x/?a=1&b=2", DIALECT_XPATH]), min_size=1).map(tuple)
topic_sets = st.sampled_from([f'<wstop:TopicSet xmlns:wstop="{WSTOP}"/>'.encode()])
every_message = st.one_of(
    st.builds(
        onvif.CreatePullPointSubscription, strategies.filters, strategies.terminations, strategies.policies
    ),
    st.builds(
        onvif.CreatePullPointSubscriptionResponse,
        strategies.eprs,
        strategies.moments,
        st.none() | strategies.moments,
    ),
    st.builds(onvif.PullMessages, waits, counts),
    st.builds(
        onvif.PullMessagesResponse,
        strategies.moments,
        strategies.moments,
        st.lists(strategies.notifications, max_size=3).map(tuple),
    ),
    st.builds(onvif.PullMessagesFaultResponse, waits, counts),
    st.builds(onvif.Seek, strategies.moments, st.booleans()),
    st.builds(
        onvif.GetEventPropertiesResponse,
        uris,
        st.booleans(),
        topic_sets,
        uris,
        uris,
        st.just(()) | uris,
        uris,
    ),
    st.builds(
        onvif.GetServiceCapabilitiesResponse,
        st.booleans(),
        st.booleans(),
        st.booleans(),
        counts,
        counts,
        st.booleans(),
    ),
    st.sampled_from(
        [
            onvif.SetSynchronizationPoint(),
            onvif.SetSynchronizationPointResponse(),
            onvif.GetEventProperties(),
            onvif.GetServiceCapabilities(),
        ]
    ),
)


def read(inside: str, name: str = "CreatePullPointSubscription") -> messages.Message:
    text = f'<t:{name} xmlns:t="{TEV}" xmlns:w="{WSNT}" xmlns:i="{XSI}">{inside}</t:{name}>'
    return messages.parse_message(parse_xml(text.encode()))


@given(every_message)
def test_every_message_comes_back_as_it_was_written(message):
    assert messages.parse_message(parse_xml(messages.encode_message(message))) == message


@given(every_message)
def test_every_message_comes_back_from_within_an_envelope(message):
    envelope = b"<soap:Body xmlns:soap='urn:s'>" + messages.encode_message(message) + b"</soap:Body>"
    assert messages.parse_message(parse_xml(envelope)[0]) == message


@given(st.sampled_from(sorted(onvif.ONVIF_PARSERS)), st.data())
def test_garbage_is_refused_with_a_fault_and_nothing_else(tag, data):
    names = st.sampled_from(["Timeout", "MessageLimit", "Filter", "UtcTime", "InitialTerminationTime", "x"])
    children = data.draw(st.lists(st.tuples(names, st.sampled_from(["", "PT1S", "-1", "9" * 30, "<a/>"]))))
    inside = "".join(f"<t:{name}>{text}</t:{name}>" for name, text in children)
    with contextlib.suppress(SoapFault):
        read(inside, tag.rpartition("}")[2])


def test_an_absent_or_nil_lifetime_is_left_to_the_node():
    assert read("").termination is None
    assert read('<t:InitialTerminationTime i:nil="true"/>').termination is None


def test_a_lifetime_may_be_a_duration_or_a_time():
    assert read("<t:InitialTerminationTime>PT60S</t:InitialTerminationTime>").termination == Duration(0, 60)
    moment = read("<t:InitialTerminationTime>2030-01-31T12:00:00+02:00</t:InitialTerminationTime>")
    assert moment.termination == datetime(2030, 1, 31, 10, tzinfo=UTC)


@pytest.mark.parametrize(
    ("inside", "fault"),
    [
        (
            "<t:InitialTerminationTime>soon</t:InitialTerminationTime>",
            UnacceptableInitialTerminationTimeFault,
        ),
        ("<t:Filter><w:Other/></t:Filter>", InvalidFilterFault),
        ("<t:SubscriptionPolicy><t:ChangedOnly/></t:SubscriptionPolicy>", UnrecognizedPolicyRequestFault),
        ("<t:Filter/><t:Filter/>", InvalidMessage),
        ("<t:Timeout>PT1S</t:Timeout>", InvalidMessage),
        ("<unqualified/>", InvalidMessage),
        ("text", InvalidMessage),
    ],
)
def test_a_request_for_a_subscription_that_cannot_be_meant_is_refused(inside, fault):
    with pytest.raises(fault):
        read(inside)


def test_extensions_of_others_are_passed_over():
    assert read('<x:more xmlns:x="urn:x"/>') == onvif.CreatePullPointSubscription()


@pytest.mark.parametrize(
    ("timeout", "limit"),
    [
        *(("10", "1"), ("-PT1S", "1"), ("2030-01-01T00:00:00Z", "1"), ("", "1"), ("<a/>", "1")),
        *(("PT1S", limit) for limit in ("0", "-1", "x", "2147483648", "")),
    ],
)
def test_a_pull_for_no_time_or_no_messages_is_refused(timeout, limit):
    with pytest.raises(InvalidMessage):
        read(f"<t:Timeout>{timeout}</t:Timeout><t:MessageLimit>{limit}</t:MessageLimit>", "PullMessages")


@pytest.mark.parametrize("inside", ["", "<t:Timeout>PT1S</t:Timeout>", "<t:MessageLimit>1</t:MessageLimit>"])
def test_a_pull_names_its_timeout_and_its_limit(inside):
    with pytest.raises(InvalidMessage, match="; add one"):
        read(inside, "PullMessages")


@pytest.mark.parametrize("scope", ["", f' xmlns:tt="{TT}"'])
def test_an_item_filter_is_the_xpath_that_it_is_even_where_nobody_bound_its_prefix(scope):
    text = f'<w:MessageContent{scope} Dialect="{DIALECT_ITEM_FILTER}">{MOTION}</w:MessageContent>'
    (content,) = read(f"<t:Filter>{text}</t:Filter>").filter.content
    assert content == ContentFilter(DIALECT_XPATH, MOTION, (("tt", TT),))
    holds = compile_content(content)
    assert holds(parse_xml(MESSAGE.replace("{}", "true").encode()))
    assert not holds(parse_xml(MESSAGE.replace("{}", "false").encode()))


def test_a_prefix_that_a_client_bound_to_something_else_stays_its_own():
    bound = ContentFilter(DIALECT_ITEM_FILTER, MOTION, (("tt", "urn:other"),))
    assert onvif.as_xpath(Filter(content=(bound,))).content[0].namespaces == (("tt", "urn:other"),)


def test_a_filter_in_another_dialect_is_left_as_it_is():
    other = Filter(content=(ContentFilter("urn:other", "x"),))
    assert onvif.as_xpath(other) == other


def test_answers_have_the_actions_of_onvif():
    assert response_action("PullMessages") == f"{TEV}/PullPointSubscription/PullMessagesResponse"
    assert response_action("GetEventProperties") == f"{TEV}/EventPortType/GetEventPropertiesResponse"


def test_joined_messages_are_read_like_written_ones():
    now = datetime(2030, 1, 1, tzinfo=UTC)
    joined = onvif.join_pull_messages_response(now, now + timedelta(seconds=60), ())
    assert messages.parse_message(parse_xml(joined)) == onvif.PullMessagesResponse(
        now, now + timedelta(seconds=60)
    )
