"""Every fault there and back in both versions of SOAP, and its detail against the normative schemas."""

from contextlib import suppress
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpwsn_client.wsn.soap import faults
from hpwsn_client.wsn.soap.addressing import EndpointReference
from hpwsn_client.wsn.soap.envelope import SoapVersion, parse_envelope, parse_reply
from hpwsn_client.wsn.soap.faults import (
    ActionNotSupported,
    Busy,
    FaultCode,
    InvalidFilterFault,
    InvalidMessage,
    MalformedXml,
    MustUnderstandFault,
    NotSoap,
    PauseFailedFault,
    SoapFault,
    TooLarge,
    TopicNotSupportedFault,
    UnacceptableInitialTerminationTimeFault,
    UnacceptableTerminationTimeFault,
    UnrecognizedPolicyRequestFault,
    UnsupportedPolicyRequestFault,
    WsnFault,
    encode_fault,
    parse_fault,
)
from hpwsn_client.wsn.soap.names import (
    SOAP12,
    WSA,
    WSN_BR,
    WSNT,
    WSRF_BF,
    WSRF_R,
    WSRF_RL,
    WSRF_RP,
    wsa,
    wsnt,
)
from hpwsn_client.wsn.soap.xml import parse_xml

NOW = datetime(2030, 1, 31, 12, tzinfo=UTC)
LATER = datetime(2031, 1, 31, 12, 0, 0, 500_000, tzinfo=UTC)
BOTH = pytest.mark.parametrize("version", list(SoapVersion))
EVERY = pytest.mark.parametrize("kind", WsnFault.by_element.values(), ids=lambda kind: kind.__name__)

NAMES = {
    WSRF_R: "ResourceUnknownFault",
    WSRF_RP: "InvalidResourcePropertyQNameFault UnknownQueryExpressionDialectFault "
    "InvalidQueryExpressionFault QueryEvaluationErrorFault",
    WSRF_RL: "UnableToSetTerminationTimeFault TerminationTimeChangeRejectedFault ResourceNotDestroyedFault",
    WSN_BR: "PublisherRegistrationRejectedFault PublisherRegistrationFailedFault ResourceNotDestroyedFault",
    WSNT: "InvalidFilterFault TopicExpressionDialectUnknownFault InvalidTopicExpressionFault "
    "TopicNotSupportedFault MultipleTopicsSpecifiedFault NoCurrentMessageOnTopicFault "
    "InvalidProducerPropertiesExpressionFault InvalidMessageContentExpressionFault "
    "UnrecognizedPolicyRequestFault UnsupportedPolicyRequestFault NotifyMessageNotSupportedFault "
    "UnacceptableInitialTerminationTimeFault SubscribeCreationFailedFault UnableToCreatePullPointFault "
    "UnableToGetMessagesFault UnableToDestroyPullPointFault UnacceptableTerminationTimeFault "
    "UnableToDestroySubscriptionFault PauseFailedFault ResumeFailedFault",
}

OWN = {
    InvalidFilterFault: {"unknown_filters": ("{urn:f}Mine", "Plain", wsnt("Other"))},
    UnrecognizedPolicyRequestFault: {"unrecognized": ("{urn:p}Policy",)},
    UnsupportedPolicyRequestFault: {"unsupported": ("{urn:p}Policy", "{urn:q}Policy")},
    UnacceptableTerminationTimeFault: {"minimum_time": NOW, "maximum_time": LATER},
    UnacceptableInitialTerminationTimeFault: {"minimum_time": NOW, "maximum_time": LATER},
}


def fields(fault: SoapFault) -> dict[str, object]:
    return {name: value for name, value in vars(fault).items() if name not in ("version", "status")}


def there_and_back(fault: SoapFault, version: SoapVersion) -> SoapFault:
    with pytest.raises(SoapFault) as caught:
        parse_reply(encode_fault(fault, version, NOW))
    assert caught.value.version is version
    return caught.value


def fault_11(content: str) -> SoapFault:
    element = f'<s:Fault xmlns:s="{SoapVersion.SOAP11.namespace}" xmlns:w="{WSNT}">{content}</s:Fault>'
    return parse_fault(parse_xml(element.encode()), SoapVersion.SOAP11)


def fault_12(content: str) -> SoapFault:
    return parse_fault(
        parse_xml(f'<s:Fault xmlns:s="{SOAP12}">{content}</s:Fault>'.encode()), SoapVersion.SOAP12
    )


def test_every_fault_of_the_standard_is_a_class_of_its_name() -> None:
    expected = {f"{{{namespace}}}{name}" for namespace, names in NAMES.items() for name in names.split()}
    assert set(WsnFault.by_element) == expected
    for element, kind in WsnFault.by_element.items():
        assert kind.element == element
        assert getattr(faults, kind.__name__) is kind


def test_all_that_is_exported_exists() -> None:
    assert [name for name in faults.__all__ if not hasattr(faults, name)] == []
    assert {kind.__name__ for kind in WsnFault.by_element.values()} <= set(faults.__all__)


@EVERY
@BOTH
def test_fault_with_nothing_but_words_survives(kind: type[WsnFault], version: SoapVersion) -> None:
    fault = kind("it went <wrong> & is 京")
    back = there_and_back(fault, version)
    assert type(back) is kind
    fault.timestamp = NOW
    if hasattr(fault, "minimum_time"):
        fault.minimum_time = NOW
    assert fields(back) == fields(fault)


@EVERY
@BOTH
def test_fault_with_all_its_fields_survives(kind: type[WsnFault], version: SoapVersion) -> None:
    epr = EndpointReference("http://h?a&b", (b'<k xmlns="urn:k"/>',))
    fault = kind(
        "words", timestamp=LATER, originator=epr, detail=(b'<x:more xmlns:x="urn:x"/>',), **OWN.get(kind, {})
    )
    back = there_and_back(fault, version)
    assert type(back) is kind
    assert fields(back) == fields(fault)


@EVERY
@BOTH
@pytest.mark.parametrize("full", [False, True], ids=["bare", "full"])
def test_detail_is_as_the_schema_wants_it(
    oasis, kind: type[WsnFault], version: SoapVersion, full: bool
) -> None:  # type: ignore[no-untyped-def]
    fault = kind("words\0")
    if full:
        fault = kind("words", timestamp=LATER, originator=EndpointReference("http://h"), **OWN.get(kind, {}))
    data = encode_fault(fault, version, NOW, relates_to="urn:uuid:1")
    (detail,) = parse_xml(data).iter(kind.element)
    oasis.validate(detail)
    oasis.validate(data)


def test_detail_is_in_the_order_of_the_base_fault() -> None:
    fault = UnacceptableTerminationTimeFault("words", originator=EndpointReference("a"), maximum_time=LATER)
    (detail,) = parse_xml(encode_fault(fault, SoapVersion.SOAP11, NOW)).iter(fault.element)
    base = [f"{{{WSRF_BF}}}{local}" for local in ("Timestamp", "Originator", "Description")]
    assert [child.tag for child in detail] == [*base, wsnt("MinimumTime"), wsnt("MaximumTime")]
    assert [detail[0].text, detail[3].text] == ["2030-01-31T12:00:00Z"] * 2


@BOTH
@given(
    reason=st.text(),
    code=st.sampled_from(FaultCode),
    words=st.text(st.characters(min_codepoint=32, max_codepoint=0xD7FF)),
)
def test_any_words_and_code_survive(version: SoapVersion, reason: str, code: FaultCode, words: str) -> None:
    back = there_and_back(SoapFault(reason, code=code), version)
    assert back.code is code
    back = there_and_back(TopicNotSupportedFault(words, code=FaultCode.RECEIVER), version)
    assert (back.reason, back.code) == (words, FaultCode.RECEIVER)


@BOTH
def test_detail_of_others_survives(version: SoapVersion) -> None:
    fault = SoapFault("words", code=FaultCode.RECEIVER, detail=(b'<x xmlns="urn:x"><y/></x>', b"<z/>"))
    assert fields(there_and_back(fault, version)) == fields(fault)


@BOTH
def test_action_not_supported_survives(version: SoapVersion) -> None:
    back = there_and_back(ActionNotSupported("no such operation"), version)
    assert type(back) is ActionNotSupported
    assert (back.code, back.subcode) == (FaultCode.SENDER, wsa("ActionNotSupported"))


def test_subcodes_are_subcodes_in_soap_12_and_addressing_ones_fault_codes_in_soap_11() -> None:
    ours = SoapFault("words", subcode="{urn:x}Mine")
    assert there_and_back(ours, SoapVersion.SOAP12).subcode == "{urn:x}Mine"
    assert there_and_back(ours, SoapVersion.SOAP11).subcode is None
    assert b"<faultcode>soap:Client</faultcode>" in encode_fault(ours, SoapVersion.SOAP11, NOW)
    theirs = SoapFault("words", subcode=wsa("EndpointUnavailable"), code=FaultCode.RECEIVER)
    for version in SoapVersion:
        assert fields(there_and_back(theirs, version)) == fields(theirs)


@BOTH
def test_header_that_was_not_understood_is_named(version: SoapVersion) -> None:
    data = encode_fault(MustUnderstandFault("words", headers=("{urn:x}Key",)), version, NOW)
    blocks = parse_envelope(data).headers
    assert [block.get("qname") for block in blocks] == (["ns:Key"] if version is SoapVersion.SOAP12 else [])
    assert type(there_and_back(MustUnderstandFault("words"), version)) is MustUnderstandFault


@pytest.mark.parametrize(
    ("fault", "soap11", "soap12"),
    [
        (SoapFault("x"), 500, 400),
        (SoapFault("x", code=FaultCode.RECEIVER), 500, 500),
        (SoapFault("x", status=409), 409, 409),
        (TopicNotSupportedFault("x"), 500, 400),
        (PauseFailedFault("x"), 500, 500),
        (InvalidMessage("x"), 500, 400),
        (ActionNotSupported("x"), 500, 400),
        (MustUnderstandFault("x"), 500, 500),
        (NotSoap("x", code=FaultCode.VERSION_MISMATCH), 500, 500),
        (MalformedXml("x"), 400, 400),
        (TooLarge("x"), 413, 413),
        (Busy("x"), 503, 503),
    ],
    ids=lambda value: type(value).__name__,
)
def test_http_status_follows_version_and_code(fault: SoapFault, soap11: int, soap12: int) -> None:
    assert (fault.http_status(SoapVersion.SOAP11), fault.http_status(SoapVersion.SOAP12)) == (soap11, soap12)


def test_busy_says_when_to_come_back() -> None:
    assert (Busy("full", retry_after=2.5).retry_after, Busy("full").code) == (2.5, FaultCode.RECEIVER)


@pytest.mark.parametrize(
    ("fault", "action"),
    [
        (TopicNotSupportedFault("x"), "http://docs.oasis-open.org/wsrf/fault"),
        (ActionNotSupported("x"), f"{WSA}/fault"),
        (InvalidMessage("x"), f"{WSA}/soap/fault"),
    ],
    ids=lambda value: type(value).__name__,
)
@BOTH
def test_answer_to_an_addressed_request_is_addressed(
    fault: SoapFault, action: str, version: SoapVersion
) -> None:
    addressing = parse_envelope(encode_fault(fault, version, NOW, relates_to="urn:uuid:1")).addressing
    assert (addressing.action, addressing.relates_to) == (action, "urn:uuid:1")
    assert parse_envelope(encode_fault(fault, version, NOW)).headers == ()


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("s:Client", FaultCode.SENDER),
        ("s:Server", FaultCode.RECEIVER),
        ("Client", FaultCode.SENDER),
        ("s:Client.Authentication", FaultCode.SENDER),
        ("s:Server.Busy.Now", FaultCode.RECEIVER),
        ("unbound:Client", FaultCode.SENDER),
        ("s:MustUnderstand", FaultCode.MUST_UNDERSTAND),
        ("s:VersionMismatch", FaultCode.VERSION_MISMATCH),
        ("", FaultCode.RECEIVER),
        ("a b", FaultCode.RECEIVER),
    ],
)
def test_fault_codes_of_real_stacks_are_understood(code: str, expected: FaultCode) -> None:
    fault = fault_11(f"<faultcode>{code}</faultcode><faultstring>why</faultstring>")
    assert (fault.code, fault.reason, fault.subcode) == (expected, "why", None)


def test_fault_code_of_an_application_is_a_subcode() -> None:
    assert fault_11("<faultcode>w:Odd</faultcode>").subcode == wsnt("Odd")


def test_reason_is_the_english_one() -> None:
    texts = '<s:Text xml:lang="de">warum</s:Text><s:Text xml:lang="en-GB">why</s:Text>'
    assert fault_12(f"<s:Reason>{texts}</s:Reason>").reason == "why"
    assert fault_12('<s:Reason><s:Text xml:lang="de">warum</s:Text></s:Reason>').reason == "warum"


def test_description_falls_back_on_the_reason() -> None:
    fault = fault_11("<faultstring>why</faultstring><detail><w:PauseFailedFault/></detail>")
    assert type(fault) is PauseFailedFault
    assert (fault.description, fault.timestamp, fault.originator) == ("why", None, None)


def test_fault_that_is_broken_inside_is_still_that_fault() -> None:
    base = (
        f'<b:Timestamp xmlns:b="{WSRF_BF}">soon</b:Timestamp><b:Originator xmlns:b="{WSRF_BF}"/>'
        f'<b:Description xmlns:b="{WSRF_BF}">words</b:Description>'
    )
    fault = fault_11(
        f"<detail><w:InvalidFilterFault>{base}<w:UnknownFilter>no:way</w:UnknownFilter>"
        "<w:UnknownFilter>w:x</w:UnknownFilter></w:InvalidFilterFault></detail>"
    )
    assert isinstance(fault, InvalidFilterFault)
    assert (fault.description, fault.timestamp, fault.originator) == ("words", None, None)
    assert fault.unknown_filters == (wsnt("x"),)
    late = fault_11(
        f"<detail><w:UnacceptableTerminationTimeFault>{base}<w:MinimumTime>PT1H</w:MinimumTime>"
        "</w:UnacceptableTerminationTimeFault></detail>"
    )
    assert isinstance(late, UnacceptableTerminationTimeFault)
    assert (late.minimum_time, late.maximum_time) == (None, None)


@BOTH
@pytest.mark.parametrize("content", ["", "<faultcode/><faultstring/><detail/>", "text", "<x/>"])
def test_empty_fault_is_a_fault(version: SoapVersion, content: str) -> None:
    element = parse_xml(f'<s:Fault xmlns:s="{version.namespace}">{content}</s:Fault>'.encode())
    fault = parse_fault(element, version)
    assert (type(fault), fault.code, fault.detail) == (SoapFault, FaultCode.RECEIVER, ())


@BOTH
@EVERY
def test_fault_cut_anywhere_gives_nothing_but_soap_faults(kind: type[WsnFault], version: SoapVersion) -> None:
    data = encode_fault(kind("words", **OWN.get(kind, {})), version, NOW)
    for end in range(0, len(data), 7):
        with pytest.raises(SoapFault):
            parse_reply(data[:end])


@given(
    st.sampled_from(SoapVersion),
    st.sampled_from(list(OWN)),
    st.text(alphabet="<>/:wa&;1 ", max_size=6),
    st.integers(0, 900),
)
def test_damaged_fault_gives_nothing_but_soap_faults(version, kind, damage: str, at: int) -> None:  # type: ignore[no-untyped-def]
    data = encode_fault(kind("words", **OWN[kind]), version, NOW)
    with suppress(SoapFault):
        parse_reply(data[:at] + damage.encode() + data[at + len(damage) :])
