"""Endpoint references and addressing headers, there and back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpwsn_client.wsn.soap.addressing import (
    NO_ADDRESSING,
    Addressing,
    EndpointReference,
    encode_addressing,
    encode_epr,
    parse_addressing,
    parse_epr,
    reference_parameter_headers,
)
from hpwsn_client.wsn.soap.faults import InvalidMessage, MalformedXml
from hpwsn_client.wsn.soap.names import WSA, WSA_ANONYMOUS, wsa, wsnt
from hpwsn_client.wsn.soap.xml import escape, parse_xml

TEXT = st.text(
    st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="\ufffe\uffff"), min_size=1
).filter(lambda text: text == text.strip(" \t\r\n"))
URIS = st.sampled_from(["http://h", "urn:uuid:1", "https://h:1/p?a=b&c='d'#京", WSA_ANONYMOUS])
FRAGMENTS = st.lists(
    st.builds(
        lambda name, prefix, text: (
            f'<{prefix}{name} xmlns{":p" * bool(prefix)}="urn:x">{escape(text)}</{prefix}{name}>'.encode()
        ),
        st.sampled_from(["id", "Key", "é"]),
        st.sampled_from(["", "p:"]),
        TEXT,
    ),
    max_size=3,
).map(tuple)
METADATA = f'<wsa:Metadata xmlns:wsa="{WSA}"><x/></wsa:Metadata>'.encode()


def references(addresses: st.SearchStrategy[str]) -> st.SearchStrategy[EndpointReference]:
    return st.builds(EndpointReference, addresses, FRAGMENTS, st.sampled_from([None, METADATA]), FRAGMENTS)


def headings(texts: st.SearchStrategy[str]) -> st.SearchStrategy[Addressing]:
    text, epr = st.none() | texts, st.none() | references(texts)
    return st.builds(Addressing, text, text, text, text, epr, epr, epr)


def wrapped(*headers: bytes) -> list:  # type: ignore[type-arg]
    return list(parse_xml(b'<soap:Header xmlns:soap="urn:soap">' + b"".join(headers) + b"</soap:Header>"))


@given(
    references(TEXT),
    st.sampled_from([wsa("EndpointReference"), wsnt("ConsumerReference"), "{urn:y/z}r", "r"]),
)
def test_endpoint_reference_survives_writing_and_reading(epr: EndpointReference, tag: str) -> None:
    element = parse_xml(encode_epr(epr, tag))
    assert element.tag == tag
    assert parse_epr(element) == epr


@given(headings(TEXT))
def test_addressing_headers_survive_writing_and_reading(addressing: Addressing) -> None:
    assert parse_addressing(wrapped(*encode_addressing(addressing))) == addressing


@given(references(URIS), headings(URIS))
def test_what_is_written_is_what_the_schema_wants(oasis, epr: EndpointReference, headers: Addressing) -> None:  # type: ignore[no-untyped-def]
    oasis.validate(encode_epr(epr, wsnt("ConsumerReference")))
    for header in encode_addressing(headers):
        oasis.validate(header)


def test_endpoint_reference_keeps_all_that_comes_with_the_address() -> None:
    element = parse_xml(
        f"""<c:Where xmlns:c="urn:c" xmlns:a="{WSA}" xmlns:k="urn:k" xmlns:unused="urn:u">
          <a:Address> http://host/path?q=1&amp;r=2 </a:Address>
          <a:ReferenceParameters><k:id t="k:x">1</k:id><plain/></a:ReferenceParameters>
          <a:Metadata><k:m/></a:Metadata>
          <k:extra/>
        </c:Where>""".encode()
    )
    assert parse_epr(element) == EndpointReference(
        "http://host/path?q=1&r=2",
        (b'<k:id xmlns:k="urn:k" t="k:x">1</k:id>', b"<plain/>"),
        f'<a:Metadata xmlns:a="{WSA}" xmlns:k="urn:k"><k:m/></a:Metadata>'.encode(),
        (b'<k:extra xmlns:k="urn:k"/>',),
    )


@pytest.mark.parametrize(
    "content",
    [
        "",
        "<a:Address/>",
        "<a:Address> \n </a:Address>",
        "<Address>x</Address>",
        "x",
        "<a:Address>x</a:Address>" * 2,
    ],
)
def test_endpoint_reference_without_one_address_is_invalid(content: str) -> None:
    with pytest.raises(InvalidMessage, match=r"\{urn:x\}r must have one wsa:Address"):
        parse_epr(parse_xml(f'<r xmlns="urn:x" xmlns:a="{WSA}">{content}</r>'.encode()))


def test_headers_of_others_and_empty_headers_say_nothing() -> None:
    headers = wrapped(b"<Action>x</Action>", f'<To xmlns="{WSA}"/>'.encode())
    assert parse_addressing(headers) == NO_ADDRESSING
    assert parse_addressing([]) is NO_ADDRESSING
    assert encode_addressing(NO_ADDRESSING) == ()


def test_of_a_header_that_comes_twice_the_first_counts() -> None:
    first = f'<a:MessageID xmlns:a="{WSA}">urn:1</a:MessageID>'.encode()
    assert parse_addressing(wrapped(first, first.replace(b"1<", b"2<"))).message_id == "urn:1"


def test_only_a_reply_relates_to_a_request() -> None:
    other = f'<a:RelatesTo xmlns:a="{WSA}" RelationshipType="urn:other">1</a:RelatesTo>'.encode()
    reply = f'<a:RelatesTo xmlns:a="{WSA}" RelationshipType="{WSA}/reply">2</a:RelatesTo>'.encode()
    assert parse_addressing(wrapped(other, reply, other)).relates_to == "2"


def test_broken_endpoint_reference_in_a_header_is_invalid() -> None:
    with pytest.raises(InvalidMessage, match="ReplyTo must have one wsa:Address"):
        parse_addressing(wrapped(f'<a:ReplyTo xmlns:a="{WSA}"/>'.encode()))


def test_headers_are_written_in_the_order_of_the_standard() -> None:
    addressing = Addressing("act", "to", "id", "rel", EndpointReference(WSA_ANONYMOUS))
    tags = [header.tag for header in wrapped(*encode_addressing(addressing))]
    assert tags == [wsa("To"), wsa("Action"), wsa("MessageID"), wsa("RelatesTo"), wsa("ReplyTo")]


@pytest.mark.parametrize(
    "parameter",
    [
        b"<plain/>",
        b'<k:id xmlns:k="urn:k" t="k:x">1</k:id>',
        b'<id xmlns="urn:k" xmlns:wsa="urn:not-addressing"><wsa:x/></id>',
        f'<id xmlns:z="{WSA}" z:IsReferenceParameter="false"/>'.encode(),
    ],
)
def test_reference_parameters_become_marked_headers(parameter: bytes) -> None:
    (header,) = reference_parameter_headers(EndpointReference("http://h", (parameter,)))
    marked, original = parse_xml(header), parse_xml(parameter)
    assert marked.attrib.pop(wsa("IsReferenceParameter")) == "true"
    assert marked.tag == original.tag
    assert marked.text == original.text
    assert [child.tag for child in marked] == [child.tag for child in original]


def test_reference_parameter_that_is_no_xml_is_refused() -> None:
    with pytest.raises(MalformedXml):
        reference_parameter_headers(EndpointReference("http://h", (b"<a>",)))
