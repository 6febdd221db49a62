"""Envelopes in both versions of SOAP, whole, broken and cut."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpwsn_client.wsn.soap.addressing import Addressing, EndpointReference, encode_addressing
from hpwsn_client.wsn.soap.envelope import (
    SoapVersion,
    check_must_understand,
    encode_envelope,
    parse_envelope,
    parse_reply,
)
from hpwsn_client.wsn.soap.faults import (
    FaultCode,
    InvalidMessage,
    MalformedXml,
    MustUnderstandFault,
    NotSoap,
    SoapFault,
    TooLarge,
)
from hpwsn_client.wsn.soap.names import ACTION_NOTIFY, SOAP11, SOAP12, WSA
from hpwsn_client.wsn.soap.xml import Limits

BOTH = pytest.mark.parametrize("version", list(SoapVersion))
ADDRESSING = Addressing(ACTION_NOTIFY, "http://h/wsn", "urn:uuid:1", None, EndpointReference("http://me"))
HEADER = b'<x:Key xmlns:x="urn:x">1</x:Key>'


def envelope(version: SoapVersion, content: str) -> bytes:
    return f'<s:Envelope xmlns:s="{version.namespace}">{content}</s:Envelope>'.encode()


@BOTH
def test_envelope_survives_writing_and_reading(version: SoapVersion) -> None:
    data = encode_envelope(version, b'<m xmlns="urn:m">x</m>', (HEADER, *encode_addressing(ADDRESSING)))
    read = parse_envelope(data)
    assert read.version is version
    assert read.body is not None
    assert (read.body.tag, read.body.text) == ("{urn:m}m", "x")
    assert read.addressing == ADDRESSING
    assert len(read.headers) == 5
    assert read.header("{urn:x}Key") is read.headers[0]
    assert read.header("{urn:x}Other") is None


@BOTH
def test_envelope_without_header_or_body_content_is_whole(version: SoapVersion) -> None:
    read = parse_envelope(encode_envelope(version, b""))
    assert (read.headers, read.body, read.addressing) == ((), None, Addressing())


def test_versions_know_their_media_types() -> None:
    assert (SoapVersion.SOAP11.namespace, SoapVersion.SOAP12.namespace) == (SOAP11, SOAP12)
    assert SoapVersion.SOAP11.content_type == "text/xml; charset=utf-8"
    assert SoapVersion.SOAP12.content_type == "application/soap+xml; charset=utf-8"


@BOTH
def test_envelope_comes_in_any_accepted_encoding(version: SoapVersion) -> None:
    text = encode_envelope(version, "<m>é</m>".encode()).decode()
    for codec in ("latin-1", "utf-16", "utf-8-sig"):
        body = parse_envelope(text.encode(codec), charset=codec if codec == "latin-1" else None).body
        assert body is not None
        assert body.text == "é"


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b'<Envelope xmlns="urn:future-soap"/>', FaultCode.VERSION_MISMATCH),
        (b"<Envelope/>", FaultCode.SENDER),
        (b"<html/>", FaultCode.SENDER),
        (f'<s:Body xmlns:s="{SOAP11}"/>'.encode(), FaultCode.SENDER),
    ],
)
def test_other_documents_are_not_soap(data: bytes, code: FaultCode) -> None:
    with pytest.raises(NotSoap) as caught:
        parse_envelope(data)
    assert caught.value.code is code
    assert caught.value.version is None


@BOTH
@pytest.mark.parametrize(
    "content",
    [
        "",
        "<s:Header/>",
        "<Body/>",
        "<s:Body/><s:Body/>",
        "<s:Body><a/><b/></s:Body>",
        f'<s:Header><a:ReplyTo xmlns:a="{WSA}"/></s:Header><s:Body><a/></s:Body>',
    ],
)
def test_envelope_against_the_schema_is_invalid_in_its_own_version(
    version: SoapVersion, content: str
) -> None:
    with pytest.raises(InvalidMessage) as caught:
        parse_envelope(envelope(version, content))
    assert caught.value.version is version


def test_limits_hold_for_envelopes() -> None:
    data = encode_envelope(SoapVersion.SOAP11, b"<a><b><c/></b></a>")
    assert parse_envelope(data, Limits(depth=5)).body is not None
    with pytest.raises(MalformedXml, match="deeper than the 4 levels"):
        parse_envelope(data, Limits(depth=4))
    with pytest.raises(TooLarge):
        parse_reply(data, Limits(body=100))


@BOTH
def test_envelope_cut_anywhere_is_refused(version: SoapVersion) -> None:
    data = encode_envelope(version, "<m>京é</m>".encode(), (HEADER, *encode_addressing(ADDRESSING)))
    for end in range(len(data)):
        with pytest.raises(SoapFault):
            parse_envelope(data[:end])


@given(st.binary(max_size=300))
def test_garbage_gives_nothing_but_soap_faults(data: bytes) -> None:
    with suppress(SoapFault):
        parse_envelope(data)


@given(
    st.sampled_from(SoapVersion), st.binary(min_size=1, max_size=4), st.integers(0, 600), st.integers(0, 4)
)
def test_damaged_envelope_gives_nothing_but_soap_faults(
    version: SoapVersion, damage: bytes, at: int, cut: int
) -> None:
    data = encode_envelope(version, b"<m/>", (HEADER, *encode_addressing(ADDRESSING)))
    with suppress(SoapFault):
        parse_reply(data[:at] + damage + data[at + cut :])


@BOTH
def test_reply_that_is_no_fault_is_given(version: SoapVersion) -> None:
    body = parse_reply(encode_envelope(version, b"<ok/>")).body
    assert body is not None
    assert body.tag == "ok"
    assert parse_reply(encode_envelope(version, b"")).body is None


def test_fault_of_the_other_version_is_only_a_body() -> None:
    body = parse_reply(encode_envelope(SoapVersion.SOAP11, f'<Fault xmlns="{SOAP12}"/>'.encode())).body
    assert body is not None


def header(version: SoapVersion, flag: str, role: str | None = None, name: str = "x:Key") -> bytes:
    attribute = "actor" if version is SoapVersion.SOAP11 else "role"
    where = "" if role is None else f' s:{attribute}="{role}"'
    namespaces = f'xmlns:s="{version.namespace}" xmlns:x="urn:x" xmlns:a="{WSA}"'
    return f'<{name} {namespaces} s:mustUnderstand="{flag}"{where}>v</{name}>'.encode()


@BOTH
@pytest.mark.parametrize("flag", ["1", "true", " 1 "])
@pytest.mark.parametrize("role", [None, "", "next", "ultimate"])
def test_header_for_us_must_be_understood(version: SoapVersion, flag: str, role: str | None) -> None:
    ours = {
        "next": "http://schemas.xmlsoap.org/soap/actor/next"
        if version is SoapVersion.SOAP11
        else f"{SOAP12}/role/next",
        "ultimate": "" if version is SoapVersion.SOAP11 else f"{SOAP12}/role/ultimateReceiver",
    }
    block = header(version, flag, ours.get(role or "", role))
    message = parse_envelope(encode_envelope(version, b"<m/>", (block, HEADER)))
    check_must_understand(message, {"{urn:x}Key"})
    with pytest.raises(MustUnderstandFault, match=r"\{urn:x\}Key") as caught:
        check_must_understand(message, ())
    assert caught.value.headers == ("{urn:x}Key",)
    assert caught.value.version is version


@BOTH
def test_headers_for_others_addressing_and_optional_ones_pass(version: SoapVersion) -> None:
    blocks = (
        header(version, "1", "http://some.where/else"),
        header(version, "0"),
        header(version, "false"),
        header(version, "1", name="a:To"),
        header(version, "1", name="a:Action"),
        HEADER,
    )
    check_must_understand(parse_envelope(encode_envelope(version, b"<m/>", blocks)), ())
