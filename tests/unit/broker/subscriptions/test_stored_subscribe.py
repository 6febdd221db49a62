"""Subscribe messages from the journal: read as the parser reads them, what they share only once."""

from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hpwsn.broker.subscriptions.stored_subscribe import LONGEST, parse_stored_subscribe
from hpwsn_client.wsn.operations.filters import MAX_CHARACTERS, ContentFilter, Filter
from hpwsn_client.wsn.operations.messages import (
    DeliveryPolicy,
    Subscribe,
    SubscriptionPolicy,
    Unsubscribe,
    encode_message,
    parse_message,
)
from hpwsn_client.wsn.soap.addressing import EndpointReference
from hpwsn_client.wsn.soap.names import DIALECT_PREDICATES, DIALECT_XPATH
from hpwsn_client.wsn.soap.soap_faults import SoapFault
from hpwsn_client.wsn.soap.xml import STORED_LIMITS, parse_xml
from hpwsn_client.wsn.topics.topic_expressions import parse_topic_expression

A_OR_B = parse_topic_expression("a|b//.", None, {})
OF_ANOTHER = parse_topic_expression("p:a/b", None, {"p": "urn:p"})
texts = st.text(alphabet="ab <>&'\"\t]é京;", max_size=12).map(str.strip)
contents = st.builds(ContentFilter, st.sampled_from([DIALECT_PREDICATES, DIALECT_XPATH, "urn:other"]), texts)
filters = st.builds(
    Filter,
    st.lists(st.sampled_from([A_OR_B, OF_ANOTHER]), max_size=2).map(tuple),
    st.lists(contents, max_size=2).map(tuple),
    st.lists(contents, max_size=1).map(tuple),
)
subscribes = st.builds(
    Subscribe,
    st.builds(
        EndpointReference,
        texts.filter(bool),
        st.sampled_from([(), (b'<x:k xmlns:x="urn:x">1</x:k>',)]),
        st.none(),
        st.sampled_from([(), (b'<x:more xmlns:x="urn:x"/>',)]),
    ),
    filters,
    st.sampled_from([None, datetime(2030, 1, 31, 12, tzinfo=UTC)]),
    st.sampled_from([SubscriptionPolicy(), SubscriptionPolicy(True, DeliveryPolicy(max_queue=5))]),
    st.sampled_from([(), (b'<x:y xmlns:x="urn:x"/>',)]),
)


def parsed(data: bytes) -> object:
    return parse_message(parse_xml(data, STORED_LIMITS), STORED_LIMITS)


def asking(expression: str, address: str = "http://consumer/1") -> Subscribe:
    content = ContentFilter(DIALECT_PREDICATES, expression)
    return Subscribe(EndpointReference(address), Filter((A_OR_B,), (content,)))


@given(subscribes)
@settings(max_examples=300, deadline=None)
def test_whatever_was_stored_comes_back_as_it_was(request: Subscribe) -> None:
    assert parse_stored_subscribe(encode_message(request)) == request


@given(subscribes.map(encode_message), st.integers(0), st.sampled_from(b'<>&;]a \t\r\x00\xc3"/:'))
@settings(max_examples=300, deadline=None)
def test_a_message_that_was_changed_is_read_or_refused_as_the_parser_does(
    data: bytes, at: int, byte: int
) -> None:
    at %= len(data)
    changed = data[:at] + bytes([byte]) + data[at + 1 :]
    try:
        expected = parsed(changed)
    except SoapFault as fault:
        with pytest.raises(type(fault)):
            parse_stored_subscribe(changed)
    else:
        assert parse_stored_subscribe(changed) == expected


@pytest.mark.parametrize("length", [MAX_CHARACTERS, MAX_CHARACTERS + 1])
def test_predicates_are_as_long_as_the_parser_allows(length: int) -> None:
    data = encode_message(asking("x" * length))
    if length > MAX_CHARACTERS:
        with pytest.raises(SoapFault, match=str(MAX_CHARACTERS)):
            parse_stored_subscribe(data)
    else:
        assert parse_stored_subscribe(data) == parsed(data)


def test_requests_that_differ_in_address_and_predicates_share_the_rest() -> None:
    one = parse_stored_subscribe(encode_message(asking("speed > 60 and lane < 2", "http://consumer/1")))
    other = parse_stored_subscribe(encode_message(asking("speed > 61", "http://consumer/2")))
    assert one.filter.content[0].expression == "speed > 60 and lane < 2"
    assert one.filter.topics is other.filter.topics
    assert one.policy is other.policy


def test_a_message_with_much_beside_its_predicates_is_read_without_being_kept() -> None:
    long = b'<x:y xmlns:x="urn:x">%b</x:y>' % (b"a" * LONGEST)
    stored = encode_message(Subscribe(EndpointReference("a"), extensions=(long,)))
    assert parse_stored_subscribe(stored) == parsed(stored)
    again = parse_stored_subscribe(stored), parse_stored_subscribe(stored)
    assert again[0].extensions is not again[1].extensions


def test_a_message_of_another_kind_is_refused() -> None:
    with pytest.raises(TypeError, match="Unsubscribe"):
        parse_stored_subscribe(encode_message(Unsubscribe()))
