"""What users pass: endpoints, topics, payloads, lifetimes, and the mistakes among them."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from hpwsn_client import EndpointReference, Notification, Receiver, Topic, TopicExpression
from hpwsn_client.arguments import (
    concrete_topic,
    content_filter,
    endpoint,
    notification_message,
    payload_bytes,
    termination,
    topic_expression,
)
from hpwsn_client.wsn.operations.notifications import text_payload
from hpwsn_client.wsn.soap.faults import InvalidTopicExpressionFault
from hpwsn_client.wsn.soap.names import (
    DIALECT_CONCRETE,
    DIALECT_FULL,
    DIALECT_SIMPLE,
    DIALECT_XPATH,
    HPWSN_TOPICS,
    hp,
)
from hpwsn_client.wsn.soap.times import Duration
from hpwsn_client.wsn.soap.xml import parse_xml

ABC = Topic(HPWSN_TOPICS, ("A", "B", "C"))
FAR = Topic("urn:far", ("A", "B"))


def test_an_endpoint_is_a_url_a_reference_or_anything_with_one():
    reference = EndpointReference("http://here/x")
    assert endpoint("http://here/x") == reference
    assert endpoint(reference) is reference
    assert endpoint(Receiver(public_url="http://here/x")) == reference


@pytest.mark.parametrize(
    "url", ["", "localhost:8080", "ftp://here/", "http://", "/wsn", "http://[::1/wsn", "http://h:80x"]
)
def test_what_is_no_http_url_is_refused_with_the_value_and_an_example(url):
    with pytest.raises(ValueError, match="write it like http://") as caught:
        endpoint(url)
    assert repr(url) in str(caught.value)


@pytest.mark.parametrize("topic", ["A:B:C", "A/B/C", ABC, TopicExpression.of(ABC), "{urn:hpwsn:topics}A:B:C"])
def test_one_topic_is_published_on_however_it_is_written(topic):
    assert concrete_topic(topic).topic == ABC
    assert concrete_topic(topic).dialect == DIALECT_CONCRETE


@pytest.mark.parametrize("topic", ["A", Topic.parse("A"), TopicExpression.of(Topic.parse("A")), "{urn:x}A"])
def test_a_topic_of_one_name_is_simple_which_every_broker_knows(topic):
    assert concrete_topic(topic).dialect == DIALECT_SIMPLE
    assert concrete_topic(topic).topic.path == ("A",)


@pytest.mark.parametrize("topic", ["{urn:far}A:B", FAR, "f:A/B"])
def test_a_topic_of_another_namespace_keeps_it(topic):
    assert concrete_topic(topic, {"f": "urn:far"}).topic == FAR


@pytest.mark.parametrize(
    "topic", ["A/*", "A|B", "//A", "A b", "", "A::B", TopicExpression.of(ABC, DIALECT_FULL)]
)
def test_only_one_topic_can_be_published_on(topic):
    if isinstance(topic, TopicExpression):
        assert concrete_topic(topic).topic == ABC
        return
    with pytest.raises(InvalidTopicExpressionFault):
        concrete_topic(topic)
    with pytest.raises(InvalidTopicExpressionFault):
        concrete_topic(topic, {"p": "urn:p"})


@pytest.mark.parametrize("topic", ["A:B:C", ABC, "{urn:hpwsn:topics}A:B:C"])
def test_a_plain_topic_is_subscribed_to_with_its_subtree(topic):
    below = Topic(HPWSN_TOPICS, ("A", "B", "C", "D"))
    assert topic_expression(topic).matches(below)
    assert not topic_expression(topic, DIALECT_CONCRETE).matches(below)


def test_a_full_expression_keeps_its_wildcards_and_prefixes():
    expression = topic_expression("f:A/*", None, {"f": "urn:far"})
    assert expression.dialect == DIALECT_FULL
    assert expression.matches(FAR)


def test_text_that_begins_with_a_bracket_is_xml_and_other_text_is_text():
    assert parse_xml(payload_bytes("  <a><b>1</b></a>\n")).findtext("b") == "1"
    assert parse_xml(payload_bytes("1 < 2 & 3")).text == "1 < 2 & 3"
    assert parse_xml(payload_bytes("x")).tag == hp("text")


def test_a_declared_encoding_counts_for_bytes_and_not_for_text():
    declared = '<?xml version="1.0" encoding="iso-8859-1"?><a>é</a>'
    assert payload_bytes(declared) == payload_bytes(declared.encode("iso-8859-1")) == "<a>é</a>".encode()


def test_an_element_travels_with_the_namespaces_in_its_scope_and_without_its_tail():
    inner = etree.fromstring('<x xmlns:p="urn:p"><y type="p:q"/>tail</x>')[0]
    sent = parse_xml(payload_bytes(inner))
    assert sent.nsmap["p"] == "urn:p"
    assert sent.tail is None


@pytest.mark.parametrize(
    "payload", ["<a>", "<a/><b/>", "< 3", "<!DOCTYPE a><a/>", b"text", b"", "<a>&x;</a>"]
)
def test_xml_that_is_not_well_formed_is_a_value_error_that_shows_it(payload):
    with pytest.raises(ValueError, match=r"cannot be sent as XML: .+"):
        payload_bytes(payload)


@pytest.mark.parametrize("payload", [None, 3, {"a": 1}, etree.Comment("x")])
def test_other_things_are_no_payload(payload):
    with pytest.raises(TypeError, match="the payload is a"):
        payload_bytes(payload)


def test_a_character_that_xml_cannot_carry_is_named():
    with pytest.raises(ValueError, match=r"U\+0000"):
        text_payload("ab\0")


@given(
    st.text(
        st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="\ufffe\uffff")
        | st.sampled_from("\r\n\t<&>]")
    )
)
def test_any_text_comes_out_as_it_went_in(text):
    notification = Notification("A", text_payload(text))
    assert notification.is_text
    assert notification.text == text


def test_the_text_of_an_xml_payload_is_its_source():
    notification = Notification("A", payload_bytes("<a>é</a>"))
    assert (notification.is_text, notification.text) == (False, "<a>é</a>")
    assert notification.element is notification.element


def test_lifetimes_are_seconds_spans_moments_or_for_ever():
    moment = datetime(2030, 1, 1, tzinfo=UTC)
    assert termination(None) is None
    assert termination(moment) == moment
    assert termination(90) == termination(timedelta(seconds=90)) == Duration(0, 90)


@pytest.mark.parametrize("expires", [datetime(2030, 1, 1), float("inf"), float("nan")])
def test_a_moment_without_a_zone_and_an_endless_number_are_refused(expires):
    with pytest.raises(ValueError, match=r"time zone|is not finite"):
        termination(expires)


def test_a_content_filter_is_xpath_with_its_prefixes():
    made = content_filter("p:a > 1", {"q": "urn:q", "p": "urn:p"})
    assert (made.dialect, made.expression) == (DIALECT_XPATH, "p:a > 1")
    assert dict(made.namespaces)["p"] == "urn:p"
    assert content_filter(made) is made


def test_a_message_carries_topic_payload_and_producer():
    message = notification_message("A:B", "x", producer="http://me/")
    assert str(message.topic.topic) == "A:B"
    assert message.producer == EndpointReference("http://me/")
    assert notification_message(None, "x").topic is None
