"""Payloads in their publishers' documents: all that is content stays, in either lane and on every way out."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lxml import etree

from hpwsn.door.notify.scan import NotifyScan
from hpwsn_client.wsn.formats.onvif import PullMessagesResponse
from hpwsn_client.wsn.formats.original import (
    PackedNotification,
    encode_packed,
    encode_process,
    parse_packed,
    parse_process,
)
from hpwsn_client.wsn.operations.messages import (
    GetCurrentMessageResponse,
    GetMessagesResponse,
    NotificationMessage,
    Notify,
    encode_message,
    parse_message,
    parse_notify,
)
from hpwsn_client.wsn.soap.envelope import parse_envelope
from hpwsn_client.wsn.soap.faults import InvalidMessage, MalformedXml, SoapFault, TooLarge
from hpwsn_client.wsn.soap.payload_xml import MOST_AROUND, parse_message_xml
from hpwsn_client.wsn.soap.version import SoapVersion, encode_envelope
from hpwsn_client.wsn.soap.xml import DEFAULT_LIMITS, Limits, encode_element, parse_xml
from hpwsn_client.wsn.topics.topic_expressions import parse_topic_expression
from tests.unit.client.wsn import published
from tests.unit.client.wsn.notify_envelopes import Envelopes
from tests.unit.client.wsn.published import WSNT, canonical, qnames

SOAP = published.ENVELOPES[0]
REMARKS = "<!-- c --><?pi x?>"


def notify(inside: str, scope: str = "") -> bytes:
    return (
        f'<s:Envelope xmlns:s="{SOAP}" xmlns:w="{WSNT}"{scope}><s:Body><w:Notify><w:NotificationMessage>'
        f"{inside}</w:NotificationMessage></w:Notify></s:Body></s:Envelope>"
    ).encode()


def read(data: bytes, limits: Limits = DEFAULT_LIMITS) -> NotificationMessage:
    body = parse_envelope(data, limits).body
    assert body is not None
    (message,) = parse_notify(body, limits)
    return message


def taken(inside: str, scope: str = "") -> str:
    """The payload of a Message that holds this."""
    return read(notify(f"<w:Message>{inside}</w:Message>", scope)).payload.decode()


# Published and taken in


@settings(max_examples=150)
@given(published.envelopes())
def test_the_full_lane_takes_a_payload_as_it_was_published(sent: tuple[bytes, bytes]) -> None:
    data, alone = sent
    message = read(data)
    assert canonical(message.payload) == canonical(alone)
    assert qnames(message.payload) == qnames(alone)
    assert message.topic is not None
    assert message.topic.text == "a"


@settings(max_examples=150)
@given(st.lists(published.envelopes(), min_size=1, max_size=4))
def test_the_fast_lane_takes_it_likewise_or_leaves_it_to_the_full_one(
    sent: list[tuple[bytes, bytes]],
) -> None:
    scan = NotifyScan(DEFAULT_LIMITS)
    # The second time it knows what is around the payloads, and their shapes.
    for data, alone in sent * 3:
        found = scan.read(data)
        if found is not None:
            payload = found[0].first.payload
            assert canonical(payload) == canonical(alone)
            assert qnames(payload) == qnames(alone)


def test_the_fast_lane_leaves_comments_instructions_and_what_is_said_by_xml_to_the_full_one() -> None:
    scan = NotifyScan(DEFAULT_LIMITS)
    assert scan.read(notify("<w:Message><r>1</r></w:Message>")) is not None
    for data in (
        notify("<w:Message><r>1<!-- c --></r></w:Message>"),
        notify("<w:Message><r>1<?pi?></r></w:Message>"),
        notify("<w:Message><r>1</r></w:Message>", ' xml:lang="de"'),
        notify('<w:Message xml:space="preserve"><r>1</r></w:Message>'),
    ):
        assert scan.read(data) is None


# Every way out, as bytes


TOPIC = parse_topic_expression("A:B", None, {})
NOW = datetime(2030, 1, 1, tzinfo=UTC)


def ways_out(payload: bytes) -> dict[str, bytes]:
    """The payload as a receiver of each message finds it."""
    message = NotificationMessage(TOPIC, payload)
    found: dict[str, bytes] = {}
    for version in SoapVersion:
        for sent in (Notify((message,)), GetMessagesResponse((message,))):
            body = parse_envelope(encode_envelope(version, encode_message(sent))).body
            assert body is not None
            back = parse_message(body)
            assert isinstance(back, Notify | GetMessagesResponse)
            found[f"{type(sent).__name__} {version}"] = back.messages[0].payload
        raw = parse_envelope(encode_envelope(version, payload), raw=True).body
        assert raw is not None
        found[f"raw {version}"] = encode_element(raw)
    current = parse_message_xml(encode_message(GetCurrentMessageResponse(payload)))
    answered = parse_message(current)
    assert isinstance(answered, GetCurrentMessageResponse)
    found["current"] = answered.payload
    pulled = parse_message(parse_message_xml(encode_message(PullMessagesResponse(NOW, NOW, (message,)))))
    assert isinstance(pulled, PullMessagesResponse)
    found["onvif"] = pulled.messages[0].payload
    process = parse_process(parse_message_xml(encode_process(PackedNotification(message))))
    assert isinstance(process, PackedNotification)
    found["original's door"] = process.message.payload
    packed = parse_packed(parse_message_xml(encode_packed(PackedNotification(message))))
    found["original's node"] = packed.message.payload
    return found


@settings(max_examples=100)
@given(published.envelopes())
def test_every_message_that_carries_a_payload_gives_it_back_as_it_was_published(
    sent: tuple[bytes, bytes],
) -> None:
    data, alone = sent
    for way, payload in ways_out(read(data).payload).items():
        assert canonical(payload) == canonical(alone), way
        assert qnames(payload) == qnames(alone), way


def test_a_payload_that_was_stored_with_comments_is_read_again_without_a_change() -> None:
    payload = taken(f"<r>a{REMARKS}b<!-- <x> --></r>")
    assert payload == f"<r>a{REMARKS}b<!-- <x> --></r>"
    assert taken(payload) == payload


# What is not content


@pytest.mark.parametrize(
    "inside",
    [
        f"{REMARKS}<w:Topic>{REMARKS}a{REMARKS}:{REMARKS}b</w:Topic>{REMARKS}<w:Message><r/></w:Message>{REMARKS}",
        f"<w:Topic>a:b</w:Topic><w:Message>{REMARKS}<r/>{REMARKS}</w:Message>",
        f"<w:Topic>a:b</w:Topic><w:Message>\n{REMARKS}\n<r/>\n{REMARKS}\n</w:Message>",
    ],
)
def test_comments_and_instructions_around_a_payload_leave_no_trace(inside: str) -> None:
    message = read(notify(inside))
    assert message.topic is not None
    assert (message.topic.text, message.payload) == ("a:b", b"<r/>")


def test_a_comment_in_plain_text_is_no_part_of_it() -> None:
    assert read(notify(f"<w:Message>a{REMARKS}b</w:Message>")).text == "ab"
    assert taken(f'<h:text xmlns:h="urn:hpwsn:1">a{REMARKS}b</h:text>').endswith(f">a{REMARKS}b</h:text>")


@pytest.mark.parametrize("inside", [REMARKS, f" {REMARKS}\n", f"<r/>{REMARKS}<r/>", f"<r/>{REMARKS}text"])
def test_a_message_that_holds_no_one_thing_is_refused_with_comments_as_without(inside: str) -> None:
    with pytest.raises(InvalidMessage):
        taken(inside)


def test_a_request_without_payloads_is_read_as_if_it_had_no_comments() -> None:
    data = (
        f'<s:Envelope xmlns:s="{SOAP}" xmlns:w="{WSNT}"><s:Header>{REMARKS}<h>{REMARKS}1{REMARKS}</h>'
        f"</s:Header><s:Body>{REMARKS}<w:Renew>{REMARKS}<w:TerminationTime>PT{REMARKS}1H</w:TerminationTime></w:Renew>"
        "</s:Body></s:Envelope>"
    ).encode()
    envelope = parse_envelope(data)
    assert envelope.body is not None
    assert [header.text for header in envelope.headers] == ["1"]
    assert not list(envelope.body.iter(etree.Comment, etree.PI))
    assert envelope.body[0].text == "PT1H"


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "iso-8859-1"])
def test_comments_stay_in_every_encoding(encoding: str) -> None:
    data = notify("<w:Message><r>é<!-- é --></r></w:Message>").decode()
    text = f'<?xml version="1.0" encoding="{encoding}"?>{data}'
    assert read(text.encode(encoding)).payload.decode() == "<r>é<!-- é --></r>"


@pytest.mark.parametrize("raw", [False, True])
def test_only_a_receiver_of_raw_payloads_keeps_the_comments_of_a_body(raw: bool) -> None:
    data = f'<s:Envelope xmlns:s="{SOAP}"><s:Body>{REMARKS}<r>{REMARKS}</r></s:Body></s:Envelope>'.encode()
    body = parse_envelope(data, raw=raw).body
    assert body is not None
    assert encode_element(body).decode() == (f"<r>{REMARKS}</r>" if raw else "<r/>")


# What is said of a payload around it


@pytest.mark.parametrize(
    ("scope", "message", "payload", "found"),
    [
        (' xml:lang="de"', "", "<r/>", '<r xml:lang="de"/>'),
        (' xml:lang="de"', ' xml:lang="fr"', "<r/>", '<r xml:lang="fr"/>'),
        (' xml:lang="de"', "", '<r xml:lang="en"/>', '<r xml:lang="en"/>'),
        (' xml:lang="de"', ' xml:lang=""', "<r/>", '<r xml:lang=""/>'),
        (' xml:space="preserve"', "", "<r> </r>", '<r xml:space="preserve"> </r>'),
        (' xml:base="http://a/b/"', ' xml:base="c/"', "<r/>", '<r xml:base="http://a/b/c/"/>'),
        (' xml:base="http://a/b/"', "", '<r xml:base="x"/>', '<r xml:base="http://a/b/x"/>'),
        ("", "", '<r xml:base="x"/>', '<r xml:base="x"/>'),
        (' xml:id="i"', "", "<r/>", "<r/>"),
    ],
)
def test_a_payload_keeps_what_xml_attributes_around_it_say(
    scope: str, message: str, payload: str, found: str
) -> None:
    data = notify(f"<w:Message{message}>{payload}</w:Message>", scope)
    envelope = parse_envelope(data).body
    assert envelope is not None
    for _ in range(2):  # reading leaves the tree as it was
        assert parse_notify(envelope)[0].payload.decode() == found


def test_a_base_that_is_no_address_is_refused() -> None:
    with pytest.raises(InvalidMessage, match="xml:base 'http://\\[' of the payload"):
        taken("<r xml:base='x'/>", ' xml:base="http://["')


# The same as without comments


@given(published.envelopes())
def test_but_for_comments_the_tree_is_that_of_a_parser_that_drops_them(sent: tuple[bytes, bytes]) -> None:
    found = parse_message_xml(sent[0])
    etree.strip_tags(found, etree.Comment, etree.PI)
    assert etree.tostring(found) == etree.tostring(parse_xml(sent[0]))


@given(st.integers(0, 2**32), st.booleans())
def test_damaged_messages_give_nothing_but_soap_faults(seed: int, raw: bool) -> None:
    made = Envelopes(seed)
    for data in (
        made.envelope(),
        made.damaged(),
        made.damage(notify(f"<w:Message>{REMARKS}<r/></w:Message>")),
    ):
        with suppress(SoapFault):
            body = parse_envelope(data, raw=raw).body
            if body is not None:
                parse_notify(body)


# Limits


def test_comments_count_for_the_size_of_a_message() -> None:
    data = notify(f"<w:Message><r><!--{'x' * 1000}--></r></w:Message>")
    assert len(read(data, Limits(body=len(data))).payload) > 1000
    with pytest.raises(TooLarge):
        read(data, Limits(body=len(data) - 1))


def test_depth_is_that_of_elements_wherever_comments_are() -> None:
    # Five elements are around a payload.
    data = notify(f"<w:Message>{'<a>' * 3}{REMARKS}{'</a>' * 3}</w:Message>")
    assert REMARKS in read(data, Limits(depth=8)).payload.decode()
    with pytest.raises(MalformedXml, match="deeper than the 7 levels"):
        read(data, Limits(depth=7))


@pytest.mark.parametrize("place", ["<w:Topic>a{}</w:Topic><w:Message>", "{}<w:Message>", "<w:Message>{}"])
def test_so_many_comments_around_payloads_and_no_more(place: str) -> None:
    most = notify(place.format("<!---->" * MOST_AROUND) + "<r/></w:Message>")
    assert read(most).payload == b"<r/>"
    with pytest.raises(InvalidMessage, match=f"more than {MOST_AROUND} comments"):
        read(notify(place.format("<!---->" * (MOST_AROUND + 1)) + "<r/></w:Message>"))


def test_parts_that_no_message_has_are_refused_before_each_is_searched_for_comments() -> None:
    message = f"<w:NotificationMessage>{REMARKS}<w:Message><r/></w:Message></w:NotificationMessage>"

    def envelope(inside: str) -> bytes:
        return encode_envelope(SoapVersion.SOAP11, f'<w:Notify xmlns:w="{WSNT}">{inside}</w:Notify>'.encode())

    limits = Limits(messages=2000)
    body = parse_envelope(envelope(message * 2000), limits).body
    assert body is not None and len(parse_notify(body, limits)) == 2000
    with pytest.raises(InvalidMessage, match="more elements than 2000 notifications have"):
        parse_envelope(envelope(message + "<x><y/></x>" * 120_000), limits)


@pytest.mark.parametrize("unit", ["<!---->", "<!---->x", "<?a?>x", "<a><!----></a>"])
@pytest.mark.parametrize("place", ["<w:Topic>{}</w:Topic><w:Message><r/>", "<w:Message><r>{}</r>"])
def test_any_number_of_comments_is_read_in_linear_time(unit: str, place: str) -> None:
    inside = place.format(unit * 300_000)
    try:
        read(notify(f"{inside}</w:Message>"))
    except InvalidMessage:
        assert "Topic" in inside


@pytest.mark.parametrize(
    "before",
    [
        "<!DOCTYPE r>",
        "<!-- c --><!DOCTYPE r>",
        "<?pi?><!DOCTYPE r SYSTEM 'x'>",
        "<!DOCTYPE r [<!ENTITY e 'x'>]>",
    ],
)
def test_a_document_type_is_refused_behind_comments_too(before: str) -> None:
    with pytest.raises(MalformedXml, match="document type"):
        parse_message_xml(f"{before}<r><!-- c --></r>".encode())
