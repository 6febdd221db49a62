"""The original's four messages: as its clients write them, there and back, and whatever is none of them."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from lxml import etree

from hpwsn_client.wsn.formats.original import (
    CreateEndpoint,
    EndSubscription,
    Package,
    PackedNotification,
    Request,
    SubscribeEndpoint,
    as_standard,
    encode_process,
    encode_response,
    is_original,
    original_content,
    parse_process,
)
from hpwsn_client.wsn.operations import messages as m
from hpwsn_client.wsn.operations.notifications import NotificationMessage, encode_content, text_payload
from hpwsn_client.wsn.soap.addressing import EndpointReference
from hpwsn_client.wsn.soap.envelope import parse_envelope
from hpwsn_client.wsn.soap.faults import (
    ActionNotSupported,
    InvalidFilterFault,
    InvalidMessage,
    InvalidTopicExpressionFault,
    SoapFault,
)
from hpwsn_client.wsn.soap.names import DIALECT_SIMPLE, HPWSN, HPWSN_TOPICS, WSA, WSNT
from hpwsn_client.wsn.soap.version import SoapVersion, encode_envelope
from hpwsn_client.wsn.soap.xml import escape, parse_xml
from hpwsn_client.wsn.topics.topic_expressions import Topic, TopicExpression, parse_topic_expression
from tests.unit.client.wsn import strategies

ORG = "http://org.apache.servicemix.application"
CONSUMER = (
    "<wsnt:ConsumerReference><wsa:Address>endpoint:http://n/wsn/pullpoints/1</wsa:Address>"
    "</wsnt:ConsumerReference>"
)
EXPRESSION = f'<wsnt:TopicExpression Dialect="{DIALECT_SIMPLE}">\n A:B\n</wsnt:TopicExpression>'
FILTER = f"<wsnt:Filter>{EXPRESSION}</wsnt:Filter>"
RECEIVER = "<wsnt:SubscriberAddress>\n http://r/in\n</wsnt:SubscriberAddress>"
TOPIC = f'<wsnt:Topic Dialect="{DIALECT_SIMPLE}">\n A:B\n</wsnt:Topic>'
PACKAGE = (
    "<wsnt:Package><Identification>\n1235324366:344\n</Identification><Fragment>{}</Fragment></wsnt:Package>"
)
MESSAGE = "<wsnt:Message>a &lt; b</wsnt:Message>"


def wrapped(inside: str, to: str | None = None) -> Request:
    text = (
        f'<org:WsnProcess xmlns:org="{ORG}" xmlns:wsnt="{WSNT}" xmlns:wsa="{WSA}">{inside}</org:WsnProcess>'
    )
    return parse_process(parse_xml(text.encode()), to)


def notification(*parts: str) -> PackedNotification:
    request = wrapped(f"<wsnt:NotificationMessage>{''.join(parts)}</wsnt:NotificationMessage>")
    assert isinstance(request, PackedNotification)
    return request


def subscribe(*parts: str) -> SubscribeEndpoint:
    request = wrapped(f"<wsnt:Subscribe>{''.join(parts)}</wsnt:Subscribe>")
    assert isinstance(request, SubscribeEndpoint)
    return request


# As its clients write them


@pytest.mark.parametrize(
    ("inside", "name"),
    [
        ("<wsnt:CreatePullPoint/>", None),
        ("<wsnt:CreatePullPoint> </wsnt:CreatePullPoint>", None),
        ("<wsnt:CreatePullPoint>\n 京 one\n</wsnt:CreatePullPoint>", "京 one"),
    ],
)
def test_create_pull_point_is_empty_or_holds_a_name(inside: str, name: str | None) -> None:
    assert wrapped(inside) == CreateEndpoint(name)


def test_subscribe_has_endpoint_topic_and_receiver() -> None:
    request = subscribe(CONSUMER, FILTER, RECEIVER)
    assert (request.endpoint, request.receiver) == ("http://n/wsn/pullpoints/1", "http://r/in")
    assert (request.topic.topic, request.topic.dialect) == (Topic(HPWSN_TOPICS, ("A", "B")), DIALECT_SIMPLE)


@pytest.mark.parametrize(
    ("inside", "to"),
    [
        ("<wsnt:Unsubscribe/>", "http://n/s/1"),
        ("<wsnt:Unsubscribe><wsa:To>\n http://n/s/1 </wsa:To></wsnt:Unsubscribe>", None),
        ("<wsa:To>http://n/s/1</wsa:To><wsnt:Unsubscribe/>", None),
        ("<wsnt:Unsubscribe/><wsa:To>http://n/s/1</wsa:To>", "http://n/wsn/process"),
        ("<wsnt:Unsubscribe><wsa:To/></wsnt:Unsubscribe>", "http://n/s/1"),
    ],
)
def test_unsubscribe_takes_its_address_from_the_body_or_else_from_the_header(
    inside: str, to: str | None
) -> None:
    assert wrapped(inside, to) == EndSubscription("http://n/s/1")


def test_a_notification_has_a_topic_a_package_and_a_message() -> None:
    request = notification(TOPIC, PACKAGE.format("\n0-0-1-0\n"), MESSAGE)
    assert request.package == Package("1235324366:344", split=False, more=False, partial=True, index=0)
    assert request.message.text == "a < b"
    assert request.message.topic is not None
    assert request.message.topic.topic == Topic(HPWSN_TOPICS, ("A", "B"))


def test_a_package_may_be_missing_and_is_told_whole_from_split() -> None:
    assert notification(TOPIC, MESSAGE).package is None
    piece = notification(TOPIC, PACKAGE.format("1-1-0-99999"), MESSAGE).package
    assert piece == Package("1235324366:344", split=True, more=True, partial=False, index=99999)


def test_the_string_that_the_originals_interface_declares_is_read_like_the_elements() -> None:
    inner = (
        f'<wsnt:Subscribe xmlns:wsnt="{WSNT}" xmlns:wsa="{WSA}">{CONSUMER}{FILTER}{RECEIVER}</wsnt:Subscribe>'
    )
    assert wrapped(escape(inner)) == subscribe(CONSUMER, FILTER, RECEIVER)
    assert wrapped(f"<![CDATA[<?xml version='1.0' encoding='GBK'?>{inner}]]>").endpoint.endswith("/1")  # type: ignore[union-attr]


# There and back

_texts = st.text("abz 京<>&\"'\r\n\t]:/", min_size=1, max_size=8).map(
    lambda text: text.strip(" \t\r\n") or "x"
)
_one_topic = strategies.expressions().filter(lambda expression: expression.topic is not None)
_packages = st.builds(
    Package, st.just("") | _texts, st.booleans(), st.booleans(), st.booleans(), st.integers(0, 99999)
)
_payloads = strategies.payloads | strategies.payloads_with_our_prefixes | _texts.map(text_payload)
requests = st.one_of(
    st.builds(CreateEndpoint, st.none() | _texts),
    st.builds(SubscribeEndpoint, _texts, _one_topic, _texts),
    st.builds(EndSubscription, _texts),
    st.builds(
        PackedNotification,
        st.builds(NotificationMessage, strategies.expressions(), _payloads),
        st.none() | _packages,
    ),
)
_ORG_TOPIC = parse_topic_expression("org:A", DIALECT_SIMPLE, {})


def _semantics(request: Request) -> object:
    """A request without the prefixes that its payload took along from around it."""
    if isinstance(request, PackedNotification):
        payload = etree.canonicalize(request.message.payload.decode())
        return request.message.topic, payload, request.package
    return request


@given(requests)
@example(SubscribeEndpoint("e", _ORG_TOPIC, "r"))
@example(PackedNotification(NotificationMessage(_ORG_TOPIC, b"<a/>")))
def test_every_request_is_read_back_from_its_element_and_from_its_text(request: Request) -> None:
    data = encode_process(request)
    body = parse_envelope(encode_envelope(SoapVersion.SOAP11, data)).body
    assert body is not None
    assert _semantics(parse_process(body)) == _semantics(request)
    inner = etree.tostring(parse_xml(data)[0], encoding="unicode", with_tail=False)
    body.clear()
    body.text = inner
    assert _semantics(parse_process(body)) == _semantics(request)


def test_an_answer_is_the_standards_inside_the_response() -> None:
    answer = m.CreatePullPointResponse(EndpointReference("http://n/p"))
    element = parse_xml(encode_response(answer))
    assert element.tag == f"{{{ORG}}}WsnProcessResponse"
    assert [m.parse_message(child) for child in element] == [answer]


# None of the four


@pytest.mark.parametrize(
    ("inside", "fault", "words"),
    [
        ("", InvalidMessage, "0 requests"),
        ("hello", InvalidMessage, "hello"),
        ("<!-- nothing -->", InvalidMessage, "0 requests"),
        ("<wsnt:Unsubscribe/><wsnt:CreatePullPoint/>", InvalidMessage, "2 requests"),
        ("<wsnt:Notify/>", ActionNotSupported, "Notify"),
        ("&lt;other/&gt;", ActionNotSupported, "other"),
        ("<wsnt:CreatePullPoint><name/></wsnt:CreatePullPoint>", InvalidMessage, "name"),
        ("<wsnt:Unsubscribe/>", InvalidMessage, "wsa:To"),
        (
            "<wsnt:Unsubscribe><wsa:To>a</wsa:To><wsa:To>b</wsa:To></wsnt:Unsubscribe>",
            InvalidMessage,
            "one wsa:To",
        ),
        (f"<wsnt:Subscribe>{FILTER}{RECEIVER}</wsnt:Subscribe>", InvalidMessage, "ConsumerReference"),
        (f"<wsnt:Subscribe>{CONSUMER}{RECEIVER}</wsnt:Subscribe>", InvalidMessage, "Filter"),
        (f"<wsnt:Subscribe>{CONSUMER}{FILTER}</wsnt:Subscribe>", InvalidMessage, "SubscriberAddress"),
        (
            f"<wsnt:Subscribe>{CONSUMER}{FILTER}<wsnt:SubscriberAddress/></wsnt:Subscribe>",
            InvalidMessage,
            "SubscriberAddress is empty",
        ),
        (
            f"<wsnt:Subscribe>{CONSUMER}<wsnt:Filter/>{RECEIVER}</wsnt:Subscribe>",
            InvalidMessage,
            "one TopicExpression",
        ),
        (
            f"<wsnt:Subscribe>{CONSUMER}<wsnt:Filter><x/></wsnt:Filter>{RECEIVER}</wsnt:Subscribe>",
            InvalidFilterFault,
            "'x'",
        ),
        (
            f"<wsnt:Subscribe>{CONSUMER}<wsnt:Filter><wsnt:TopicExpression>A//.</wsnt:TopicExpression>"
            f"</wsnt:Filter>{RECEIVER}</wsnt:Subscribe>",
            InvalidTopicExpressionFault,
            "name one",
        ),
        (f"<wsnt:NotificationMessage>{MESSAGE}</wsnt:NotificationMessage>", InvalidMessage, "no Topic"),
        (f"<wsnt:NotificationMessage>{TOPIC}</wsnt:NotificationMessage>", InvalidMessage, "no Message"),
    ],
)
def test_what_is_no_request_of_the_original_is_refused_in_plain_words(
    inside: str, fault: type[SoapFault], words: str
) -> None:
    with pytest.raises(fault, match=words):
        wrapped(inside)


@pytest.mark.parametrize(
    "fragment", ["", "0", "0-0-1", "2-0-1-0", "0-0-1-100000", "0-0-1-x", "0-0-1-0-0", "1-1--1-0"]
)
def test_a_fragment_of_another_form_is_refused(fragment: str) -> None:
    with pytest.raises(InvalidMessage, match="split-more-partial-offset"):
        notification(TOPIC, PACKAGE.format(fragment), MESSAGE)


@pytest.mark.parametrize(
    "inside", ["", "<Fragment>0-0-1-0</Fragment>", "<Identification/><Fragment/><Fragment/>", "text"]
)
def test_a_package_of_other_parts_is_refused(inside: str) -> None:
    with pytest.raises(InvalidMessage, match="Package"):
        notification(TOPIC, f"<wsnt:Package>{inside}</wsnt:Package>", MESSAGE)


def test_another_wrapper_is_refused() -> None:
    with pytest.raises(ActionNotSupported, match="WsnProcess"):
        parse_process(parse_xml(f'<w:Unsubscribe xmlns:w="{WSNT}"/>'.encode()))


_tags = st.sampled_from(
    [
        *("WsnProcess", "CreatePullPoint", "Subscribe", "Unsubscribe", "NotificationMessage", "Notify", "To"),
        *("ConsumerReference", "Address", "Filter", "TopicExpression", "SubscriberAddress"),
        *("Topic", "Package", "Identification", "Fragment", "Message"),
    ]
)
_prefixes = st.sampled_from(["", "wsnt:", "wsa:", "org:"])
_garbage = st.recursive(
    st.text(" a:/-01<&\n京", max_size=6).map(escape) | st.sampled_from(["A:B", "0-0-1-0", "&lt;a/&gt;"]),
    lambda inner: st.builds(
        lambda prefix, tag, parts: f"<{prefix}{tag}>{''.join(parts)}</{prefix}{tag}>",
        _prefixes,
        _tags,
        st.lists(inner, max_size=4),
    ),
    max_leaves=12,
)


@given(st.lists(_garbage, max_size=3), st.none() | _texts)
def test_garbage_is_a_request_or_a_fault(parts: list[str], to: str | None) -> None:
    try:
        request = wrapped("".join(parts), to)
    except SoapFault:
        return
    assert isinstance(request, Request)


# What the standard's messages say of it


@given(st.builds(SubscribeEndpoint, _texts, _one_topic, _texts), strategies.topics)
def test_the_standards_subscribe_means_the_topic_and_all_below_it_and_is_marked_for_good(
    request: SubscribeEndpoint, other: Topic
) -> None:
    standard = as_standard(request)
    stored = m.parse_subscribe(parse_xml(m.encode_subscribe(standard)))
    assert stored == standard
    assert is_original(stored)
    assert stored.consumer.address == request.receiver
    topic = request.topic.topic
    assert topic is not None
    below = Topic(topic.namespace, (*topic.path, "below", "that"))
    (expression,) = stored.filter.topics
    for simple_subtree in (True, False):
        assert expression.matches(topic, simple_subtree)
        assert expression.matches(below, simple_subtree)
        assert expression.matches(other, simple_subtree) == topic.covers(other)


def test_spellings_of_one_topic_are_the_same_request_and_other_subscribes_are_not_marked() -> None:
    spellings = [
        TopicExpression.of(Topic(HPWSN_TOPICS, ("A", "B")), DIALECT_SIMPLE),
        parse_topic_expression("A/B", None, {}),
        parse_topic_expression("t:A/B", None, {"t": HPWSN_TOPICS}),
    ]
    assert len({as_standard(SubscribeEndpoint("e", topic, "r")) for topic in spellings}) == 1
    assert not is_original(m.Subscribe(EndpointReference("r"), extensions=(b'<x:y xmlns:x="urn:x"/>',)))


@given(_texts)
def test_text_stays_text_for_the_originals_receivers(text: str) -> None:
    topic = TopicExpression.of(Topic(HPWSN_TOPICS, ("A",)))
    content = original_content(*encode_content(NotificationMessage(topic, text_payload(text))))
    message = parse_xml(b"<r>" + content + b"</r>")[-1]
    assert (len(message), message.text) == (0, text)


@pytest.mark.parametrize(
    ("payload", "written"),
    [
        (b"<text>1</text>", b"<text>1</text>"),
        (b"<textual/>", b"<textual/>"),
        (f'<t:text xmlns:t="{HPWSN}">a &gt; b</t:text>'.encode(), b"a &gt; b"),
        (f'<text xmlns="{HPWSN}" xmlns:w="urn:w">w:x</text>'.encode(), b"w:x"),
        (
            f'<hp:text xmlns:hp="{HPWSN}"><b/></hp:text>'.encode(),
            f'<hp:text xmlns:hp="{HPWSN}"><b/></hp:text>'.encode(),
        ),
    ],
)
def test_only_the_element_that_carries_text_is_taken_off(payload: bytes, written: bytes) -> None:
    content, start, end = encode_content(NotificationMessage(None, payload))
    assert original_content(content, start, end) == content[:start] + written + content[end:]
