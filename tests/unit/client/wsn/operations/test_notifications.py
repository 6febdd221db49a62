"""Notify: read as real publishers send it, written as every subscriber reads it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from hpwsn_client.wsn.operations.messages import (
    NOTIFICATION_CLOSE,
    NOTIFICATION_OPEN,
    NotificationMessage,
    encode_content,
    encode_notification_message,
    encode_notify,
    parse_notification_message,
    parse_notify,
    text_payload,
)
from hpwsn_client.wsn.operations.notifications import MOST_DECLARATIONS, MOST_REPEATED
from hpwsn_client.wsn.soap.addressing import EndpointReference, encode_epr
from hpwsn_client.wsn.soap.envelope import parse_envelope
from hpwsn_client.wsn.soap.faults import InvalidMessage, InvalidTopicExpressionFault, SoapFault
from hpwsn_client.wsn.soap.names import HPWSN, WSNT, wsnt
from hpwsn_client.wsn.soap.payload_xml import parse_message_xml
from hpwsn_client.wsn.soap.version import SoapVersion, encode_envelope
from hpwsn_client.wsn.soap.xml import Limits, parse_xml
from hpwsn_client.wsn.topics.topic_expressions import Topic, TopicExpression, parse_topic_expression
from tests.conftest import Oasis
from tests.unit.client.wsn import strategies

EXAMPLE = b"""<?xml version="1.0" encoding="UTF-8"?>
<soapenv:Envelope xmlns:soapenv="http://schemas.xmlsoap.org/soap/envelope/" xmlns:npex="urn:example:products">
  <soapenv:Header>
    <a:Action xmlns:a="http://www.w3.org/2005/08/addressing"
      >http://docs.oasis-open.org/wsn/bw-2/NotificationConsumer/Notify</a:Action>
  </soapenv:Header>
  <soapenv:Body>
    <Notify xmlns="http://docs.oasis-open.org/wsn/b-2">
      <NotificationMessage>
        <SubscriptionReference xmlns:b="http://www.w3.org/2005/08/addressing">
          <b:Address>http://www.example.org/SubscriptionManager</b:Address>
        </SubscriptionReference>
        <Topic Dialect="http://docs.oasis-open.org/wsn/t-1/TopicExpression/Concrete">
          npex:Orders/Shipped
        </Topic>
        <n:ProducerReference xmlns:n="http://docs.oasis-open.org/wsn/b-2">
          <b:Address xmlns:b="http://www.w3.org/2005/08/addressing">http://www.example.org/Producer</b:Address>
        </n:ProducerReference>
        <Message>
          <npex:Order number="7"><!-- stays
            --><npex:state type="npex:Shipped">out &amp; away</npex:state></npex:Order>
        </Message>
      </NotificationMessage>
      <n:NotificationMessage xmlns:n="http://docs.oasis-open.org/wsn/b-2">
        <n:Message><plain xmlns="">42</plain></n:Message>
      </n:NotificationMessage>
    </Notify>
  </soapenv:Body>
</soapenv:Envelope>
"""


def body_of(data: bytes) -> etree._Element:
    body = parse_envelope(data).body
    assert body is not None
    return body


def notify(inside: str) -> etree._Element:
    return parse_xml(f'<w:Notify xmlns:w="{WSNT}" xmlns:x="urn:x">{inside}</w:Notify>'.encode())


def message(inside: str) -> NotificationMessage:
    return parse_notify(notify(f"<w:NotificationMessage>{inside}</w:NotificationMessage>"))[0]


def payload(inside: str) -> bytes:
    return message(f"<w:Message>{inside}</w:Message>").payload


def canonical(data: bytes | etree._Element) -> str:
    """What the XML says, whatever its prefixes are called."""
    text = data if isinstance(data, bytes) else etree.tostring(data)
    return str(etree.canonicalize(text.decode(), rewrite_prefixes=True, qname_aware_attrs=["type"]))


def test_a_notify_as_real_publishers_send_it_is_read_whole() -> None:
    first, second = parse_notify(body_of(EXAMPLE))
    assert first.topic is not None
    assert first.topic.topic == Topic("urn:example:products", ("Orders", "Shipped"))
    assert first.subscription == EndpointReference("http://www.example.org/SubscriptionManager")
    assert first.producer == EndpointReference("http://www.example.org/Producer")
    assert canonical(first.payload) == canonical(
        b"""<o:Order xmlns:o="urn:example:products" number="7"
          ><o:state type="o:Shipped">out &amp; away</o:state></o:Order>"""
    )
    assert (second.topic, second.subscription, second.producer) == (None, None, None)
    plain = parse_xml(second.payload)
    assert (plain.tag, plain.text) == ("plain", "42")


def test_a_payload_stands_alone_with_the_namespaces_its_text_refers_to() -> None:
    data = body_of(
        f"""<s:Envelope xmlns:s="http://www.w3.org/2003/05/soap-envelope" xmlns:far="urn:far"
          xmlns="urn:default" xmlns:over="urn:outer"><s:Body>
          <w:Notify xmlns:w="{WSNT}" xmlns:near="urn:near" xmlns:over="urn:inner"><w:NotificationMessage>
          <w:Message><value ref="near:b">far:a over:c</value></w:Message>
          </w:NotificationMessage></w:Notify></s:Body></s:Envelope>""".encode()
    )
    root = etree.fromstring(parse_notify(data)[0].payload)
    assert root.tag == "{urn:default}value"
    scope = {prefix: root.nsmap.get(prefix) for prefix in ("far", "near", "over")}
    assert scope == {"far": "urn:far", "near": "urn:near", "over": "urn:inner"}


def test_a_text_becomes_an_element_of_ours() -> None:
    found = message("<w:Message> 着火了 &lt;1&gt; &amp;\n </w:Message>")
    assert found.payload == f'<hp:text xmlns:hp="{HPWSN}"> 着火了 &lt;1&gt; &amp;\n </hp:text>'.encode()
    assert found.text == " 着火了 <1> &\n "
    assert message("<w:Message><x:a>text</x:a></w:Message>").text is None


@given(
    st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs", "Cn"], include_characters="\r\n\t"))
)
def test_any_text_comes_out_as_it_went_in(text: str) -> None:
    sent = NotificationMessage(None, text_payload(text))
    assert sent.text == text
    assert parse_notify(parse_xml(encode_notify([sent])))[0].text == text


def test_white_space_around_the_payload_is_not_part_of_it() -> None:
    assert payload("\n  <x:a> b </x:a>\n") == b'<x:a xmlns:x="urn:x"> b </x:a>'


@pytest.mark.parametrize(
    "inside",
    [
        "<w:NotificationMessage/>",
        "<w:NotificationMessage><w:Topic>A</w:Topic></w:NotificationMessage>",
        "<w:NotificationMessage><w:Message/></w:NotificationMessage>",
        "<w:NotificationMessage><w:Message> \n </w:Message></w:NotificationMessage>",
        "<w:NotificationMessage><w:Message><a/><b/></w:Message></w:NotificationMessage>",
        "<w:NotificationMessage><w:Message>text<a/></w:Message></w:NotificationMessage>",
        "<w:NotificationMessage><w:Message><a/>text</w:Message></w:NotificationMessage>",
        "<w:NotificationMessage><w:Message><a/></w:Message><w:Message><b/></w:Message></w:NotificationMessage>",
        "<w:NotificationMessage><w:Message><a/></w:Message><w:Topic>A</w:Topic></w:NotificationMessage>",
        "<w:NotificationMessage><w:Topic>A</w:Topic><w:Topic>A</w:Topic><w:Message>a</w:Message></w:NotificationMessage>",
        "<w:NotificationMessage><w:Package/><w:Message>a</w:Message></w:NotificationMessage>",
        "<w:NotificationMessage><x:any/><w:Message>a</w:Message></w:NotificationMessage>",
        "<w:NotificationMessage>text<w:Message>a</w:Message></w:NotificationMessage>",
        "<w:NotificationMessage><w:ProducerReference/><w:Message>a</w:Message></w:NotificationMessage>",
        "<w:Message>a</w:Message>",
        "<plain/>",
        "text",
        "",
        " ",
        "<x:extension/>",
    ],
)
def test_what_the_schema_does_not_allow_is_refused(inside: str) -> None:
    with pytest.raises(InvalidMessage):
        parse_notify(notify(inside))


def test_a_bad_topic_has_its_own_fault() -> None:
    with pytest.raises(InvalidTopicExpressionFault):
        message("<w:Topic>z:A/B</w:Topic><w:Message>a</w:Message>")


def test_extensions_may_follow_the_messages_and_nothing_may_follow_them() -> None:
    one = "<w:NotificationMessage><w:Message>a</w:Message></w:NotificationMessage>"
    assert len(parse_notify(notify(f"{one}{one}<x:extension/>"))) == 2
    with pytest.raises(InvalidMessage):
        parse_notify(notify(f"{one}<x:extension/>{one}"))


def test_too_many_messages_are_refused_with_the_limit() -> None:
    one = "<w:NotificationMessage><w:Message>a</w:Message></w:NotificationMessage>"
    limits = Limits(messages=3)
    assert len(parse_notify(notify(one * 3), limits)) == 3
    with pytest.raises(InvalidMessage, match=r"4 .* 3 accepted"):
        parse_notify(notify(one * 4), limits)


def test_the_content_tells_where_the_payload_is() -> None:
    sent = NotificationMessage(
        TopicExpression.of(Topic("urn:p", ("A",))), b"<a>1</a>", EndpointReference("urn:x")
    )
    content, start, end = encode_content(sent)
    assert content[start:end] == b"<a>1</a>"
    parts = parse_xml(b"<parts>" + content + b"</parts>")
    assert [part.tag for part in parts] == [wsnt("Topic"), wsnt("ProducerReference"), wsnt("Message")]


@given(strategies.notifications, strategies.eprs)
def test_a_delivery_is_joined_from_bytes(sent: NotificationMessage, subscription: EndpointReference) -> None:
    content, start, end = encode_content(sent)
    reference = encode_epr(subscription, wsnt("SubscriptionReference"))
    joined = parse_xml(NOTIFICATION_OPEN + reference + content + NOTIFICATION_CLOSE)
    expected = NotificationMessage(sent.topic, sent.payload, sent.producer, subscription)
    assert parse_notification_message(joined) == expected
    assert content[start:end] == sent.payload


@given(st.lists(strategies.notifications, min_size=1, max_size=3), st.sampled_from(SoapVersion))
def test_a_notify_is_read_back_from_its_element_alone_and_in_an_envelope(
    sent: list[NotificationMessage], version: SoapVersion
) -> None:
    data = encode_notify(sent)
    assert parse_notify(parse_xml(data)) == tuple(sent)
    assert parse_notify(body_of(encode_envelope(version, data))) == tuple(sent)


def test_what_was_read_and_written_again_says_the_same() -> None:
    read = parse_notify(body_of(EXAMPLE))
    again = parse_notify(parse_message_xml(encode_notify(read)))
    assert again == read
    assert parse_xml(encode_notification_message(read[0])).tag == wsnt("NotificationMessage")


@given(strategies.payloads_with_our_prefixes)
def test_a_payload_that_uses_our_prefixes_says_the_same_and_settles_after_one_journey(data: bytes) -> None:
    once = journey(NotificationMessage(None, data))
    assert canonical(once.payload) == canonical(data)
    assert journey(once) == once


def test_a_text_that_mentions_our_prefixes_settles_after_one_journey() -> None:
    once = journey(NotificationMessage(None, b"<a>wsnt:Topic soap:Body</a>"))
    assert journey(once) == once
    assert parse_xml(once.payload).text == "wsnt:Topic soap:Body"


def journey(sent: NotificationMessage) -> NotificationMessage:
    return parse_notify(body_of(encode_envelope(SoapVersion.SOAP11, encode_notify([sent]))))[0]


def test_a_notify_is_written_as_typed_by_hand() -> None:
    topic = parse_topic_expression("npex:Orders/Shipped", None, {"npex": "urn:example:products"})
    sent = NotificationMessage(
        topic,
        b'<npex:Order xmlns:npex="urn:example:products" number="7"/>',
        EndpointReference("http://www.example.org/Producer"),
        EndpointReference("http://www.example.org/SubscriptionManager"),
    )
    expected = b"""<n:Notify xmlns:n="http://docs.oasis-open.org/wsn/b-2" xmlns:a="http://www.w3.org/2005/08/addressing"
      ><n:NotificationMessage
      ><n:SubscriptionReference><a:Address>http://www.example.org/SubscriptionManager</a:Address></n:SubscriptionReference
      ><n:Topic Dialect="http://docs.oasis-open.org/wsn/t-1/TopicExpression/Concrete">npex:Orders/Shipped</n:Topic
      ><n:ProducerReference><a:Address>http://www.example.org/Producer</a:Address></n:ProducerReference
      ><n:Message><o:Order xmlns:o="urn:example:products" number="7"></o:Order></n:Message
      ></n:NotificationMessage></n:Notify>"""
    written = encode_notify([sent])
    assert canonical(written) == canonical(expected)
    assert parse_xml(written)[0][1].nsmap["npex"] == "urn:example:products"


def test_a_notify_without_messages_cannot_be_written() -> None:
    with pytest.raises(ValueError, match="at least one"):
        encode_notify([])


@given(sent=st.lists(strategies.notifications, min_size=1, max_size=2))
def test_what_is_written_is_valid_by_the_schema(oasis: Oasis, sent: list[NotificationMessage]) -> None:
    # Payloads in the standard's own namespaces are none of its elements, so they are left out here.
    plain = [NotificationMessage(each.topic, b"<a/>", each.producer, each.subscription) for each in sent]
    oasis.validate(encode_notify(plain))


@given(st.text(max_size=20), st.text(max_size=20))
def test_any_text_anywhere_is_read_or_refused_with_a_fault(topic: str, content: str) -> None:
    root = etree.Element(wsnt("Notify"))
    one = etree.SubElement(root, wsnt("NotificationMessage"))
    try:
        etree.SubElement(one, wsnt("Topic")).text = topic
        etree.SubElement(one, wsnt("Message")).text = content
    except ValueError:
        return
    try:
        assert parse_notify(root)[0].text == content
    except SoapFault as fault:
        assert fault.reason


def test_namespaces_around_many_messages_are_bounded_at_their_edge():
    messages = 2000
    most = MOST_DECLARATIONS // messages
    one = "<w:NotificationMessage><w:Message><p/></w:Message></w:NotificationMessage>" * messages

    def notify(namespaces: int) -> etree._Element:
        declared = "".join(f' xmlns:n{number}="urn:{number}"' for number in range(namespaces - 1))
        return parse_xml(f'<w:Notify xmlns:w="{WSNT}"{declared}>{one}</w:Notify>'.encode())

    assert len(parse_notify(notify(most))) == messages
    with pytest.raises(InvalidMessage, match=f"{most + 1} namespaces"):
        parse_notify(notify(most + 1))


@pytest.mark.parametrize("attribute", ["xml:lang", "xml:base", "xmlns:long"])
def test_what_is_around_many_messages_cannot_fill_memory_with_its_copies(attribute: str) -> None:
    message = "<w:NotificationMessage><w:Message><a/></w:Message></w:NotificationMessage>"
    value = "x" * (MOST_REPEATED // 100)

    def notify(messages: int) -> etree._Element:
        around = f'<w:Notify xmlns:w="{WSNT}">{message * messages}</w:Notify>'
        return parse_message_xml(f'<around {attribute}="{value}">{around}</around>'.encode())[0]

    with pytest.raises(InvalidMessage, match="around 100 messages"):
        parse_notify(notify(100))
    assert len(parse_notify(notify(2))) == 2
